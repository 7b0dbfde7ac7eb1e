package cmd

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newManCommand(a *app) *cobra.Command {
	var dir string
	c := a.command(about{
		use:     "man [COMMAND]",
		short:   "print the manual page of dlq or of a command",
		long:    "Print a manual page for man(1), or with --dir write the pages of all commands.",
		effects: "none; --dir writes files",
		exits:   []exitCode{exitFailed, exitUsage},
		example: "dlq man resubmit | man -l -\ndlq man --dir /usr/local/share/man/man1",
	}, cobra.ArbitraryArgs, func(c *cobra.Command, args []string) error {
		if dir != "" {
			return writeManPages(c.Root(), dir)
		}
		target, rest, err := c.Root().Find(args)
		if err != nil || len(rest) > 0 {
			return usagef("there is no command %q", strings.Join(args, " "))
		}
		a.out.Write(manPage(target))
		return nil
	})
	c.Flags().StringVar(&dir, "dir", "", "write the pages of all commands into this `DIRECTORY`")
	return c
}

// writeManPages writes the page of c and those of all below it.
func writeManPages(c *cobra.Command, dir string) error {
	name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
	if err := os.WriteFile(filepath.Join(dir, name), manPage(c), 0o644); err != nil {
		return err
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			if err := writeManPages(sub, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// manPage returns the manual page of one command in the man(7) language.
func manPage(c *cobra.Command) []byte {
	var b bytes.Buffer
	name := strings.ReplaceAll(c.CommandPath(), " ", "-")
	fmt.Fprintf(&b, ".TH %q 1 \"\" \"dlq %s\" \"dlq manual\"\n", strings.ToUpper(name), version())
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(name), roff(c.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(useLine(c)))
	fmt.Fprintf(&b, ".SH DESCRIPTION\n%s\n", roffParagraphs(c.Long))
	if c.HasAvailableSubCommands() {
		b.WriteString(".SH COMMANDS\n")
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(sub.Name()), roff(sub.Short))
			}
		}
	}
	roffFlags(&b, "OPTIONS", c.LocalFlags())
	roffFlags(&b, "GLOBAL OPTIONS", c.InheritedFlags())
	roffBlock(&b, "SIDE EFFECTS", c.Annotations[effectsKey])
	roffBlock(&b, "EXIT STATUS", c.Annotations[exitsKey])
	roffBlock(&b, "EXAMPLES", c.Example)
	return b.Bytes()
}

func roffFlags(b *bytes.Buffer, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	flags.VisitAll(func(f *pflag.Flag) {
		value, usage := pflag.UnquoteUsage(f)
		head := "--" + f.Name
		if f.Shorthand != "" {
			head = "-" + f.Shorthand + ", " + head
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(strings.TrimSpace(head+" "+value)), roff(usage))
	})
}

// roffBlock writes a section whose lines stand as they are.
func roffBlock(b *bytes.Buffer, title, text string) {
	if text != "" {
		fmt.Fprintf(b, ".SH %s\n.nf\n%s\n.fi\n", title, roff(strings.TrimRight(text, "\n")))
	}
}

func roffParagraphs(text string) string {
	return strings.ReplaceAll(roff(text), "\n\n", "\n.PP\n")
}

// roff escapes text for man(7): the backslash, hyphens that are to be copied as such, and
// a line that would begin with a request.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}
