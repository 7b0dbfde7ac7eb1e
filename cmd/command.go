package cmd

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// about is what a command says of itself, in its help and in its man page.
type about struct {
	use     string // as cobra has it: the name, then the arguments
	short   string // a line for the list of commands
	long    string // paragraphs; "": short
	effects string // side effects, on other messages too
	exits   []exitCode
	example string
}

// Annotations under which the parts of about that cobra has no place for are kept.
const (
	effectsKey = "effects"
	exitsKey   = "exits"
)

// command returns a command without flags that runs run.
func (a *app) command(ab about, args cobra.PositionalArgs, run func(c *cobra.Command, args []string) error) *cobra.Command {
	c := &cobra.Command{
		Use:                        ab.use,
		Short:                      ab.short,
		Long:                       ab.long,
		Example:                    ab.example,
		SilenceErrors:              true,
		SilenceUsage:               true,
		DisableFlagsInUseLine:      true,
		SuggestionsMinimumDistance: 2,
		Annotations: map[string]string{
			effectsKey: ab.effects,
			exitsKey:   exitStatus(ab.exits),
		},
		RunE: run,
	}
	c.Args = func(c *cobra.Command, got []string) error {
		if err := args(c, got); err != nil {
			if own := new(exitError); errors.As(err, &own) {
				return err
			}
			return fail(exitUsage, "usage: "+useLine(c), "%w", err)
		}
		return nil
	}
	return c
}

// exitStatus is the list of exit codes of a command's help. Interruption belongs to all.
func exitStatus(codes []exitCode) string {
	var b strings.Builder
	for _, c := range append(append([]exitCode{exitDone}, codes...), exitInterrupted) {
		fmt.Fprintf(&b, "%3d  %s\n", int(c), c)
	}
	return b.String()
}

// exactly takes n arguments and names what they are when they are not there.
func exactly(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return fmt.Errorf("%s is missing", names[len(args)])
		}
		if len(args) > len(names) {
			return fmt.Errorf("%q is one argument too many", args[len(names)])
		}
		return nil
	}
}

// atMost takes up to n arguments.
func atMost(n int) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > n {
			return fmt.Errorf("%q is one argument too many", args[n])
		}
		return nil
	}
}

func useLine(c *cobra.Command) string {
	line := c.Use
	if c.HasParent() {
		line = c.Parent().CommandPath() + " " + line
	}
	if c.HasAvailableLocalFlags() {
		line += " [flags]"
	}
	return line
}

// printHelp writes a command's help to standard output.
func (a *app) printHelp(c *cobra.Command) {
	text := c.Long
	if text == "" {
		text = strings.ToUpper(c.Short[:1]) + c.Short[1:] + "."
	}
	a.printf("%s\n\n%s\n  %s\n", text, a.paint(bold, "Usage"), useLine(c))
	for _, g := range c.Groups() {
		a.printCommands(g.Title, c, g.ID)
	}
	if len(c.Groups()) == 0 {
		a.printCommands("Commands", c, "")
	}
	a.printFlags("Flags", c.LocalFlags())
	a.printFlags("Everywhere", c.InheritedFlags())
	if c.Example != "" {
		a.printf("\n%s\n%s\n", a.paint(bold, "Examples"), indent(c.Example))
	}
	if effects, ok := c.Annotations[effectsKey]; ok {
		a.printf("\n%s\n%s\n", a.paint(bold, "Side effects"), indent(effects))
		a.printf("\n%s\n%s\n", a.paint(bold, "Exit codes"), indent(c.Annotations[exitsKey]))
	}
	if !c.HasParent() {
		a.printf("\ndlq COMMAND --help tells more; dlq help selection, dlq help json describe the language and the keys.\n")
	}
}

// printCommands lists the commands below c that belong to a group.
func (a *app) printCommands(title string, c *cobra.Command, group string) {
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() || sub.GroupID != group {
			continue
		}
		if title != "" {
			a.printf("\n%s\n", a.paint(bold, title))
			title = ""
		}
		a.printf("  %-12s %s\n", sub.Name(), sub.Short)
	}
}

func (a *app) printFlags(title string, flags *pflag.FlagSet) {
	if flags.HasAvailableFlags() {
		a.printf("\n%s\n%s", a.paint(bold, title), flags.FlagUsagesWrapped(max(a.width, 0)))
	}
}

// indent moves every line two columns to the right.
func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  ")
}
