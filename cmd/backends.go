package cmd

import (
	"context"
	"path/filepath"
	"strings"

	"dlq/backends"
	"dlq/backends/local"
)

// driver is one kind of connection.
type driver struct {
	scheme string
	forms  string // how its URLs are written, for messages
	open   func(ctx context.Context, a *app, rest string) (backends.Backend, error)
}

// drivers is the one list of what a connection can be.
func drivers() []driver {
	return []driver{
		{"local", "local: (data in the user's data directory) or local:DIR", openLocal},
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

// open opens the connection that was asked for. What stands behind the scheme is not
// repeated in errors: it may hold a secret.
func (a *app) open(ctx context.Context) (backends.Backend, error) {
	scheme, rest, ok := strings.Cut(a.connection(), ":")
	var forms []string
	for _, d := range drivers() {
		if ok && strings.EqualFold(scheme, d.scheme) {
			return d.open(ctx, a, rest)
		}
		forms = append(forms, d.forms)
	}
	what := "connection scheme %q is not available"
	if !ok {
		what = "no connection is named %q"
	}
	return nil, fail(exitUsage, "write "+strings.Join(forms, ", "), what, scheme)
}

// openLocal opens the engine in this process.
func openLocal(ctx context.Context, a *app, dir string) (backends.Backend, error) {
	if dir == "" {
		root, err := a.userDir("XDG_DATA_HOME", ".local/share")
		if err != nil {
			return nil, err
		}
		dir = filepath.Join(root, "local")
	}
	return local.Open(ctx, local.Options{Dir: dir, Now: a.now, Command: a.commandLine()})
}
