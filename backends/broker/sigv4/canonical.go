package sigv4

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// appendRequest writes the form of a request that is signed.
func appendRequest(b []byte, r *http.Request, s *signature, payload []byte) []byte {
	b = append(append(b, r.Method...), '\n')
	b = append(appendPath(b, r.URL), '\n')
	b = append(appendQuery(b, r.URL.RawQuery, s.Presigned), '\n')
	for name := range strings.SplitSeq(s.headers, ";") {
		b = append(append(b, name...), ':')
		b = append(appendHeader(b, r, name), '\n')
	}
	b = append(b, '\n')
	b = append(append(b, s.headers...), '\n')
	return append(b, payload...)
}

// appendPath writes the path as it came with everything encoded once more. Empty and relative
// segments stay: a server that tells paths apart must not take one for another.
func appendPath(b []byte, u *url.URL) []byte {
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	return appendEscaped(b, path, true)
}

// appendQuery writes the parameters in their order, without the signature itself.
func appendQuery(b []byte, raw string, presigned bool) []byte {
	if raw == "" {
		return b
	}
	type parameter struct{ name, value string }
	ps := make([]parameter, 0, 1+strings.Count(raw, "&"))
	for part := range strings.SplitSeq(raw, "&") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		if name, value = reescape(name), reescape(value); !presigned || name != "X-Amz-Signature" {
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
	if plain(s) {
		return s
	}
	text, err := url.QueryUnescape(s)
	if err != nil {
		return s
	}
	return string(appendEscaped(make([]byte, 0, len(s)), text, false))
}

// unreserved reports whether a byte is never escaped.
// Source: https://www.rfc-editor.org/rfc/rfc3986#section-2.3
func unreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~'
}

// plain reports whether a text is its own escaped form.
func plain(s string) bool {
	for i := range len(s) {
		if !unreserved(s[i]) {
			return false
		}
	}
	return true
}

// appendEscaped escapes everything that is reserved, but in a path not "/".
func appendEscaped(b []byte, s string, path bool) []byte {
	const digits = "0123456789ABCDEF"
	for i := range len(s) {
		if c := s[i]; unreserved(c) || path && c == '/' {
			b = append(b, c)
		} else {
			b = append(b, '%', digits[c>>4], digits[c&15])
		}
	}
	return b
}

// appendHeader writes the values of a header, trimmed and with single spaces. net/http keeps some
// of them apart.
func appendHeader(b []byte, r *http.Request, name string) []byte {
	values := r.Header[http.CanonicalHeaderKey(name)]
	switch {
	case name == "host":
		return appendTrimmed(b, r.Host)
	case name == "content-length" && len(values) == 0 && r.ContentLength >= 0:
		return strconv.AppendInt(b, r.ContentLength, 10)
	}
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendTrimmed(b, v)
	}
	return b
}

// appendTrimmed writes a value with one space where it has several spaces or tabs, and none at its
// ends. SDKs differ in what else they take for a space; no header of theirs has it.
func appendTrimmed(b []byte, value string) []byte {
	start := len(b)
	for i := range len(value) {
		switch c := value[i]; {
		case c != ' ' && c != '\t':
			b = append(b, c)
		case len(b) > start && b[len(b)-1] != ' ':
			b = append(b, ' ')
		}
	}
	if len(b) > start && b[len(b)-1] == ' ' {
		b = b[:len(b)-1]
	}
	return b
}
