package sigv4

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	timeForm = "20060102T150405Z"
	skew     = 15 * time.Minute
	maxLife  = 604_800 // seconds, of a presigned URL
	service  = "sqs"
)

// Verifier verifies signatures. Its methods may be called concurrently.
type Verifier struct {
	Secret func(accessKey string) (secret string, ok bool) // required
	Now    func() time.Time                                // nil: time.Now

	mu   sync.Mutex
	keys map[keyOf][]byte
}

// keyOf is what a signing key is derived from.
type keyOf struct{ secret, date, region string }

// maxKeys bounds the derived keys that are kept.
const maxKeys = 1024

// Verify verifies the signature of a request, whose body is given, and returns who has signed it.
// The error is [ErrUnsigned] or an [Error]. It blocks on nothing.
func (v *Verifier) Verify(r *http.Request, body []byte) (Credential, error) {
	s, err := parse(r)
	if err != nil {
		return Credential{}, err
	}
	if s.Service != service {
		return Credential{}, &Error{BadSignature, "Credential should be scoped to correct service: '" + service + "'."}
	}
	if err := v.fresh(&s); err != nil {
		return Credential{}, err
	}
	secret, ok := v.Secret(s.AccessKey)
	if !ok {
		return Credential{}, &Error{UnknownKey, "The security token included in the request is invalid."}
	}
	payload, err := payloadHash(r, body, s.Presigned)
	if err != nil {
		return Credential{}, err
	}
	canonical := canonicalRequest(r, &s, payload)
	sum := sha256.Sum256(canonical)
	scope := s.Date + "/" + s.Region + "/" + s.Service + "/aws4_request"
	mac := hmac.New(sha256.New, v.key(keyOf{secret, s.Date, s.Region}))
	mac.Write([]byte(Algorithm + "\n" + s.time + "\n" + scope + "\n" + hex.EncodeToString(sum[:])))
	want := hex.EncodeToString(mac.Sum(nil))
	if subtle.ConstantTimeCompare([]byte(want), []byte(s.value)) != 1 {
		return Credential{}, &Error{BadSignature, "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details."}
	}
	return s.Credential, nil
}

// fresh checks the time of a signature.
func (v *Verifier) fresh(s *signature) error {
	at, err := time.Parse(timeForm, s.time)
	if err != nil || len(s.time) != len(timeForm) {
		return malformed("Date must be in ISO-8601 'basic format'. Got '" + s.time + "'.")
	}
	if at.Format("20060102") != s.Date {
		return &Error{BadSignature, "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: '" + s.Date + "' != '" + s.time + "'."}
	}
	now := time.Now()
	if v.Now != nil {
		now = v.Now()
	}
	until := at.Add(skew)
	if s.Presigned {
		life, err := strconv.ParseUint(s.expires, 10, 32)
		if err != nil || life < 1 || life > maxLife {
			return malformed("X-Amz-Expires must be a number of seconds from 1 to 604800.")
		}
		until = at.Add(time.Duration(life) * time.Second)
	}
	switch {
	case now.After(until):
		return &Error{Expired, "Signature expired: " + s.time + " is now earlier than " + now.UTC().Add(-until.Sub(at)).Format(timeForm) + " (" + now.UTC().Format(timeForm) + " - " + until.Sub(at).String() + ".)"}
	case at.After(now.Add(skew)):
		return &Error{Expired, "Signature not yet current: " + s.time + " is still later than " + now.UTC().Add(skew).Format(timeForm) + " (" + now.UTC().Format(timeForm) + " + 15 min.)"}
	}
	return nil
}

// key derives the key that signs on a day for a region, or finds it.
func (v *Verifier) key(of keyOf) []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	if key, ok := v.keys[of]; ok {
		return key
	}
	key := []byte("AWS4" + of.secret)
	for _, part := range []string{of.date, of.region, service, "aws4_request"} {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	if v.keys == nil || len(v.keys) >= maxKeys {
		v.keys = make(map[keyOf][]byte)
	}
	v.keys[of] = key
	return key
}

// payloadHash is the hash that the signature covers: of the body as it came.
func payloadHash(r *http.Request, body []byte, presigned bool) (string, error) {
	sum := sha256.Sum256(body)
	hash := hex.EncodeToString(sum[:])
	if said := r.Header.Get("X-Amz-Content-Sha256"); said != "" && !presigned && said != hash {
		return "", &Error{BadSignature, "The provided 'x-amz-content-sha256' header does not match what was computed."}
	}
	return hash, nil
}

// canonicalRequest is the form of a request that is signed.
func canonicalRequest(r *http.Request, s *signature, payload string) []byte {
	b := make([]byte, 0, 512)
	b = append(append(b, r.Method...), '\n')
	b = append(appendPath(b, r.URL), '\n')
	b = append(appendQuery(b, r.URL.RawQuery), '\n')
	for _, name := range s.headers {
		b = append(append(b, name...), ':')
		b = append(appendHeader(b, r, name), '\n')
	}
	b = append(b, '\n')
	b = append(append(b, strings.Join(s.headers, ";")...), '\n')
	return append(b, payload...)
}

// appendPath writes the path with everything encoded once more.
func appendPath(b []byte, u *url.URL) []byte {
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	return appendEscaped(b, path, true)
}

// appendQuery writes the parameters in their order, without the signature itself.
func appendQuery(b []byte, raw string) []byte {
	if raw == "" {
		return b
	}
	type parameter struct{ name, value string }
	var ps []parameter
	for part := range strings.SplitSeq(raw, "&") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		name, value = reescape(name), reescape(value)
		if name != "X-Amz-Signature" {
			ps = append(ps, parameter{name, value})
		}
	}
	slices.SortFunc(ps, func(x, y parameter) int {
		if d := strings.Compare(x.name, y.name); d != 0 {
			return d
		}
		return strings.Compare(x.value, y.value)
	})
	for i, p := range ps {
		if i > 0 {
			b = append(b, '&')
		}
		b = append(append(append(b, p.name...), '='), p.value...)
	}
	return b
}

// reescape writes a part of a query string as it is signed, however the client has escaped it.
func reescape(s string) string {
	plain, err := url.QueryUnescape(s)
	if err != nil {
		return s
	}
	return string(appendEscaped(nil, plain, false))
}

// appendEscaped escapes everything but letters, digits and "-._~", and in a path "/".
func appendEscaped(b []byte, s string, path bool) []byte {
	const digits = "0123456789ABCDEF"
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '.', c == '_', c == '~', path && c == '/':
			b = append(b, c)
		default:
			b = append(b, '%', digits[c>>4], digits[c&15])
		}
	}
	return b
}

// appendHeader writes the values of a header, with single spaces. net/http keeps some of them apart.
func appendHeader(b []byte, r *http.Request, name string) []byte {
	values := r.Header.Values(name)
	switch {
	case name == "host":
		values = []string{r.Host}
	case name == "content-length" && len(values) == 0 && r.ContentLength >= 0:
		values = []string{strconv.FormatInt(r.ContentLength, 10)}
	}
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendSpaced(b, strings.TrimSpace(v))
	}
	return b
}

// appendSpaced writes a text with one space where it has several.
func appendSpaced(b []byte, s string) []byte {
	for i := range len(s) {
		if s[i] != ' ' || i == 0 || s[i-1] != ' ' {
			b = append(b, s[i])
		}
	}
	return b
}
