package sas

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
)

const redacted = "[redacted]"

// Secret is the value of a key. However it is printed, logged or marshalled, it reads
// "[redacted]"; [Secret.Reveal] alone gives the value. The zero Secret is no key at all: it
// matches nothing.
type Secret struct {
	// A pointer, because fmt prints the unexported fields of others' structs without asking
	// their methods.
	value *string
}

// NewSecret wraps the value of a key.
func NewSecret(value string) Secret {
	if value == "" {
		return Secret{}
	}
	return Secret{&value}
}

// Generate makes a new key: 32 random bytes in base64, as Azure makes them.
func Generate() Secret {
	b := make([]byte, 32)
	rand.Read(b) // never fails
	return NewSecret(base64.StdEncoding.EncodeToString(b))
}

// Reveal returns the value of the key, "" if there is none.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// Matches reports whether value is the key, in a time that does not depend on where they
// differ. No key matches nothing, "" neither.
func (s Secret) Matches(value string) bool {
	a, b := sha256.Sum256([]byte(s.Reveal())), sha256.Sum256([]byte(value))
	return s.value != nil && subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// String implements [fmt.Stringer].
func (s Secret) String() string { return redacted }

// GoString implements [fmt.GoStringer].
func (s Secret) GoString() string { return redacted }

// Format implements [fmt.Formatter], because fmt does not ask String for a verb that does not
// fit.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalJSON implements [encoding/json.Marshaler].
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// MarshalText implements [encoding.TextMarshaler].
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue implements [slog.LogValuer].
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }
