package sas

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	scheme = "SharedAccessSignature "

	// maxToken is far above what clients send: a signature has some 300 bytes, a bearer token
	// a few thousand.
	maxToken = 32 << 10
	// maxResource is above what a path can have: 260 characters of a topic, 50 of a subscription,
	// a host and a query. It bounds how often keys are looked up for a token of which nothing is
	// known to be true yet.
	maxResource = 1 << 10
	// maxExpiryDigits keeps se within what a time and its texts can hold.
	maxExpiryDigits = 11
)

// Why a token is refused.
var (
	ErrMalformed  = errors.New("the token is malformed")
	ErrUnknownKey = errors.New("the token is signed with a key that does not exist")
	ErrSignature  = errors.New("the token has an invalid signature")
	ErrExpired    = errors.New("the token is expired") // always an [*ExpiredError]
	ErrBearer     = errors.New("bearer tokens cannot be verified here: use a shared access key")
)

// ExpiredError says when a token expired. It is [ErrExpired].
type ExpiredError struct{ Expires, Now time.Time }

func (e *ExpiredError) Error() string {
	return fmt.Sprintf("%v: it expired %s, now is %s", ErrExpired, e.Expires.UTC().Format(time.RFC3339), e.Now.UTC().Format(time.RFC3339))
}

// Is makes the error [ErrExpired].
func (e *ExpiredError) Is(target error) bool { return target == ErrExpired }

// Claim is what a token or a key entitles to.
type Claim struct {
	KeyName  string
	Resource string // a path as [Resource] makes it, and all below; "" is the namespace
	Rights   Rights
	Expires  time.Time // zero: never
}

// Allows reports whether the claim gives all the rights on an entity or a part of one, such as
// "orders", "topic/Subscriptions/s" or "orders/$DeadLetterQueue". It does not look at the time.
func (c Claim) Allows(entity string, r Rights) bool {
	return c.Rights.Has(r) && covers(c.Resource, normalPath(entity))
}

// token is a shared access signature, taken apart.
type token struct {
	signed    string // sr and se as received
	signature string // in base64
	keyName   string
	resource  string
	expires   time.Time
}

// parse takes a token apart. Everything in it has to be known, and there once, so that what is
// not signed carries no meaning.
func parse(text string) (token, error) {
	rest, ok := strings.CutPrefix(text, scheme)
	if !ok || len(text) > maxToken {
		return token{}, ErrMalformed
	}
	fields := make(map[string]string, 4)
	for pair := range strings.SplitSeq(rest, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if _, twice := fields[name]; twice || value == "" || len(fields) == 4 {
			return token{}, ErrMalformed
		}
		fields[name] = value
	}
	resource, err1 := url.QueryUnescape(fields["sr"])
	signature, err2 := url.QueryUnescape(fields["sig"])
	keyName, err3 := url.QueryUnescape(fields["skn"])
	expires, ok := parseExpiry(fields["se"])
	if errors.Join(err1, err2, err3) != nil || resource == "" || len(resource) > maxResource || signature == "" || keyName == "" || !ok {
		return token{}, ErrMalformed
	}
	return token{
		signed: fields["sr"] + "\n" + fields["se"], signature: signature, keyName: keyName,
		resource: Resource(resource), expires: expires,
	}, nil
}

// parseExpiry reads seconds since 1970, in digits alone.
func parseExpiry(s string) (time.Time, bool) {
	if s == "" || len(s) > maxExpiryDigits || strings.Trim(s, "0123456789") != "" {
		return time.Time{}, false
	}
	seconds, err := strconv.ParseInt(s, 10, 64)
	return time.Unix(seconds, 0), err == nil
}

// signedBy reports whether the key made the signature. It compares in constant time, and the
// texts rather than the bytes, because base64 has several texts for the same bytes.
func (t token) signedBy(key Secret) bool {
	want := sign(t.signed, key.Reveal())
	return key.value != nil && subtle.ConstantTimeCompare([]byte(want), []byte(t.signature)) == 1
}

func sign(text, key string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// claim finds the key that signed, and narrows the resource to what the key is for.
func (t token) claim(keys []Key, now time.Time) (Claim, error) {
	if len(keys) == 0 {
		return Claim{}, ErrUnknownKey
	}
	for _, key := range keys {
		// Both are tried always, so that time does not tell which one it was.
		primary, secondary := t.signedBy(key.Primary), t.signedBy(key.Secondary)
		if !primary && !secondary {
			continue
		}
		if !now.Before(t.expires) {
			return Claim{}, &ExpiredError{Expires: t.expires, Now: now}
		}
		c := Claim{KeyName: key.Name, Resource: t.resource, Rights: key.Rights, Expires: t.expires}
		if entity := normalPath(key.Entity); covers(c.Resource, entity) {
			c.Resource = entity
		}
		return c, nil
	}
	return Claim{}, ErrSignature
}

// Sign makes a token for an audience, such as "amqps://host/entity": whoever has it acts with
// the rights of the key on that entity and all below it, until it expires.
func Sign(audience, keyName, key string, expires time.Time) string {
	sr, se := url.QueryEscape(audience), strconv.FormatInt(expires.Unix(), 10)
	return scheme + "sr=" + sr + "&sig=" + url.QueryEscape(sign(sr+"\n"+se, key)) + "&se=" + se + "&skn=" + url.QueryEscape(keyName)
}
