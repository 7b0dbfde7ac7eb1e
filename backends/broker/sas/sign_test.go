package sas_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
)

// A signer makes tokens as one of the SDKs does. They share nothing with the package under test:
// the HMAC is written out from its definition (RFC 2104).
type signer struct {
	name  string
	token func(audience, keyName, key string, expires int64) string
}

func signers() []signer {
	upper := func(s string) string { return escape(s, "-_.!~*'()", true) }
	return []signer{
		{"Go", func(audience, keyName, key string, expires int64) string {
			sr := strings.ToLower(url.QueryEscape(audience))
			return format("sr=%[1]s&sig=%[2]s&se=%[3]d&skn=%[4]s", sr, url.QueryEscape(mac(sr, key, expires)), expires, keyName)
		}},
		{"JavaScript", func(audience, keyName, key string, expires int64) string {
			sr := upper(audience) // encodeURIComponent
			return format("sr=%[1]s&sig=%[2]s&se=%[3]d&skn=%[4]s", sr, upper(mac(sr, key, expires)), expires, upper(keyName))
		}},
		{".NET", func(audience, keyName, key string, expires int64) string {
			encode := func(s string) string { return escape(s, "-_.!*()", true) } // WebUtility.UrlEncode
			sr := encode(audience)
			return format("sr=%[1]s&sig=%[2]s&se=%[3]d&skn=%[4]s", sr, encode(mac(sr, key, expires)), expires, encode(keyName))
		}},
		{".NET Framework", func(audience, keyName, key string, expires int64) string {
			encode := func(s string) string { return escape(s, "-_.!*()", false) } // HttpUtility.UrlEncode
			sr := encode(strings.ToLower(audience))
			return format("sr=%[1]s&sig=%[2]s&se=%[3]d&skn=%[4]s", sr, encode(mac(sr, key, expires)), expires, encode(keyName))
		}},
		{"Python", func(audience, keyName, key string, expires int64) string {
			encode := func(s string) string { return escape(s, "-_.~", true) } // quote_plus
			sr := encode(audience)
			return format("sr=%[1]s&sig=%[2]s&se=%[3]d&skn=%[4]s", sr, encode(mac(sr, key, expires)), expires, keyName)
		}},
		{"Java", func(audience, keyName, key string, expires int64) string {
			encode := func(s string) string { return escape(s, "-_.*", true) } // URLEncoder
			sr := encode(audience)
			return format("sr=%[1]s&sig=%[2]s&se=%[3]d&skn=%[4]s", sr, encode(mac(sr, key, expires)), expires, keyName)
		}},
		{"another order", func(audience, keyName, key string, expires int64) string {
			sr := upper(audience)
			return format("skn=%[4]s&se=%[3]d&sig=%[2]s&sr=%[1]s", sr, upper(mac(sr, key, expires)), expires, keyName)
		}},
	}
}

func format(layout, sr, sig string, se int64, skn string) string {
	return "SharedAccessSignature " + fmt.Sprintf(layout, sr, sig, se, skn)
}

// escape percent-encodes all but letters, digits and the marks.
func escape(s, marks string, upper bool) string {
	hex := map[bool]string{true: "%%%02X", false: "%%%02x"}[upper]
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || strings.IndexByte(marks, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, hex, c)
		}
	}
	return b.String()
}

func mac(sr, key string, expires int64) string {
	var block [64]byte
	if copy(block[:], key); len(key) > len(block) {
		sum := sha256.Sum256([]byte(key))
		block = [64]byte{}
		copy(block[:], sum[:])
	}
	inner, outer := block, block
	for i := range block {
		inner[i] ^= 0x36
		outer[i] ^= 0x5c
	}
	sum := sha256.Sum256(append(inner[:], fmt.Sprintf("%s\n%d", sr, expires)...))
	sum = sha256.Sum256(append(outer[:], sum[:]...))
	return base64.StdEncoding.EncodeToString(sum[:])
}
