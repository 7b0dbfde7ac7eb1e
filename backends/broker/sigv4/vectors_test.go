package sigv4

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"testing"
)

// The signatures of the test suite of AWS and of its documentation are for other services than SQS,
// and old: they hold the arithmetic only.
// Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-signing-examples.html and
// github.com/boto/botocore, tests/unit/auth/aws4_testsuite
func TestPublishedVectors(t *testing.T) {
	const (
		suite = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, Signature="
		older = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20110909/us-east-1/host/aws4_request, SignedHeaders=date;host, Signature="
		iam   = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, SignedHeaders=content-type;host;x-amz-date, Signature="
	)
	for _, c := range []struct{ name, method, url, headers, signature string }{
		{"get-vanilla", "GET", "https://example.amazonaws.com/", suite, "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		{"empty path", "GET", "https://example.amazonaws.com", suite, "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		{"post-vanilla", "POST", "https://example.amazonaws.com/", suite, "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
		{"get-vanilla-query-order-key-case", "GET", "https://example.amazonaws.com/?Param2=value2&Param1=value1", suite, "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
		{"get-utf8", "GET", "https://host.foo.com/%E1%88%B4", older, "57b1eb3df3b16a8479c0097b66c0b261cfd65b829419a3f2c3d05319722490b8"},
		{"get-space", "GET", "https://host.foo.com/%20/foo", older, "2be9e587d1ee1f0fd02128724b86b4358ba3630d39f493b6e06610a19a50779e"},
		{"ListUsers", "GET", "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08", iam, "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := http.NewRequest(c.method, c.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", c.headers+c.signature)
			if c.headers == older {
				r.Header.Set("Date", "Mon, 09 Sep 2011 23:36:00 GMT")
			} else {
				r.Header.Set("X-Amz-Date", "20150830T123600Z")
			}
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
			s, err := parse(r)
			if err != nil {
				t.Fatal(err)
			}
			key, _ := new(Verifier).key(keyOf{"wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", s.Date, s.Region, s.Service})
			sum := sha256.Sum256(nil)
			if got := string(sign(r, &s, hex.AppendEncode(nil, sum[:]), key)); got != c.signature {
				t.Errorf("signature %s, want %s", got, c.signature)
			}
		})
	}
}
