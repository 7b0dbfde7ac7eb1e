package cmd

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

func newVersionCommand(a *app) *cobra.Command {
	return a.command(about{
		use:     "version",
		short:   "print the version",
		long:    "Print the version, the revision it was built from, and the platform.",
		effects: "none",
		exits:   []exitCode{exitUsage},
	}, exactly(), func(*cobra.Command, []string) error {
		a.printf("dlq %s %s %s/%s\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return nil
	})
}

// version returns the version as the Go toolchain stamped it from the tag and the revision
// of the sources: the one place that knows it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := strings.Trim(info.Main.Version, "()")
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if rev := settings["vcs.revision"]; rev != "" {
		v += fmt.Sprintf(" (%.12s)", rev)
	}
	return v
}
