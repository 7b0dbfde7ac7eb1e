package sas

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Mode says which tokens a server takes.
type Mode string

// The modes.
const (
	// Keys verifies signatures against the keyring. On loopback it takes the published
	// development key and any bearer token, too.
	Keys Mode = "keys"
	// Any takes everything, what is expired or no token at all included.
	Any Mode = "any"
	// Require verifies signatures against the keyring and takes nothing else.
	Require Mode = "require"
)

// ParseMode reads a mode.
func ParseMode(s string) (Mode, error) {
	if m := Mode(s); slices.Contains([]Mode{Keys, Any, Require}, m) {
		return m, nil
	}
	return "", fmt.Errorf("%q is not a way to authenticate; use %s, %s or %s", s, Keys, Any, Require)
}

// The kinds of tokens that clients put.
const (
	KindSAS     = "servicebus.windows.net:sastoken"
	KindJWT     = "jwt"
	KindAMQPJWT = "amqp:jwt"
	KindAMQPSWT = "amqp:swt"
)

// The development key that the official emulator documents, and everyone's samples contain.
const (
	RootKeyName    = "RootManageSharedAccessKey"
	DevelopmentKey = "SAS_KEY_VALUE"
)

// Gate decides which tokens a server takes. It is not to be changed once it is used; its methods
// may be called at the same time.
type Gate struct {
	Mode     Mode
	Keyring  *Keyring
	Loopback bool             // only this machine can reach the server: what cannot be verified counts, in mode Keys
	Now      func() time.Time // nil: time.Now
}

// Open reports whether a peer may do everything without any token. A nil gate is open.
func (g *Gate) Open() bool { return g == nil || g.Mode == Any }

// Token tells what a token of a kind entitles to. The kind "" is for a whole Authorization
// header, which says itself what it is. Nothing can be verified of a bearer token (we are not its
// audience, and have no keys of its issuer); where one is taken it gives all rights, until the
// time it says itself, if it says one.
//
// The errors are those of [Keyring.Verify] and [ErrBearer].
func (g *Gate) Token(kind, text string) (Claim, error) {
	now := time.Now()
	if g.Now != nil {
		now = g.Now()
	}
	switch {
	case g.Mode == Any:
		return Claim{Rights: Manage}, nil
	case kind == KindSAS || strings.HasPrefix(text, scheme):
		return g.signature(text, now)
	}
	bearer, ok := bearerToken(kind, text)
	switch {
	case !ok:
		return Claim{}, ErrMalformed
	case !g.lenient():
		return Claim{}, ErrBearer
	}
	c := Claim{Rights: Manage, Expires: bearerExpiry(bearer)}
	if !c.Expires.IsZero() && !now.Before(c.Expires) {
		return Claim{}, &ExpiredError{Expires: c.Expires, Now: now}
	}
	return c, nil
}

// Plain tells what the name and the value of a key entitle to, as SASL PLAIN sends them. The
// errors are those of [Keyring.Plain].
func (g *Gate) Plain(user, password string) (Claim, error) {
	if g.Mode == Any {
		return Claim{KeyName: user, Rights: Manage}, nil
	}
	c, err := g.Keyring.Plain(user, password)
	if key, ok := g.development(user); err != nil && ok && key.Primary.Matches(password) {
		return Claim{KeyName: user, Rights: key.Rights}, nil
	}
	return c, err
}

// signature verifies a shared access signature, with the development key if that counts.
func (g *Gate) signature(text string, now time.Time) (Claim, error) {
	c, err := g.Keyring.Verify(text, now)
	if !errors.Is(err, ErrSignature) && !errors.Is(err, ErrUnknownKey) {
		return c, err
	}
	t, _ := parse(text) // Verify could
	key, ok := g.development(t.keyName)
	if !ok {
		return c, err
	}
	return t.claim([]Key{key}, now)
}

// lenient reports whether what everybody knows is good enough.
func (g *Gate) lenient() bool { return g.Mode == Keys && g.Loopback }

// development returns the development key under a name, if it counts. The official emulator does
// not look at values; here the name is that of any key, and the value has to be right.
func (g *Gate) development(name string) (Key, bool) {
	known := name == RootKeyName || slices.ContainsFunc(g.Keyring.keys, func(k Key) bool { return k.Name == name })
	return Key{Name: name, Primary: NewSecret(DevelopmentKey), Rights: Manage}, known && g.lenient()
}

// bearerToken takes the token out of an Authorization header, whose scheme compares without
// case, and which is the bare token from the Azure SDK for Go; a token of a kind is one already.
func bearerToken(kind, text string) (string, bool) {
	switch kind {
	case "":
		if scheme, token, ok := strings.Cut(text, " "); ok && strings.EqualFold(scheme, "Bearer") {
			text = token
		}
		return text, text != "" && len(text) <= maxToken && !strings.Contains(text, " ")
	case KindJWT, KindAMQPJWT, KindAMQPSWT:
		return text, text != "" && len(text) <= maxToken
	}
	return "", false
}

// bearerExpiry reads the time from the claims of a JWT; zero if it is none or has none.
func bearerExpiry(bearer string) time.Time {
	parts := strings.Split(bearer, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}
	}
	var claims struct {
		Exp float64 `json:"exp"`
	}
	if json.Unmarshal(payload, &claims) != nil || claims.Exp <= 0 || claims.Exp >= math.Pow10(maxExpiryDigits) {
		return time.Time{}
	}
	return time.Unix(int64(claims.Exp), 0)
}
