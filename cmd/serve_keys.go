package cmd

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"dlq/backends/broker/sas"
)

// keysFile holds the generated keys of a data directory.
const keysFile = "dlq.keys"

// The names of the generated keys.
const (
	rootKey   = "RootManageSharedAccessKey" // as Azure calls the one that every namespace has
	sendKey   = "SendOnly"
	listenKey = "ListenOnly"
)

// generatedKeys are the keys that a server makes for itself, by their names.
func generatedKeys() []sas.Key {
	return []sas.Key{
		{Name: rootKey, Rights: sas.Manage | sas.Send | sas.Listen},
		{Name: sendKey, Rights: sas.Send},
		{Name: listenKey, Rights: sas.Listen},
	}
}

// keys returns the keys that count: those that are generated, kept in the data directory, unless
// configured ones alone do, and those of the configuration.
func (s serving) keys() ([]sas.Key, error) {
	var keys []sas.Key
	if s.mode != sas.Require {
		keys = generatedKeys()
		if err := s.fill(keys); err != nil {
			return nil, err
		}
	}
	if s.config == nil {
		return keys, nil
	}
	for _, k := range s.config.Keys {
		key := sas.Key{Name: k.Name, Entity: k.Entity, Primary: k.Primary, Secondary: k.Secondary}
		for _, right := range []struct {
			has   bool
			right sas.Rights
		}{{k.Listen, sas.Listen}, {k.Send, sas.Send}, {k.Manage, sas.Manage}} {
			if right.has {
				key.Rights |= right.right
			}
		}
		keys = append(replaced(keys, key), key)
	}
	return keys, nil
}

// replaced returns the keys without the one that another takes the place of.
func replaced(keys []sas.Key, by sas.Key) []sas.Key {
	out := keys[:0]
	for _, k := range keys {
		if k.Name != by.Name || k.Entity != by.Entity {
			out = append(out, k)
		}
	}
	return out
}

// fill gives the generated keys their values, which a data directory keeps.
func (s serving) fill(keys []sas.Key) error {
	kept := map[string]string{}
	file := filepath.Join(s.dir, keysFile)
	if s.dir != "" {
		src, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("read the keys of the server: %w", err)
		}
		if err == nil {
			if err := json.Unmarshal(src, &kept); err != nil {
				return fail(exitFailed, "remove it, and new keys are made", "%s holds no keys: %w", file, err)
			}
		}
	}
	made := false
	for i := range keys {
		value := kept[keys[i].Name]
		if value == "" {
			value, made = newKey(), true
			kept[keys[i].Name] = value
		}
		keys[i].Primary = value
	}
	if !made || s.dir == "" {
		return nil
	}
	text, err := json.MarshalIndent(kept, "", "  ")
	if err == nil {
		err = os.WriteFile(file+".new", append(text, '\n'), 0o600)
	}
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		return fmt.Errorf("keep the keys of the server: %w", err)
	}
	return nil
}

// newKey makes a key as Azure does: 32 random bytes.
func newKey() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	return base64.StdEncoding.EncodeToString(b)
}
