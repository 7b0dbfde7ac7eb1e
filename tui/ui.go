package tui

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"dlq/backends"
	"dlq/resubmit"
	"dlq/tui/theme"
)

// ui is what all screens share. Everything in it is fixed for the life of the program but
// history and kept, which belong to Update.
type ui struct {
	ctx   context.Context
	deps  Deps
	caps  backends.Capabilities
	theme theme.Theme
	// exec gives the terminal to another program until that ends.
	exec func(*exec.Cmd, tea.ExecCallback) tea.Cmd

	history []string                      // filters that were used, the latest last
	kept    map[backends.EntityID][]int64 // marks of the lists that were left, ascending
}

func newUI(ctx context.Context, d Deps) *ui {
	if d.Now == nil {
		d.Now = time.Now
	}
	if d.Getenv == nil {
		d.Getenv = os.Getenv
	}
	if d.Err == nil {
		d.Err = os.Stderr
	}
	if d.Editor == nil {
		d.Editor = editorFrom(ctx, d.Getenv, runtime.GOOS)
	}
	colour := d.Getenv("NO_COLOR") == "" && d.Getenv("TERM") != "dumb"
	return &ui{
		ctx:   ctx,
		deps:  d,
		caps:  backends.Probe(d.Backend),
		theme: theme.New(colour, theme.Detect(d.Getenv)),
		exec:  tea.ExecProcess,
		kept:  make(map[backends.EntityID][]int64),
	}
}

// env is what package resubmit works with.
func (u *ui) env() resubmit.Env {
	return resubmit.Env{Backend: u.deps.Backend, Journals: u.deps.Journals, Now: u.deps.Now, Conn: u.deps.Conn, Version: u.deps.Version}
}

// why says why a binding that this screen has cannot be used.
func (u *ui) why() string {
	if u.deps.ReadOnly {
		return "this connection is read-only"
	}
	return "this service cannot be browsed without side effects"
}

// whyShort is why in a word.
func (u *ui) whyShort() string {
	if u.deps.ReadOnly {
		return "read-only"
	}
	return "no peek"
}

// sideEffects is what looking at messages does to them, in words.
func (u *ui) sideEffects() string {
	if u.caps.Peek {
		return "peek: no side effects"
	}
	return "no peek on this service"
}
