// Dlq is for whoever is paged when messages end up in a dead-letter queue: it browses,
// filters, groups, edits, resubmits, completes and exports them, from the command line
// and in a terminal UI.
package main

import (
	"embed"
	"os"

	"dlq/cmd"
)

// corpus holds realistic dead letters, from which "dlq demo" makes its incident.
//
//go:embed testdata/messages/*.json
var corpus embed.FS

func main() { os.Exit(cmd.Main(corpus)) }
