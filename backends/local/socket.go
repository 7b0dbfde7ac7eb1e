package local

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
)

const (
	socketFile = "dlq.sock" // where an owner that stays listens
	// maxSocketPath is what every system takes as the address of a socket: macOS has the
	// least, 104 bytes with the one that ends it.
	maxSocketPath = 100
)

// listen makes the socket of an owned directory. What a dead owner left in its place goes. A
// directory whose path is too long for a socket, or whose file system has none, gets it in
// the system's directory for temporary files.
func listen(dir string) (l net.Listener, remove func() error, err error) {
	path := filepath.Join(dir, socketFile)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, err
	}
	if len(path) <= maxSocketPath {
		if l, err = listenAt(path); err == nil {
			return l, func() error { return nil }, nil // closing removes it
		}
	}
	elsewhere, err := os.MkdirTemp("", "dlq-")
	if err != nil {
		return nil, nil, err
	}
	remove = func() error { return os.RemoveAll(elsewhere) }
	if l, err = listenAt(filepath.Join(elsewhere, socketFile)); err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	return l, remove, nil
}

func listenAt(path string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "unix", path) // it does not wait
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}
