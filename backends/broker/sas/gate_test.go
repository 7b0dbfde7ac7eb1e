package sas_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"testing"
	"time"

	"dlq/backends/broker/sas"
)

func jwt(claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"none"}`)) + "." + encode([]byte(claims)) + "." + encode([]byte("signature"))
}

func TestGate(t *testing.T) {
	later, before := now.Add(time.Hour), now.Add(-time.Hour)
	valid := sas.Sign("sb://h/orders", "Sender", "send", later)
	expired := sas.Sign("sb://h/orders", "Sender", "send", before)
	wrong := sas.Sign("sb://h/orders", "Sender", "guess", later)
	development := sas.Sign("sb://h/orders", sas.RootKeyName, sas.DevelopmentKey, later)
	borrowed := sas.Sign("sb://h/orders", "Sender", sas.DevelopmentKey, later)
	strange := sas.Sign("sb://h/orders", "Nobody", sas.DevelopmentKey, later)
	stale := sas.Sign("sb://h/orders", "Sender", sas.DevelopmentKey, before)
	bearer := jwt(fmt.Sprintf(`{"exp":%d}`, later.Unix()))
	old := jwt(fmt.Sprintf(`{"exp":%d}`, before.Unix()))

	local, remote, never := sas.Gate{Mode: sas.Keys, Loopback: true}, sas.Gate{Mode: sas.Keys}, sas.Gate{Mode: sas.Require, Loopback: true}
	anything := sas.Gate{Mode: sas.Any, Loopback: true}
	for _, test := range []struct {
		name, kind, token              string
		local, remote, never, anything error
	}{
		{"a valid token", sas.KindSAS, valid, nil, nil, nil, nil},
		{"a valid token in a header", "", valid, nil, nil, nil, nil},
		{"a valid token of the wrong kind", sas.KindJWT, valid, nil, nil, nil, nil},
		{"a wrong token", sas.KindSAS, wrong, sas.ErrSignature, sas.ErrSignature, sas.ErrSignature, nil},
		{"a wrong token as a bearer token", sas.KindJWT, wrong, sas.ErrSignature, sas.ErrSignature, sas.ErrSignature, nil},
		{"an expired token", sas.KindSAS, expired, sas.ErrExpired, sas.ErrExpired, sas.ErrExpired, nil},
		{"the development key", sas.KindSAS, development, nil, sas.ErrSignature, sas.ErrSignature, nil},
		{"the development key in another name", sas.KindSAS, borrowed, nil, sas.ErrSignature, sas.ErrSignature, nil},
		{"the development key in no name", sas.KindSAS, strange, sas.ErrUnknownKey, sas.ErrUnknownKey, sas.ErrUnknownKey, nil},
		{"the development key, expired", sas.KindSAS, stale, sas.ErrExpired, sas.ErrSignature, sas.ErrSignature, nil},
		{"a bearer token", sas.KindJWT, bearer, nil, sas.ErrBearer, sas.ErrBearer, nil},
		{"a bearer token in a header", "", "bearer " + bearer, nil, sas.ErrBearer, sas.ErrBearer, nil},
		{"a bare bearer token in a header", "", bearer, nil, sas.ErrBearer, sas.ErrBearer, nil},
		{"an expired bearer token", sas.KindAMQPJWT, old, sas.ErrExpired, sas.ErrBearer, sas.ErrBearer, nil},
		{"an opaque bearer token", sas.KindAMQPSWT, "opaque", nil, sas.ErrBearer, sas.ErrBearer, nil},
		{"a bearer token as a signature", sas.KindSAS, bearer, sas.ErrMalformed, sas.ErrMalformed, sas.ErrMalformed, nil},
		{"no token", sas.KindJWT, "", sas.ErrMalformed, sas.ErrMalformed, sas.ErrMalformed, nil},
		{"no header", "", "", sas.ErrMalformed, sas.ErrMalformed, sas.ErrMalformed, nil},
		{"another scheme", "", "Basic QTpC", sas.ErrMalformed, sas.ErrMalformed, sas.ErrMalformed, nil},
		{"another kind", "saml", bearer, sas.ErrMalformed, sas.ErrMalformed, sas.ErrMalformed, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, at := range []struct {
				gate sas.Gate
				want error
			}{{local, test.local}, {remote, test.remote}, {never, test.never}, {anything, test.anything}} {
				gate := at.gate
				gate.Keyring, gate.Now = testKeyring(), func() time.Time { return now }
				c, err := gate.Token(test.kind, test.token)
				if !errors.Is(err, at.want) || (err == nil) != (c.Rights != 0) {
					t.Errorf("%s, loopback %v: %+v, %v, want %v", gate.Mode, gate.Loopback, c, err, at.want)
				}
			}
		})
	}
}

func TestGateGivesRootRightsForTheDevelopmentKey(t *testing.T) {
	gate := sas.Gate{Mode: sas.Keys, Loopback: true, Keyring: testKeyring(), Now: func() time.Time { return now }}
	c, err := gate.Token(sas.KindSAS, sas.Sign("sb://h/orders", "Listener", sas.DevelopmentKey, now.Add(time.Hour)))
	if err != nil || !c.Allows("orders", sas.Manage) || c.Allows("payments", sas.Listen) {
		t.Errorf("Token = %+v, %v", c, err)
	}
	if c, err = gate.Plain("Listener", sas.DevelopmentKey); err != nil || !c.Allows("orders", sas.Manage) {
		t.Errorf("Plain = %+v, %v", c, err)
	}
	gate.Loopback = false
	if c, err = gate.Plain("Listener", sas.DevelopmentKey); !errors.Is(err, sas.ErrSignature) {
		t.Errorf("Plain, not on loopback = %+v, %v", c, err)
	}
	gate.Mode = sas.Any
	if c, err = gate.Plain("x", "y"); err != nil || !c.Allows("", sas.Manage) {
		t.Errorf("Plain, where anything goes = %+v, %v", c, err)
	}
}

func TestBearerTokenExpires(t *testing.T) {
	gate := sas.Gate{Mode: sas.Keys, Loopback: true, Keyring: testKeyring(), Now: func() time.Time { return now }}
	for claims, want := range map[string]time.Time{
		`{"exp":1800000060}`:   now.Add(time.Minute),
		`{"exp":1800000060.9}`: now.Add(time.Minute),
		`{"exp":"soon"}`:       {},
		`{"exp":1e300}`:        {},
		`{"exp":-1}`:           {},
		`{}`:                   {},
		`[`:                    {},
	} {
		if c, err := gate.Token(sas.KindJWT, jwt(claims)); err != nil || !c.Expires.Equal(want) {
			t.Errorf("a token with the claims %s expires %v, %v, want %v", claims, c.Expires, err, want)
		}
	}
}

func TestParseMode(t *testing.T) {
	for _, mode := range []sas.Mode{sas.Keys, sas.Any, sas.Require} {
		if got, err := sas.ParseMode(string(mode)); got != mode || err != nil {
			t.Errorf("ParseMode(%q) = %q, %v", mode, got, err)
		}
	}
	if _, err := sas.ParseMode("none"); err == nil {
		t.Error("ParseMode took a mode that does not exist")
	}
}
