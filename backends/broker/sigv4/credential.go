package sigv4

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Algorithm is the one that is verified.
const Algorithm = "AWS4-HMAC-SHA256"

// ErrUnsigned says that a request has no signature.
var ErrUnsigned = errors.New("the request is not signed")

// Reason is why a signature does not count.
type Reason uint8

// The reasons.
const (
	Malformed    Reason = iota // it cannot be read, or something is missing
	UnknownKey                 // nobody has this access key
	BadSignature               // it is of another request, or made with another secret
	Expired                    // it is too old, or of the future
)

// Error says why a signature does not count, in words that the services use.
type Error struct {
	Reason Reason
	Text   string
}

func (e *Error) Error() string { return e.Text }

// Credential is who has signed, and what for.
type Credential struct {
	AccessKey string
	Date      string // the day, as 20060102
	Region    string
	Service   string
	Token     string // of a session; "": none
	Presigned bool   // the signature is in the URL
}

// signature is everything that a request says of its signature.
type signature struct {
	Credential
	headers []string // the names of those that are signed, in lower case
	value   string   // in hexadecimal digits
	time    string   // X-Amz-Date
	expires string   // X-Amz-Expires of a presigned URL
}

// The bounds of what is read.
const (
	maxAuthorization = 8 << 10 // bytes
	maxSignedHeaders = 64
)

// Parse reads who has signed a request, and verifies nothing. The error is [ErrUnsigned] or an
// [Error].
func Parse(r *http.Request) (Credential, error) {
	s, err := parse(r)
	return s.Credential, err
}

func parse(r *http.Request) (signature, error) {
	authorization := r.Header.Get("Authorization")
	if authorization == "" {
		if !strings.Contains(r.URL.RawQuery, "X-Amz-") {
			return signature{}, ErrUnsigned
		}
		return parsePresigned(r)
	}
	if len(authorization) > maxAuthorization {
		return signature{}, malformed("The Authorization header is too long.")
	}
	algorithm, fields, _ := strings.Cut(authorization, " ")
	if algorithm != Algorithm {
		return signature{}, malformed("Authorization header requires the algorithm " + Algorithm + ".")
	}
	var s signature
	for field := range strings.SplitSeq(fields, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		switch name {
		case "Credential":
			if err := s.scope(value); err != nil {
				return s, err
			}
		case "SignedHeaders":
			s.headers = strings.Split(value, ";")
		case "Signature":
			s.value = value
		}
	}
	s.time, s.Token = r.Header.Get("X-Amz-Date"), r.Header.Get("X-Amz-Security-Token")
	return s, s.complete()
}

func parsePresigned(r *http.Request) (signature, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return signature{}, malformed("The query string cannot be read.")
	}
	if !q.Has("X-Amz-Signature") && !q.Has("X-Amz-Algorithm") {
		return signature{}, ErrUnsigned
	}
	s := signature{
		value: q.Get("X-Amz-Signature"), time: q.Get("X-Amz-Date"), expires: q.Get("X-Amz-Expires"),
		headers: strings.Split(q.Get("X-Amz-SignedHeaders"), ";"),
	}
	s.Presigned, s.Token = true, q.Get("X-Amz-Security-Token")
	switch {
	case q.Get("X-Amz-Algorithm") != Algorithm:
		return s, malformed("X-Amz-Algorithm has to be " + Algorithm + ".")
	case s.expires == "":
		return s, malformed("Query-string authentication requires the parameter X-Amz-Expires.")
	}
	if err := s.scope(q.Get("X-Amz-Credential")); err != nil {
		return s, err
	}
	return s, s.complete()
}

// scope reads KEY/DAY/REGION/SERVICE/aws4_request. The key may contain slashes.
func (s *signature) scope(credential string) error {
	parts := strings.Split(credential, "/")
	n := len(parts)
	if n < 5 || parts[n-1] != "aws4_request" {
		return malformed("Credential must have at least 5 slash-delimited elements, e.g. keyid/date/region/service/term, got '" + credential + "'")
	}
	s.AccessKey = strings.Join(parts[:n-4], "/")
	s.Date, s.Region, s.Service = parts[n-4], parts[n-3], parts[n-2]
	return nil
}

// complete reports what is missing.
func (s *signature) complete() error {
	switch {
	case s.AccessKey == "":
		return malformed("Authorization requires 'Credential' parameter.")
	case s.value == "":
		return malformed("Authorization requires 'Signature' parameter.")
	case len(s.headers) > maxSignedHeaders:
		return malformed("Too many headers are signed.")
	case !slices.Contains(s.headers, "host"):
		return malformed("Authorization requires 'SignedHeaders' parameter with the header host.")
	case s.time == "":
		return malformed("Authorization requires existence of either a 'X-Amz-Date' or a 'Date' header.")
	}
	return nil
}

func malformed(text string) *Error { return &Error{Malformed, text} }
