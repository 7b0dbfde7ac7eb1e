package export

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func create(t *testing.T, path string, force bool, text string) error {
	t.Helper()
	f, err := CreateFile(path, force)
	if err != nil {
		return err
	}
	defer f.Abort()
	if _, err := f.Write([]byte(text)); err != nil {
		return err
	}
	return f.Commit()
}

// names lists what is in dir, temporary files included.
func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return strings.Join(list, " ")
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestCreateFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out.jsonl")
	if err := create(t, path, false, "one"); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := create(t, path, false, "two"); !errors.Is(err, fs.ErrExist) || content(t, path) != "one" {
		t.Errorf("not forced: %v, now %q", err, content(t, path))
	}
	if err := create(t, path, true, "three"); err != nil || content(t, path) != "three" {
		t.Errorf("forced: %v, now %q", err, content(t, path))
	}
	if err := create(t, dir, true, "x"); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("a directory: %v", err)
	}
	if err := create(t, filepath.Join(dir, "no", "such"), false, "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
	if got := names(t, dir); got != "out.jsonl" {
		t.Errorf("left behind: %s", got)
	}
}

func TestAbortLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	f, err := CreateFile(filepath.Join(dir, "out"), false)
	if err != nil {
		t.Fatal(err)
	}
	f.Abort()
	f.Abort()
	if err := f.Commit(); err == nil || names(t, dir) != "" {
		t.Errorf("%v, left %q", err, names(t, dir))
	}
}

// Another process may take the name between the first look and the end of a long export.
func TestCommitNeverOverwritesALatecomer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	f, err := CreateFile(path, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Commit(); !errors.Is(err, fs.ErrExist) || content(t, path) != "theirs" {
		t.Errorf("%v, now %q", err, content(t, path))
	}
	if got := names(t, filepath.Dir(path)); got != "out" {
		t.Errorf("left behind: %s", got)
	}
}

func TestCreateFileReplacesLinks(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := os.WriteFile(target, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if err := create(t, link, false, "x"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("not forced: %v", err)
	}
	if err := create(t, link, true, "x"); err != nil || content(t, target) != "precious" || content(t, link) != "x" {
		t.Errorf("forced: %v, target %q", err, content(t, target))
	}
}

func TestSafeName(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"orders", "orders"},
		{"billing/Subscriptions/invoices", "billing_Subscriptions_invoices"},
		{"orders/$DeadLetterQueue", "orders_DeadLetterQueue"},
		{"../../etc/passwd", "etc_passwd"},
		{".bashrc", "bashrc"},
		{"", "dlq_"},
		{"...", "dlq_"},
		{"con", "dlq_con"},
		{"COM1.txt", "dlq_COM1.txt"},
		{"LPT9", "dlq_LPT9"},
		{"COMX", "COMX"},
		{"a\x1b[31m\u202eb", "a_31m_b"},
		{"grüße", "gr_e"},
		{"a:b*c", "a_b_c"},
		{strings.Repeat("x", 500), strings.Repeat("x", 120)},
	} {
		if got := SafeName(tt.in); got != tt.want {
			t.Errorf("SafeName(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func FuzzSafeName(f *testing.F) {
	f.Add("orders/$DeadLetterQueue")
	f.Add("nul.")
	f.Fuzz(func(t *testing.T, s string) {
		got := SafeName(s)
		if !filepath.IsLocal(got) || len(got) > 120 || strings.Trim(got, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != "" || got[0] == '.' {
			t.Errorf("%q became %q", s, got)
		}
	})
}
