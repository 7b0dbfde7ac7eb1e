package cmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"dlq/tui/textview"
)

// streams are the three standard streams and what is known of the terminals behind them.
type streams struct {
	in     io.Reader
	out    *bufio.Writer // data; flushed at the end of a command and before a question
	err    io.Writer     // everything else
	screen io.Writer     // standard output without the buffer, for a program that is started

	inTTY, outTTY, errTTY bool
	// colour and progress are for terminals that can do more than print lines.
	colour, progress bool
	// width is the terminal's number of columns, 0 where standard output is none: then
	// nothing is cut.
	width int
}

// outBuffer is large enough that a long listing costs few system calls.
const outBuffer = 64 << 10

// systemStreams returns those of the process. NO_COLOR (no-color.org) and TERM=dumb are
// honoured.
func systemStreams(getenv func(string) string) streams {
	s := streams{
		in:     os.Stdin,
		out:    bufio.NewWriterSize(os.Stdout, outBuffer),
		err:    os.Stderr,
		screen: os.Stdout,
		inTTY:  term.IsTerminal(int(os.Stdin.Fd())),
		outTTY: term.IsTerminal(int(os.Stdout.Fd())),
		errTTY: term.IsTerminal(int(os.Stderr.Fd())),
	}
	smart := getenv("TERM") != "dumb"
	s.colour = s.outTTY && smart && getenv("NO_COLOR") == ""
	s.progress = s.errTTY && smart
	if s.outTTY {
		if w, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil {
			s.width = w
		}
	}
	return s
}

// interactive reports whether somebody can be asked a question and answer it.
func (s *streams) interactive() bool { return s.inTTY && s.errTTY }

// say writes one line to standard error, sanitised whole: its arguments may come from anywhere.
func (s *streams) say(format string, args ...any) {
	fmt.Fprintln(s.err, "dlq: "+textview.Sanitise(fmt.Sprintf(format, args...)))
}

// printf writes text with safe arguments to standard output; an error shows at flush.
func (s *streams) printf(format string, args ...any) { fmt.Fprintf(s.out, format, args...) }

// println writes one line to standard output, sanitised.
func (s *streams) println(line string) {
	s.out.WriteString(textview.Sanitise(line))
	s.out.WriteByte('\n')
}

// flush hands out what is buffered; it fails where an earlier write failed.
func (s *streams) flush() error {
	if err := s.out.Flush(); err != nil {
		return fmt.Errorf("write to standard output: %w", err)
	}
	return nil
}

// confirm asks a yes-or-no question and takes anything but "y" and "yes" for no. An
// interrupt ends the waiting; the read then goes on unheard until the process ends.
func (s *streams) confirm(ctx context.Context, question string) (bool, error) {
	if err := s.flush(); err != nil {
		return false, err
	}
	fmt.Fprintf(s.err, "%s [y/N] ", textview.Sanitise(question))
	type answer struct {
		text string
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		text, err := bufio.NewReader(s.in).ReadString('\n')
		answers <- answer{text, err}
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(s.err)
		return false, ctx.Err()
	case got := <-answers:
		if got.err != nil && !errors.Is(got.err, io.EOF) {
			return false, fmt.Errorf("read the answer: %w", got.err)
		}
		text := strings.ToLower(strings.TrimSpace(got.text))
		return text == "y" || text == "yes", nil
	}
}

// untilDone reads in until ctx is done, and then fails with its error. A read that blocks is
// left behind and ends with the process.
func untilDone(ctx context.Context, in io.Reader) io.Reader {
	r, w := io.Pipe()
	go func() {
		_, err := io.Copy(w, in)
		w.CloseWithError(err)
	}()
	context.AfterFunc(ctx, func() { w.CloseWithError(ctx.Err()) })
	return r
}

// The colours of the commands: the terminal's own, by number, so that its theme decides.
const (
	bold   = "\x1b[1m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	dim    = "\x1b[2m"
	reset  = "\x1b[0m"
)

// paint colours a sanitised text where colours are wanted. No colour is the only carrier
// of a meaning.
func (s *streams) paint(colour, text string) string {
	if !s.colour || colour == "" || text == "" {
		return text
	}
	return colour + text + reset
}
