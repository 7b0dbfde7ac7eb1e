package cmd

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"dlq/backends"
	"dlq/backends/local"
)

// driver is one kind of connection.
type driver struct {
	scheme string
	forms  string // how its URLs are written, for messages
	// resolve returns what stands behind the scheme in a form that means the same from
	// everywhere. It opens nothing and, with existing, fails where there is nothing to open.
	resolve func(a *app, rest string, existing bool) (string, error)
	open    func(ctx context.Context, a *app, rest string) (backends.Backend, error) // takes what resolve returned
}

// drivers is the one list of what a connection can be.
func drivers() []driver {
	return []driver{
		{"local", "local: (data in the user's data directory) or local:DIR", resolveLocal, openLocal},
	}
}

// connection returns the connection that was asked for, as text.
func (a *app) connection() string {
	switch {
	case a.conn != "":
		return a.conn
	case a.getenv("DLQ_CONN") != "":
		return a.getenv("DLQ_CONN")
	}
	return "local:"
}

// open opens the connection that was asked for, and returns its canonical text, by which a
// journal knows it again from any directory. What stands behind the scheme is not repeated in
// errors: it may hold a secret.
func (a *app) open(ctx context.Context, existing bool) (b backends.Backend, canonical string, err error) {
	scheme, rest, ok := strings.Cut(a.connection(), ":")
	var forms []string
	for _, d := range drivers() {
		if ok && strings.EqualFold(scheme, d.scheme) {
			if rest, err = d.resolve(a, rest, existing); err != nil {
				return nil, "", err
			}
			b, err = d.open(ctx, a, rest)
			return b, d.scheme + ":" + rest, err
		}
		forms = append(forms, d.forms)
	}
	what := "connection scheme %q is not available"
	if !ok {
		what = "no connection is named %q"
	}
	return nil, "", fail(exitUsage, "write "+strings.Join(forms, ", "), what, scheme)
}

// resolveLocal returns the absolute directory of the data. The one in the user's data directory
// may be made silently; one that was named and is not there is more likely a slip.
func resolveLocal(a *app, dir string, existing bool) (string, error) {
	if dir == "" {
		root, err := a.userDir("XDG_DATA_HOME", ".local/share")
		return filepath.Join(root, "local"), err
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(dir); existing && errors.Is(err, fs.ErrNotExist) {
		return "", fail(exitFailed, "dlq -c local:"+dir+" send NAME makes one", "there is no broker in %s", dir)
	}
	return dir, nil
}

// openLocal opens the engine in this process, or reaches the process that has it open for long.
func openLocal(ctx context.Context, a *app, dir string) (backends.Backend, error) {
	return local.Connect(ctx, local.Options{Dir: dir, Now: a.now, Command: a.commandLine(), Stay: a.stays})
}
