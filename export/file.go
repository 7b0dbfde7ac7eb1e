package export

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// File is a file that appears under its name only when it is complete. It must be ended by
// [File.Commit] or [File.Abort]; calling Abort after Commit does nothing, so that it can
// be deferred.
type File struct {
	tmp   *os.File
	path  string
	force bool
	done  bool
}

// CreateFile begins the file path, readable by its owner alone. Unless force is set it
// fails with an error that is fs.ErrExist if there is something under that name already,
// now or when it is committed. A link under that name is replaced, not followed.
func CreateFile(path string, force bool) (*File, error) {
	info, err := os.Lstat(path)
	switch {
	case err == nil && info.IsDir():
		return nil, fmt.Errorf("%s is a directory: give the name of a file", path)
	case err == nil && !force:
		return nil, exists(path)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".dlq-*.tmp") // mode 0600
	if err != nil {
		return nil, err
	}
	return &File{tmp: tmp, path: path, force: force}, nil
}

func exists(path string) error {
	return fmt.Errorf("%s: %w: choose another name or force it", path, fs.ErrExist)
}

// Write writes to the file before it has its name.
func (f *File) Write(p []byte) (int, error) { return f.tmp.Write(p) }

// Name returns the name that the file gets.
func (f *File) Name() string { return f.path }

// Commit makes the file durable and gives it its name, in this order: after a crash there
// is the whole file or none. On an error there is none, and what was there before is
// untouched.
func (f *File) Commit() error {
	if f.done {
		return errors.New("the file is committed or aborted already")
	}
	defer f.Abort()
	if err := f.tmp.Sync(); err != nil {
		return err
	}
	if err := f.tmp.Close(); err != nil {
		return err
	}
	if err := f.publish(); err != nil {
		return err
	}
	return syncDir(filepath.Dir(f.path))
}

func (f *File) publish() error {
	if f.force {
		return os.Rename(f.tmp.Name(), f.path)
	}
	// A link, unlike a rename, never replaces what another has put there meanwhile.
	err := os.Link(f.tmp.Name(), f.path)
	if err == nil {
		return nil
	}
	if errors.Is(err, fs.ErrExist) {
		return exists(f.path)
	}
	// A file system without links: claim the name, then put the file in its place.
	claim, err := os.OpenFile(f.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return exists(f.path)
	} else if err != nil {
		return err
	}
	if err := claim.Close(); err != nil {
		return err
	}
	return os.Rename(f.tmp.Name(), f.path)
}

// Abort drops the file unless it was committed.
func (f *File) Abort() {
	if f.done {
		return
	}
	f.done = true
	_ = f.tmp.Close()           // a second Close after Commit's
	_ = os.Remove(f.tmp.Name()) // gone already if it was renamed
}

// syncDir makes the new name durable. Windows has no such call and needs none.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// SafeName turns text that may come from anywhere, such as an entity's name, into one path
// element that every file system takes: letters, digits, dot, underscore and hyphen, at
// most 120 bytes, no name that Windows reserves, no hidden file. Different texts may give
// the same name.
func SafeName(s string) string {
	const maxBytes = 120
	b := make([]byte, 0, len(s))
	for _, r := range s {
		if r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.' || r == '_') {
			b = append(b, byte(r))
		} else if len(b) > 0 && b[len(b)-1] != '_' {
			b = append(b, '_')
		}
	}
	name := strings.Trim(string(b[:min(len(b), maxBytes)]), "._")
	stem, _, _ := strings.Cut(strings.ToUpper(name), ".")
	if name == "" || isReserved(stem) {
		return "dlq_" + name[:min(len(name), maxBytes-4)]
	}
	return name
}

// isReserved reports whether Windows takes stem, in upper case, for a device.
func isReserved(stem string) bool {
	switch stem {
	case "CON", "PRN", "AUX", "NUL":
		return true
	}
	return len(stem) == 4 && (strings.HasPrefix(stem, "COM") || strings.HasPrefix(stem, "LPT")) && stem[3] >= '0' && stem[3] <= '9'
}
