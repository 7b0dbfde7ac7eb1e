package sas

import (
	"slices"
	"strings"
	"time"
)

// Key is an authorization rule: a name, its two keys, of which either is good, and what they
// entitle to.
type Key struct {
	Name               string
	Primary, Secondary Secret
	Rights             Rights
	Entity             string // a queue, a topic or all below a path; "" is the namespace
}

// Keyring holds the keys of a namespace. Use [NewKeyring]. Its methods may be called at the same
// time, but for [Keyring.SetLookup].
type Keyring struct {
	keys   []Key
	lookup func(entity, name string) (Key, bool)
}

// NewKeyring makes a keyring of the keys of the namespace, and of entities if they are fixed.
func NewKeyring(keys ...Key) *Keyring {
	return &Keyring{keys: slices.Clone(keys)}
}

// SetLookup makes the keyring ask also for the authorization rules of entities; it is to be called
// before the keyring is used. Lookup gets a path in lower case as [Resource] makes it, which need
// not be an entity, and the name of a rule: for a token for "topic/subscriptions/s" it is asked for
// that, for "topic/subscriptions", for "topic" and at last for "", the namespace. A key that it
// finds counts for the path it was asked for; for the namespace, it counts for its Key.Entity, or
// not at all if it has none. Lookup may be called from several goroutines.
func (k *Keyring) SetLookup(lookup func(entity, name string) (Key, bool)) { k.lookup = lookup }

// Verify tells what a shared access signature entitles to. A key of an entity is good for that
// entity and below, also if the token's resource is wider; a key of the namespace is good for
// what the token names.
//
// The errors are [ErrMalformed], [ErrUnknownKey], [ErrSignature] and, for a token that is genuine
// otherwise, [ErrExpired].
func (k *Keyring) Verify(tokenText string, now time.Time) (Claim, error) {
	t, err := parse(tokenText)
	if err != nil {
		return Claim{}, err
	}
	return t.claim(k.named(t.keyName, t.resource), now)
}

// Plain tells what the name and the value of a key entitle to, as SASL PLAIN sends them. The
// errors are [ErrUnknownKey] and [ErrSignature].
func (k *Keyring) Plain(user, password string) (Claim, error) {
	keys := k.named(user, "")
	if len(keys) == 0 {
		return Claim{}, ErrUnknownKey
	}
	for _, key := range keys {
		primary, secondary := key.Primary.Matches(password), key.Secondary.Matches(password)
		if primary || secondary {
			return Claim{KeyName: key.Name, Resource: normalPath(key.Entity), Rights: key.Rights}, nil
		}
	}
	return Claim{}, ErrSignature
}

// named returns the keys of a name that have to do with a resource: those of the namespace, of
// entities above it and of entities below it.
func (k *Keyring) named(name, resource string) []Key {
	var found []Key
	take := func(key Key) {
		if entity := normalPath(key.Entity); covers(entity, resource) || covers(resource, entity) {
			found = append(found, key)
		}
	}
	for _, key := range k.keys {
		if key.Name == name {
			take(key)
		}
	}
	for path := resource; k.lookup != nil; path = path[:max(strings.LastIndexByte(path, '/'), 0)] {
		key, ok := k.lookup(path, name)
		key.Name = name
		if path != "" {
			key.Entity = path
		}
		if ok && key.Entity != "" {
			take(key)
		}
		if path == "" {
			break
		}
	}
	return found
}
