package cmd

import (
	"time"

	"github.com/spf13/cobra"
)

// completionBound is how long the shell waits for names at most: data that another process
// holds must not freeze a prompt.
const completionBound = 500 * time.Millisecond

func newCompletionCommand(a *app) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	c := a.command(about{
		use:   "completion SHELL",
		short: "print the completion script of a shell",
		long: `Print the completion script for bash, zsh, fish or powershell. Entities complete too, from the
connection in use.`,
		effects: "none",
		exits:   []exitCode{exitFailed, exitUsage},
		example: "source <(dlq completion bash)\ndlq completion fish > ~/.config/fish/completions/dlq.fish",
	}, exactly("SHELL"), func(c *cobra.Command, args []string) error {
		root := c.Root()
		switch args[0] {
		case "bash":
			return root.GenBashCompletionV2(a.out, true)
		case "zsh":
			return root.GenZshCompletion(a.out)
		case "fish":
			return root.GenFishCompletion(a.out, true)
		case "powershell":
			return root.GenPowerShellCompletionWithDesc(a.out)
		}
		return fail(exitUsage, "write one of bash, zsh, fish, powershell", "there is no completion for %q", args[0])
	})
	c.ValidArgs = shells
	return c
}
