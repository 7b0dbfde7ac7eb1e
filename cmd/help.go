package cmd

import (
	"embed"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"dlq/backends/sqlfilter"
)

// topics are the texts of dlq help that belong to no single command.
//
//go:embed topics/*.txt
var topics embed.FS

func newHelpCommand(a *app) *cobra.Command {
	c := a.command(about{
		use:     "help [COMMAND|selection|json|promises]",
		short:   "describe a command, the selection language, the JSON keys, or what a resubmit promises",
		effects: "none",
		exits:   []exitCode{exitUsage},
	}, cobra.ArbitraryArgs, func(c *cobra.Command, args []string) error {
		if len(args) == 1 {
			if text, ok := topic(args[0]); ok {
				a.out.WriteString(text)
				return nil
			}
		}
		target, rest, err := c.Root().Find(args)
		if err != nil || len(rest) > 0 {
			return fail(exitUsage, "the topics are selection, json and promises",
				"there is no command or topic %q", strings.Join(args, " "))
		}
		a.printHelp(target)
		return nil
	})
	c.ValidArgs = []string{"selection", "json", "promises"}
	return c
}

// topic returns the text of a topic.
func topic(name string) (string, bool) {
	text, err := topics.ReadFile("topics/" + name + ".txt")
	if err != nil {
		return "", false
	}
	if name != "selection" {
		return string(text), true
	}
	var b strings.Builder
	b.Write(text)
	for _, n := range sqlfilter.SelectionNames().All() {
		if strings.HasPrefix(n.Text, "sys.") {
			fmt.Fprintf(&b, "  %-32s %s\n", n.Text, n.Type)
		}
	}
	return b.String(), true
}
