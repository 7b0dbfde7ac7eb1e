package sigv4

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	timeForm   = "20060102T150405Z"
	skew       = 15 * time.Minute
	maxLife    = 604_800 // seconds, of a presigned URL
	service    = "sqs"
	terminator = "aws4_request"
)

// Verifier verifies signatures. Its methods may be called concurrently.
type Verifier struct {
	Secret func(accessKey string) (secret string, ok bool) // required
	Now    func() time.Time                                // nil: time.Now

	mu   sync.RWMutex
	keys map[keyOf][]byte // of signatures that were right
}

// keyOf is what a signing key is derived from.
type keyOf struct{ secret, date, region, service string }

// maxKeys bounds the derived keys that are kept.
const maxKeys = 1024

// Verify verifies the signature of a request, whose body is given, and returns who has signed it.
// The error is [ErrUnsigned] or an [Error]. It blocks on nothing.
//
// A payload that is not signed (UNSIGNED-PAYLOAD) is refused: SQS knows no such thing, and no SDK
// leaves a payload unsigned over a connection that is not encrypted.
func (v *Verifier) Verify(r *http.Request, body []byte) (Credential, error) {
	s, err := parse(r)
	if err != nil {
		return Credential{}, err
	}
	if s.Service != service {
		return Credential{}, bad("Credential should be scoped to correct service: '" + service + "'.")
	}
	if err := v.fresh(&s); err != nil {
		return Credential{}, err
	}
	if err := covered(r.Header, &s); err != nil {
		return Credential{}, err
	}
	secret, ok := v.Secret(s.AccessKey)
	if !ok {
		return Credential{}, &Error{UnknownKey, "The security token included in the request is invalid."}
	}
	sum := sha256.Sum256(body)
	payload := hex.AppendEncode(make([]byte, 0, 2*len(sum)), sum[:])
	if said := r.Header.Get("X-Amz-Content-Sha256"); said != "" && said != string(payload) {
		return Credential{}, bad("The provided 'x-amz-content-sha256' header does not match what was computed.")
	}
	of := keyOf{secret, s.Date, s.Region, s.Service}
	key, known := v.key(of)
	if subtle.ConstantTimeCompare(sign(r, &s, payload, key), []byte(s.value)) != 1 {
		return Credential{}, bad("The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details.")
	}
	if !known {
		v.keep(of, key)
	}
	return s.Credential, nil
}

// covered reports headers that have to be signed, because they decide what a request does, and are
// not. Every header that begins with X-Amz- should be, but not all SDKs sign X-Amz-User-Agent.
func covered(h http.Header, s *signature) error {
	if !s.signs("host") {
		return bad("'Host' or ':authority' must be a 'SignedHeader' in the AWS Authorization.")
	}
	for _, name := range [...]string{"X-Amz-Target", "X-Amz-Security-Token", s.dated} {
		if len(h[name]) > 0 && !s.signs(strings.ToLower(name)) {
			return bad("'" + name + "' must be a 'SignedHeader' in the AWS Authorization.")
		}
	}
	return nil
}

// fresh checks the time of a signature.
func (v *Verifier) fresh(s *signature) error {
	at, err := time.Parse(timeForm, s.time)
	if err != nil || len(s.time) != len(timeForm) {
		return malformed("Date must be in ISO-8601 'basic format'. Got '" + shown(s.time) + "'. See http://en.wikipedia.org/wiki/ISO_8601")
	}
	if day := s.time[:8]; day != s.Date {
		return bad("Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: '" + shown(s.Date) + "' != '" + day + "', from '" + s.time + "'.")
	}
	now := time.Now()
	if v.Now != nil {
		now = v.Now()
	}
	now = now.UTC()
	life, said := skew, "15 min"
	if s.Presigned {
		seconds, err := strconv.ParseUint(s.expires, 10, 32)
		if err != nil || seconds < 1 || seconds > maxLife || s.expires[0] == '+' {
			return malformed("X-Amz-Expires must be a number of seconds from 1 to 604800.")
		}
		life, said = time.Duration(seconds)*time.Second, s.expires+" s"
	}
	switch {
	case now.After(at.Add(life)):
		return &Error{Expired, "Signature expired: " + s.time + " is now earlier than " + now.Add(-life).Format(timeForm) + " (" + now.Format(timeForm) + " - " + said + ".)"}
	case at.After(now.Add(skew)):
		return &Error{Expired, "Signature not yet current: " + s.time + " is still later than " + now.Add(skew).Format(timeForm) + " (" + now.Format(timeForm) + " + 15 min.)"}
	}
	return nil
}

// sign returns the signature that a request should have, in hexadecimal digits.
func sign(r *http.Request, s *signature, payload, key []byte) []byte {
	b := appendRequest(make([]byte, 0, 1024), r, s, payload)
	sum := sha256.Sum256(b)
	b = append(append(append(b[:0], Algorithm...), '\n'), s.time...)
	b = append(append(append(b, '\n'), s.Date...), '/')
	b = append(append(append(b, s.Region...), '/'), s.Service...)
	b = append(append(append(b, '/'), terminator...), '\n')
	b = hex.AppendEncode(b, sum[:])
	mac := hmac.New(sha256.New, key)
	mac.Write(b)
	return hex.AppendEncode(make([]byte, 0, 2*sha256.Size), mac.Sum(sum[:0]))
}

// key derives the key that signs on a day for a region, or finds it.
func (v *Verifier) key(of keyOf) (key []byte, known bool) {
	v.mu.RLock()
	key, known = v.keys[of]
	v.mu.RUnlock()
	if known {
		return key, true
	}
	key = []byte("AWS4" + of.secret)
	for _, part := range [...]string{of.date, of.region, of.service, terminator} {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	return key, false
}

// keep keeps a key for the next request. Only a signature that is right gets here, so that nobody
// without a secret can drive out the keys of others.
func (v *Verifier) keep(of keyOf, key []byte) {
	// The parts of a header would keep the whole header in memory.
	of.date, of.region, of.service = strings.Clone(of.date), strings.Clone(of.region), strings.Clone(of.service)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.keys == nil || len(v.keys) >= maxKeys {
		v.keys = make(map[keyOf][]byte)
	}
	v.keys[of] = key
}
