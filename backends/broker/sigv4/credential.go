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
	headers string // the names of those that are signed, in lower case, joined by ";"
	value   string // in hexadecimal digits
	time    string // X-Amz-Date, or what Date would be in its form
	dated   string // the name of the header that has the time; "": none has
	expires string // X-Amz-Expires of a presigned URL
}

// The bounds of what is read: they keep a request that nobody has signed cheap to refuse.
const (
	maxParameter     = 8 << 10 // bytes, of the header Authorization or a parameter of a URL
	maxSignedHeaders = 64
	maxParameters    = 4096 // of a query string
	maxShown         = 128  // bytes of the request in the text of an error
)

// usualLife is how many seconds a presigned URL counts that does not say.
const usualLife = "900"

// Parse reads who has signed a request, and verifies nothing. The error is [ErrUnsigned] or an
// [Error].
func Parse(r *http.Request) (Credential, error) {
	s, err := parse(r)
	return s.Credential, err
}

func parse(r *http.Request) (signature, error) {
	query := r.URL.RawQuery
	if strings.Count(query, "&") >= maxParameters {
		return signature{}, malformed("The query string has too many parameters.")
	}
	authorization := r.Header["Authorization"]
	inQuery := strings.Contains(query, "X-Amz-Signature=") || strings.Contains(query, "X-Amz-Algorithm=")
	switch {
	case len(authorization) == 0 && inQuery:
		return parsePresigned(query)
	case len(authorization) == 0:
		return signature{}, ErrUnsigned
	case len(authorization) > 1, inQuery && named(query):
		// Whoever has seen a presigned URL could otherwise let it live longer than it says.
		return signature{}, malformed("Only one mechanism of authentication is allowed.")
	}
	return parseHeader(r.Header, authorization[0])
}

// named reports whether a query string has a parameter of a signature. A message may speak of one.
func named(query string) bool {
	for part := range strings.SplitSeq(query, "&") {
		if strings.HasPrefix(part, "X-Amz-Signature=") || strings.HasPrefix(part, "X-Amz-Algorithm=") {
			return true
		}
	}
	return false
}

func parseHeader(h http.Header, authorization string) (signature, error) {
	if len(authorization) > maxParameter {
		return signature{}, malformed("The Authorization header is too long.")
	}
	algorithm, fields, _ := strings.Cut(authorization, " ")
	if algorithm != Algorithm {
		return signature{}, malformed("Unsupported AWS 'algorithm': '" + shown(algorithm) + "' (only " + Algorithm + " for now).")
	}
	var s signature
	var credential string
	seen := make([]string, 0, 3)
	for field := range strings.SplitSeq(fields, ",") {
		name, value, _ := strings.Cut(strings.Trim(field, " \t"), "=")
		var to *string
		switch name {
		case "Credential":
			to = &credential
		case "SignedHeaders":
			to = &s.headers
		case "Signature":
			to = &s.value
		}
		if to == nil || slices.Contains(seen, name) {
			return signature{}, malformed("The Authorization header has an unknown or repeated parameter: '" + shown(name) + "'.")
		}
		*to, seen = value, append(seen, name)
	}
	s.Token = h.Get("X-Amz-Security-Token")
	s.time, s.dated = dated(h)
	var missing []string
	for _, p := range [...]struct{ name, value string }{
		{"'Credential' parameter", credential},
		{"'Signature' parameter", s.value},
		{"'SignedHeaders' parameter", s.headers},
		{"existence of either a 'X-Amz-Date' or a 'Date' header", s.time},
	} {
		if p.value == "" {
			missing = append(missing, "Authorization header requires "+p.name+".")
		}
	}
	if missing != nil {
		return signature{}, malformed(strings.Join(missing, " "))
	}
	return s.checked(credential)
}

// dated is the time of a signature in a header, and the header that says it.
func dated(h http.Header) (value, name string) {
	if at := h.Get("X-Amz-Date"); at != "" {
		return at, "X-Amz-Date"
	}
	at := h.Get("Date")
	if t, err := http.ParseTime(at); err == nil {
		at = t.UTC().Format(timeForm)
	}
	return at, "Date"
}

func parsePresigned(query string) (signature, error) {
	q, err := url.ParseQuery(query)
	if err != nil {
		return signature{}, malformed("The query string cannot be read.")
	}
	if !q.Has("X-Amz-Signature") && !q.Has("X-Amz-Algorithm") {
		return signature{}, ErrUnsigned
	}
	var s signature
	var algorithm, credential string
	for _, p := range [...]struct {
		name string
		to   *string
	}{
		{"X-Amz-Algorithm", &algorithm},
		{"X-Amz-Credential", &credential},
		{"X-Amz-Signature", &s.value},
		{"X-Amz-SignedHeaders", &s.headers},
		{"X-Amz-Date", &s.time},
	} {
		values := q[p.name]
		if len(values) != 1 || values[0] == "" || len(values[0]) > maxParameter {
			return signature{}, malformed("AWS query-string parameters must include '" + p.name + "'. Re-examine the query-string parameters.")
		}
		*p.to = values[0]
	}
	if algorithm != Algorithm {
		return signature{}, malformed("Unsupported AWS 'algorithm': '" + shown(algorithm) + "' (only " + Algorithm + " for now).")
	}
	if s.expires = usualLife; q.Has("X-Amz-Expires") { // the signer of the SDK for Go leaves it out
		s.expires = q.Get("X-Amz-Expires")
	}
	s.Presigned, s.Token = true, q.Get("X-Amz-Security-Token")
	return s.checked(credential)
}

// checked adds the scope of a credential, KEY/DAY/REGION/SERVICE/aws4_request, whose key may
// contain slashes, and checks what every signature has to have.
func (s signature) checked(credential string) (signature, error) {
	parts := strings.Split(credential, "/")
	n := len(parts)
	if n < 5 || parts[0] == "" {
		return signature{}, malformed("Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, got '" + shown(credential) + "'")
	}
	s.AccessKey = strings.Join(parts[:n-4], "/")
	s.Date, s.Region, s.Service = parts[n-4], parts[n-3], parts[n-2]
	switch term := parts[n-1]; {
	case term != terminator:
		return signature{}, bad("Credential should be scoped with a valid terminator: '" + terminator + "', not '" + shown(term) + "'.")
	case !validRegion(s.Region):
		return signature{}, bad("Credential should be scoped to a valid region, not '" + shown(s.Region) + "'.")
	}
	return s, s.checkHeaders()
}

// checkHeaders reports names of headers that no client lists so: they are sorted and all different,
// so that no header is read twice.
func (s signature) checkHeaders() error {
	if strings.Count(s.headers, ";") >= maxSignedHeaders {
		return malformed("Too many headers are signed.")
	}
	last := ""
	for name := range strings.SplitSeq(s.headers, ";") {
		if name <= last || !validHeader(name) {
			return malformed("'SignedHeaders' has to be a sorted list of names of headers in lower case: '" + shown(name) + "'.")
		}
		last = name
	}
	return nil
}

// signs reports whether a header is signed.
func (s *signature) signs(header string) bool {
	for name := range strings.SplitSeq(s.headers, ";") {
		if name == header {
			return true
		}
	}
	return false
}

// validHeader reports whether all characters are those of a token in lower case.
// Source: https://www.rfc-editor.org/rfc/rfc9110#section-5.6.2
func validHeader(name string) bool {
	for i := range len(name) {
		c := name[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && strings.IndexByte("-_.!#$%&'*+^`|~", c) < 0 {
			return false
		}
	}
	return true
}

// validRegion is generous: clients of emulators sign for regions that don't exist.
func validRegion(region string) bool {
	for i := range len(region) {
		if !unreserved(region[i]) {
			return false
		}
	}
	return region != "" && len(region) <= 64
}

// shown is the beginning of a text of the request, for an error.
func shown(text string) string {
	if len(text) > maxShown {
		return strings.ToValidUTF8(text[:maxShown], "") + "…"
	}
	return text
}

func malformed(text string) *Error { return &Error{Malformed, text} }

func bad(text string) *Error { return &Error{BadSignature, text} }
