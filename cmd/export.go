package cmd

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dlq/backends/message"
	"dlq/export"
)

type exportOptions struct {
	source
	format fileFormat
	out    string
	force  bool
}

func (o *exportOptions) addFlags(fs *pflag.FlagSet) {
	o.source.addFlags(fs)
	fs.VarP(&o.format, "format", "f", "file format: `jsonl|json|csv` (default by the name of --out, else jsonl)")
	fs.StringVar(&o.out, "out", "", "write to this `FILE`, which appears when it is complete (default -, standard output)")
	fs.BoolVar(&o.force, "force", false, "replace the file if it exists")
}

// fileFormat is the value of --format.
type fileFormat struct {
	export.Format
	given bool
}

func (f *fileFormat) Type() string { return "jsonl|json|csv" }

func (f *fileFormat) String() string {
	if !f.given {
		return ""
	}
	return f.Format.String()
}

func (f *fileFormat) Set(s string) (err error) {
	f.Format, err = export.ParseFormat(s)
	f.given = true
	return err
}

func newExportCommand(a *app) *cobra.Command {
	var opts exportOptions
	c := a.command(about{
		use:   "export ENTITY",
		short: "write dead letters to a file",
		long: `Write the dead letters of an entity, all or a selection, as JSON lines, a JSON array or CSV. The JSON
forms are exact: dlq import sends them again equal in every byte and type. A file is readable by
its owner alone, and appears only when it is complete and on disk.`,
		effects: "none: no lock is taken and no delivery is counted",
		exits:   []exitCode{exitFailed, exitUsage, exitRefused, exitNothing},
		example: "dlq export orders --out orders.jsonl\ndlq export orders --since 1d -f csv > orders.csv",
	}, exactly("ENTITY"), func(c *cobra.Command, args []string) error {
		return runExport(c.Context(), a, opts, c.Flags(), args[0])
	})
	opts.addFlags(c.Flags())
	c.ValidArgsFunction = a.completeEntity
	return c
}

func runExport(ctx context.Context, a *app, opts exportOptions, flags *pflag.FlagSet, arg string) error {
	if f, ok := export.FormatOf(opts.out); ok && !opts.format.given {
		opts.format.Format = f
	}
	if opts.out == "-" {
		opts.out = ""
	}
	if opts.out == "" && opts.format.Format == export.CSV && a.outTTY {
		return fail(exitRefused, "name a file with --out, or add > FILE", "CSV holds texts as they are, which could take over the terminal")
	}
	src, err := opts.open(ctx, a, flags, arg)
	if err != nil {
		return err
	}
	if opts.out == "" {
		n, err := writeMessages(a.out, opts.format.Format, src.messages(ctx))
		if err != nil {
			return err
		}
		return src.end(a, int64(n))
	}
	n, err := exportFile(opts.out, opts.force, opts.format.Format, src.messages(ctx))
	if errors.Is(err, fs.ErrExist) {
		return fail(exitRefused, "--force replaces it", "%s exists already", opts.out)
	}
	if err != nil {
		return err
	}
	if n > 0 {
		a.say("%s written to %s", plural(int64(n), "message"), opts.out)
	}
	return src.end(a, int64(n))
}

// exportFile writes messages to a file that appears only when it is whole; without
// messages there is none.
func exportFile(path string, force bool, f export.Format, msgs iter.Seq2[*message.Message, error]) (int, error) {
	file, err := export.CreateFile(path, force)
	if err != nil {
		return 0, err
	}
	defer file.Abort()
	n, err := writeMessages(file, f, msgs)
	if err != nil || n == 0 {
		return n, err
	}
	return n, file.Commit()
}

// writeMessages writes what comes, one message at a time.
func writeMessages(w io.Writer, f export.Format, msgs iter.Seq2[*message.Message, error]) (int, error) {
	out := export.NewWriter(w, f)
	for m, err := range msgs {
		if err != nil {
			return out.Count(), err
		}
		if err := out.Write(m); err != nil {
			return out.Count(), err
		}
	}
	return out.Count(), out.Close()
}
