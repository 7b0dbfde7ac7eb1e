package sas_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dlq/backends/broker/sas"
)

func TestKeysAreMadeOnceAndKept(t *testing.T) {
	dir := t.TempDir()
	made, err := sas.LoadOrCreate(dir)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := sas.LoadOrCreate(dir)
	if err != nil || len(loaded) != len(made) {
		t.Fatalf("loaded %d keys, %v, want %d", len(loaded), err, len(made))
	}
	want := map[string]sas.Rights{sas.RootKeyName: sas.Manage, sas.SendOnlyName: sas.Send, sas.ListenOnlyName: sas.Listen}
	for i, key := range loaded {
		if key.Rights != want[key.Name] || len(key.Primary.Reveal()) != 44 || !made[i].Primary.Matches(key.Primary.Reveal()) ||
			!made[i].Secondary.Matches(key.Secondary.Reveal()) || key.Primary.Matches(key.Secondary.Reveal()) {
			t.Errorf("key %s with %v is not what was made", key.Name, key.Rights)
		}
		delete(want, key.Name)
	}
	if len(want) != 0 {
		t.Errorf("not made: %v", want)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Fatalf("files: %v, %v, want one", files, err)
	}
	if info, err := files[0].Info(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v, want 0600", info.Mode(), err)
	}
}

func TestDamagedKeysAreNotReplaced(t *testing.T) {
	for name, content := range map[string]string{
		"not JSON":   `[{"name":"canary-key`,
		"no keys":    `[]`,
		"no value":   `[{"name":"a","rights":["Send"]}]`,
		"no rights":  `[{"name":"a","primaryKey":"canary-key"}]`,
		"bad rights": `[{"name":"a","primaryKey":"canary-key","rights":["Own"]}]`,
	} {
		t.Run(name, func(t *testing.T) {
			path := keyPath(t)
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			keys, err := sas.LoadOrCreate(filepath.Dir(path))
			if err == nil || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "canary") {
				t.Errorf("LoadOrCreate = %v, %v", keys, err)
			}
			if after, err := os.ReadFile(path); err != nil || string(after) != content {
				t.Errorf("the file is now %q, %v", after, err)
			}
		})
	}
}

func TestKeysThatOthersMayReadAreRefused(t *testing.T) {
	path := keyPath(t)
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := sas.LoadOrCreate(filepath.Dir(path)); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("LoadOrCreate: %v", err)
	}
}

// keyPath makes keys and returns their file.
func keyPath(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if _, err := sas.LoadOrCreate(dir); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	return filepath.Join(dir, files[0].Name())
}

func TestSecretIsNeverPrinted(t *testing.T) {
	const canary = "canary-4711"
	secret := sas.NewSecret(canary)
	key := sas.Key{Name: "n", Primary: secret, Secondary: secret}
	hidden := struct{ key sas.Key }{key}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%p", "%10.3s"} {
		for _, v := range []any{secret, &secret, key, &key, []sas.Key{key}, hidden, sas.NewKeyring(key), fmt.Errorf("%v", key)} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
	}
	for _, v := range []any{secret, key, map[string]sas.Secret{"a": secret}} {
		b, err := json.Marshal(v)
		if err != nil || !bytes.Contains(b, []byte(`"[redacted]"`)) {
			t.Errorf("Marshal = %s, %v", b, err)
		}
		out.Write(b)
	}
	slog.New(slog.NewTextHandler(&out, nil)).Info("text", "secret", secret, "key", key)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("json", "secret", secret, "key", key)
	for _, form := range []string{canary, fmt.Sprintf("%x", canary), fmt.Sprintf("%X", canary), canary[:3] + "\n"} {
		if strings.Contains(out.String(), form) {
			t.Errorf("%q is in\n%s", form, out.String())
		}
	}
	if !strings.Contains(out.String(), "[redacted]") || secret.Reveal() != canary {
		t.Error("the test shows nothing")
	}
}

func TestNoSecretMatchesNothing(t *testing.T) {
	if none := (sas.Secret{}); none.Matches("") || sas.NewSecret("").Matches("") || none.Reveal() != "" {
		t.Error("no secret matches the empty one")
	}
}
