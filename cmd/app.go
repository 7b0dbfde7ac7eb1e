package cmd

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"dlq/backends"
	"dlq/resubmit"
)

// app is the process as a command sees it. A command reaches the outside through it alone,
// so that a test can be the outside.
type app struct {
	streams
	args   []string // the command line without the program's name
	getenv func(string) string
	now    func() time.Time
	corpus fs.FS // realistic message bodies, for demo

	conn      string // --conn; "": DLQ_CONN, else "local:"
	stays     bool   // the command runs for long, so that others must be able to work beside it
	opened    backends.Backend
	canonical string // the connection of opened, whole; "": as connection returns it
	journals  *resubmit.Journals
	stateRoot string // "": the user's state directory
}

// backend opens the connection when it is first asked for: help and completion of flags
// never do. The app closes it.
func (a *app) backend(ctx context.Context) (backends.Backend, error) {
	return a.openOnce(ctx, false)
}

// existing is backend for the commands that put nothing new into a broker: none is made for
// them where a directory was named that is not there.
func (a *app) existing(ctx context.Context) (backends.Backend, error) {
	return a.openOnce(ctx, true)
}

func (a *app) openOnce(ctx context.Context, existing bool) (backends.Backend, error) {
	if a.opened == nil {
		b, canonical, err := a.open(ctx, existing)
		if err != nil {
			return nil, err
		}
		a.opened, a.canonical = b, canonical
	}
	return a.opened, nil
}

// close releases what was opened.
func (a *app) close() error {
	if a.opened == nil {
		return nil
	}
	err := a.opened.Close()
	a.opened = nil
	return err
}

// commandLine is what was typed, for the journal and for whoever waits for a lock. A shell
// reads it back to the same words.
func (a *app) commandLine() string {
	line := "dlq"
	for _, arg := range a.args {
		line += " " + resubmit.ShellQuote(arg)
	}
	return line
}

// env returns what package resubmit works with, opening backend and journals.
func (a *app) env(ctx context.Context) (resubmit.Env, error) {
	b, err := a.existing(ctx)
	if err != nil {
		return resubmit.Env{}, err
	}
	j, err := a.openJournals()
	if err != nil {
		return resubmit.Env{}, err
	}
	conn := a.canonical
	if conn == "" {
		conn = a.connection()
	}
	return resubmit.Env{Backend: b, Journals: j, Now: a.now, Conn: conn, Version: version()}, nil
}

// openJournals opens the folder of the jobs, without which nothing is moved or removed.
func (a *app) openJournals() (*resubmit.Journals, error) {
	if a.journals == nil {
		dir, err := a.stateDir()
		if err != nil {
			return nil, err
		}
		j, err := resubmit.OpenJournals(filepath.Join(dir, "plans"), a.now)
		if err != nil {
			return nil, err
		}
		a.journals = j
	}
	return a.journals, nil
}

// stateDir returns where dlq keeps what it did: journals and backups.
func (a *app) stateDir() (string, error) {
	if a.stateRoot != "" {
		return a.stateRoot, nil
	}
	return a.userDir("XDG_STATE_HOME", ".local/state")
}

// userDir returns dlq's folder in one of the user's base directories: the XDG one where it
// is set, else the system's habit. A relative XDG path is ignored, as its specification says.
func (a *app) userDir(xdg, fallback string) (string, error) {
	if dir := a.getenv(xdg); filepath.IsAbs(dir) {
		return filepath.Join(dir, "dlq"), nil
	}
	home := a.getenv("HOME")
	switch runtime.GOOS {
	case "windows":
		if dir := a.getenv("LOCALAPPDATA"); dir != "" {
			return filepath.Join(dir, "dlq"), nil
		}
		home = a.getenv("USERPROFILE")
	case "darwin":
		fallback = "Library/Application Support"
	}
	if home == "" {
		return "", errors.New("no home directory is known; set " + xdg)
	}
	return filepath.Join(home, filepath.FromSlash(fallback), "dlq"), nil
}

// systemApp is the app of the real process.
func systemApp(corpus fs.FS) *app {
	return &app{
		streams: systemStreams(os.Getenv),
		args:    os.Args[1:],
		getenv:  os.Getenv,
		now:     time.Now,
		corpus:  corpus,
	}
}
