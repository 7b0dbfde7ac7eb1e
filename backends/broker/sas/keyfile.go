package sas

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// The names of the keys that [LoadOrCreate] makes, besides [RootKeyName].
const (
	SendOnlyName   = "SendOnly"
	ListenOnlyName = "ListenOnly"
)

const keyFile = "sas-keys.json"

// storedKey is a key in the file, which has its secrets in clear.
type storedKey struct {
	Name      string   `json:"name"`
	Primary   string   `json:"primaryKey"`
	Secondary string   `json:"secondaryKey,omitempty"`
	Rights    []string `json:"rights"`
	Entity    string   `json:"entity,omitempty"`
}

// LoadOrCreate returns the keys kept in a directory, which has to exist. The first time it makes
// one key with each set of rights, called RootManageSharedAccessKey, SendOnly and ListenOnly. The
// file is its owner's alone; one that others may read is refused.
func LoadOrCreate(dir string) ([]Key, error) {
	path := filepath.Join(dir, keyFile)
	keys, err := load(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return keys, err
	}
	keys = []Key{
		{Name: RootKeyName, Primary: Generate(), Secondary: Generate(), Rights: Manage},
		{Name: SendOnlyName, Primary: Generate(), Secondary: Generate(), Rights: Send},
		{Name: ListenOnlyName, Primary: Generate(), Secondary: Generate(), Rights: Listen},
	}
	return keys, save(path, keys)
}

func load(path string) ([]Key, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("others may read the keys in %s: run chmod 600 on it", path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	damaged := func(why error) error {
		return fmt.Errorf("the keys in %s are damaged (%w): restore the file, or remove it and new keys are made", path, why)
	}
	var stored []storedKey
	if err := json.Unmarshal(b, &stored); err != nil {
		return nil, damaged(errors.New("not the JSON that was written")) // err could quote a key
	}
	keys := make([]Key, len(stored))
	for i, s := range stored {
		rights, err := ParseRights(s.Rights...)
		switch {
		case err != nil:
			return nil, damaged(err)
		case s.Name == "" || s.Primary == "" || rights == 0:
			return nil, damaged(fmt.Errorf("key %d lacks a name, a value or a right", i+1))
		}
		keys[i] = Key{Name: s.Name, Primary: NewSecret(s.Primary), Secondary: NewSecret(s.Secondary), Rights: rights, Entity: s.Entity}
	}
	if len(keys) == 0 {
		return nil, damaged(errors.New("there are none"))
	}
	return keys, nil
}

// save writes the file whole or not at all.
func save(path string, keys []Key) error {
	stored := make([]storedKey, len(keys))
	for i, k := range keys {
		stored[i] = storedKey{k.Name, k.Primary.Reveal(), k.Secondary.Reveal(), k.Rights.Names(), k.Entity}
	}
	b, err := json.MarshalIndent(stored, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), keyFile+".*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // there only if something failed
	_, err = f.Write(append(b, '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
