package sigv4_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"dlq/backends/broker/sigv4"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// secrets are all different: the access key itself is no part of what a header signature covers.
var secrets = map[string]string{"test": "test", "000000000000": "zero", "RootManageSharedAccessKey": "c2VjcmV0/with+signs=", "team/orders": "x"}

func newVerifier(now time.Time) *sigv4.Verifier {
	return &sigv4.Verifier{
		Secret: func(key string) (string, bool) { s, ok := secrets[key]; return s, ok },
		Now:    func() time.Time { return now },
	}
}

// call is a request before it is signed.
type call struct {
	method, url, body string
	header            http.Header
	key, token        string
	region, service   string
	at                time.Time
	expires           int // seconds; 0: signed in a header; -1: in a URL that does not say how long
}

// wire signs a call as the AWS SDK for Go does and returns the bytes that a client would send.
func (c call) wire(t testing.TB) []byte {
	t.Helper()
	r, err := http.NewRequest(c.method, c.url, strings.NewReader(c.body))
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(r.Header, c.header)
	sum := sha256.Sum256([]byte(c.body))
	payload := hex.EncodeToString(sum[:])
	who := aws.Credentials{AccessKeyID: c.key, SecretAccessKey: secrets[c.key], SessionToken: c.token}
	if c.expires == 0 {
		err = v4.NewSigner().SignHTTP(context.Background(), who, r, payload, c.service, c.region, c.at)
	} else {
		if q := r.URL.Query(); c.expires > 0 {
			q.Set("X-Amz-Expires", fmt.Sprint(c.expires))
			r.URL.RawQuery = q.Encode()
		}
		var signed string
		signed, _, err = v4.NewSigner().PresignHTTP(context.Background(), who, r, payload, c.service, c.region, c.at)
		if err == nil {
			r.URL, err = url.Parse(signed)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// read reads a request as a server does.
func read(wire []byte) (*http.Request, []byte, error) {
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(wire)))
	if err != nil {
		return nil, nil, err
	}
	body, err := io.ReadAll(r.Body)
	return r, body, err
}

func mustRead(t testing.TB, wire []byte) (*http.Request, []byte) {
	t.Helper()
	r, body, err := read(wire)
	if err != nil {
		t.Fatalf("%v\n%s", err, wire)
	}
	return r, body
}

func jsonCall() call {
	return call{
		method: "POST", url: "http://localhost:9324/", body: `{"QueueUrl":"http://localhost:9324/000000000000/orders","MessageBody":"x"}`,
		header: http.Header{
			"Content-Type": {"application/x-amz-json-1.0"}, "X-Amz-Target": {"AmazonSQS.SendMessage"},
			"X-Amzn-Query-Mode": {"true"}, "Amz-Sdk-Invocation-Id": {"8b4d"},
		},
		key: "test", region: "us-east-1", service: "sqs", at: noon,
	}
}

func presignedCall() call {
	return call{
		method: "GET", url: "http://localhost:9324/000000000000/orders.fifo?Action=SendMessage&MessageBody=a%20b",
		key: "test", region: "us-east-1", service: "sqs", at: noon, expires: 3600,
	}
}

// anyCall is a valid call of any shape.
func anyCall(rnd *rand.Rand) call {
	pick := func(of ...string) string { return of[rnd.IntN(len(of))] }
	c := call{
		key: pick(slices.Sorted(maps.Keys(secrets))...), service: "sqs", header: http.Header{},
		region: pick("us-east-1", "ru-central1", "elasticmq", "eu-west-1"), token: pick("", "", "FwoGZXIvYXdzEBYaD//token+of/a=session"),
		at: noon.Add(time.Duration(rnd.IntN(1700)-850) * time.Second),
	}
	c.url = "http://" + pick("localhost:9324", "127.0.0.1", "sqs.us-east-1.amazonaws.com", "[::1]:9324") +
		pick("", "/", "/000000000000/orders", "/000000000000/orders.fifo", "/queue/us-east-1/000000000000/a_b-c", "/%E1%88%B4/%20x%2Fy", "/a+b/~c", "//double/./dot/../x", "/a%61'()*!:@$&=,;")
	switch rnd.IntN(4) {
	case 0:
		c.method, c.body = "POST", fmt.Sprintf(`{"QueueUrl":"q","MessageBody":"%s"}`, strings.Repeat("é\\n", rnd.IntN(300)))
		c.header.Set("Content-Type", "application/x-amz-json-1.0")
		c.header.Set("X-Amz-Target", "AmazonSQS."+pick("SendMessage", "ReceiveMessage", "PurgeQueue"))
	case 1:
		c.method, c.body = "POST", "Action=SendMessage&Version=2012-11-05&MessageBody="+strings.Repeat("%25", rnd.IntN(300))
		c.header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	default:
		c.method = "GET"
		c.url += "?Action=SendMessage&" + pick("MessageBody=%C3%A9+%2B%20x%2F~", "AttributeName.1=All&AttributeName.10=a&AttributeName.2=", "a=2&a=1&A=3&empty", "X-Amz-Meta=%3D%26&b=%7E*'()")
		if rnd.IntN(2) == 0 {
			c.expires = 1000 + rnd.IntN(600_000)
		}
	}
	if rnd.IntN(2) == 0 {
		c.header.Set("Amz-Sdk-Request", "attempt=1;  max=3 ")
		c.header["X-Custom"] = []string{"b  c", "a", " d"}
		c.header.Set("User-Agent", "not signed")
	}
	return c
}

func TestValidSignatures(t *testing.T) {
	v := newVerifier(noon)
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range 1000 {
		c := anyCall(rnd)
		wire := c.wire(t)
		r, body := mustRead(t, wire)
		parsed, parseErr := sigv4.Parse(r)
		got, err := v.Verify(r, body)
		want := sigv4.Credential{
			AccessKey: c.key, Date: c.at.Format("20060102"), Region: c.region, Service: "sqs", Token: c.token, Presigned: c.expires > 0,
		}
		if err != nil || got != want || parseErr != nil || parsed != want {
			t.Fatalf("request %d: %+v, %v; parsed %+v, %v; want %+v\n%s", i, got, err, parsed, parseErr, want, wire)
		}
	}
}

// sameMeaning reports whether a server would do the same for both requests: there are bits of a
// request that say nothing, such as the case of the name of a header.
func sameMeaning(a, b *http.Request, bodyA, bodyB []byte) bool {
	qa, errA := url.ParseQuery(a.URL.RawQuery)
	qb, errB := url.ParseQuery(b.URL.RawQuery)
	if errA != nil || errB != nil {
		return false
	}
	signed := qa.Get("X-Amz-SignedHeaders")
	if _, list, ok := strings.Cut(a.Header.Get("Authorization"), "SignedHeaders="); ok {
		signed, _, _ = strings.Cut(list, ",")
	}
	same := func(name string) bool {
		return slices.EqualFunc(a.Header.Values(name), b.Header.Values(name), func(x, y string) bool {
			return strings.Join(strings.Fields(x), " ") == strings.Join(strings.Fields(y), " ")
		})
	}
	for _, name := range append(strings.Split(signed, ";"), "Authorization", "X-Amz-Target", "X-Amz-Security-Token") {
		if !same(name) {
			return false
		}
	}
	return a.Method == b.Method && a.URL.EscapedPath() == b.URL.EscapedPath() && a.Host == b.Host &&
		maps.EqualFunc(qa, qb, slices.Equal) && bytes.Equal(bodyA, bodyB)
}

// replacements change one field of a request on the wire.
var replacements = [][2]string{
	{"POST ", "PUT "},
	{"GET ", "HEAD "},
	{" HTTP/1.1", "?x=y HTTP/1.1"},
	{" HTTP/1.1", "&Action=PurgeQueue HTTP/1.1"},
	{" HTTP/1.1", "&X-Amz-Signature=00 HTTP/1.1"},
	{" HTTP/1.1", "?X-Amz-Signature=00 HTTP/1.1"},
	{"/000000000000/", "/000000000001/"},
	{"/orders", "//orders"},
	{"/orders", "/./orders"},
	{"Host: ", "Host: x"},
	{"\r\nContent-Type: ", "\r\nContent-Type: text/plain, "},
	{"\r\nX-Amz-Target: ", "\r\nX-Amz-Target: AmazonSQS.DeleteQueue\r\nX-Amz-Target: "},
	{"\r\nX-Amz-Target: ", "\r\nX-Other: "},
	{"\r\nX-Amz-Date: ", "\r\nX-Amz-Date: 20260301T120001Z\r\nX-Amz-Date: "},
	{"\r\nX-Amz-Date: ", "\r\nDate: "},
	{"\r\nX-Amz-Security-Token: ", "\r\nX-Amz-Security-Token: x"},
	{"\r\nX-Amz-Security-Token: ", "\r\nX-Other: "},
	{"\r\nUser-Agent: ", "\r\nX-Amz-Target: AmazonSQS.PurgeQueue\r\nUser-Agent: "},
	{"\r\nUser-Agent: ", "\r\nX-Amz-Security-Token: x\r\nUser-Agent: "},
	{"\r\nUser-Agent: ", "\r\nX-Amz-Content-Sha256: UNSIGNED-PAYLOAD\r\nUser-Agent: "},
	{"\r\nUser-Agent: ", "\r\nAuthorization: AWS4-HMAC-SHA256 Credential=x\r\nUser-Agent: "},
	{"Credential=test/", "Credential=000000000000/"},
	{"Credential=test", "Credential=nobody"},
	{"/us-east-1/sqs", "/eu-west-1/sqs"},
	{"/sqs/", "/sns/"},
	{"/aws4_request", "/aws4_REQUEST"},
	{"AWS4-HMAC-SHA256", "AWS4-HMAC-SHA512"},
	{"AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256"},
	{"host;", ""},
	{"=host", "="},
	{";x-amz-date", ""},
	{";x-amz-target", ""},
	{"Signature=", "Signature=,Signature="},
	{"Signature=", "Signature=0"},
	{"Signature=", "Other="},
	{"X-Amz-Expires=", "X-Amz-Expires=9"},
	{"X-Amz-Expires=", "X-Amz-Expires=1&X-Amz-Expires="},
	{"X-Amz-Date=2026", "X-Amz-Date=2027"},
	{"MessageBody=", "MessageBody=%20"},
	{"\"MessageBody\"", "\"messageBody\""},
}

// TestTamperedSignatures: whatever is changed in a request that was signed, it is refused.
func TestTamperedSignatures(t *testing.T) {
	const enough = 10_000
	rnd := rand.New(rand.NewPCG(3, 4))
	kinds := map[string]int{}
	for tried := 0; tried < enough; {
		c := anyCall(rnd)
		wire := c.wire(t)
		r, body := mustRead(t, wire)
		if _, err := newVerifier(noon).Verify(r, body); err != nil {
			t.Fatalf("as it was signed: %v\n%s", err, wire)
		}
		for range 20 {
			now, changed, kind := noon, slices.Clone(wire), ""
			switch n := rnd.IntN(10); {
			case n == 0:
				kind = "time"
				life := 15 * time.Minute
				if c.expires > 0 {
					life = time.Duration(c.expires) * time.Second
				}
				now = c.at.Add(life + time.Duration(1+rnd.IntN(1e6))*time.Second)
				if rnd.IntN(2) == 0 {
					now = c.at.Add(-15*time.Minute - time.Duration(1+rnd.IntN(1e6))*time.Second)
				}
			case n < 5:
				kind = "field"
				of := replacements[rnd.IntN(len(replacements))]
				changed = bytes.Replace(wire, []byte(of[0]), []byte(of[1]), 1)
			default:
				kind = "bit"
				changed[rnd.IntN(len(changed))] ^= 1 << rnd.IntN(8)
			}
			other, otherBody, err := read(changed)
			if err != nil {
				continue // no server gets to see it
			}
			if kind != "time" && sameMeaning(r, other, body, otherBody) {
				continue
			}
			tried++
			kinds[kind]++
			if who, err := newVerifier(now).Verify(other, otherBody); err == nil {
				t.Fatalf("%s: accepted for %+v at %s\n%q\n%q", kind, who, now, wire, changed)
			} else if who != (sigv4.Credential{}) {
				t.Fatalf("refused, and yet of %+v", who)
			}
		}
	}
	for _, kind := range []string{"time", "field", "bit"} {
		if kinds[kind] < enough/20 {
			t.Errorf("only %d requests had another %s", kinds[kind], kind)
		}
	}
}

// TestPresignedAsHeader: who has seen a presigned URL must not make it live longer.
func TestPresignedAsHeader(t *testing.T) {
	c := presignedCall()
	c.expires = 10
	r, body := mustRead(t, c.wire(t))
	q := r.URL.Query()
	r.Header.Set("Authorization", fmt.Sprintf("AWS4-HMAC-SHA256 Credential=%s, SignedHeaders=%s, Signature=%s",
		q.Get("X-Amz-Credential"), q.Get("X-Amz-SignedHeaders"), q.Get("X-Amz-Signature")))
	r.Header.Set("X-Amz-Date", q.Get("X-Amz-Date"))
	q.Del("X-Amz-Signature")
	r.URL.RawQuery = q.Encode()
	for _, strip := range []bool{false, true} {
		if strip {
			r.URL.RawQuery = strings.ReplaceAll(r.URL.RawQuery, "X-Amz-Algorithm", "X%2DAmz%2DAlgorithm")
		}
		if _, err := newVerifier(noon.Add(time.Minute)).Verify(r, body); err == nil {
			t.Error("a presigned URL has outlived itself")
		}
	}
}

func TestReasons(t *testing.T) {
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	replaced := func(from, to string) func(*http.Request) {
		return func(r *http.Request) {
			r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), from, to, 1))
		}
	}
	query := func(name, value string) func(*http.Request) {
		return func(r *http.Request) {
			q := r.URL.Query()
			q.Set(name, value)
			if value == "" {
				q.Del(name)
			}
			r.URL.RawQuery = q.Encode()
		}
	}
	for _, c := range []struct {
		name   string
		call   call
		change func(*http.Request)
		late   time.Duration
		reason sigv4.Reason
		text   string // a part of it
	}{
		{"other scheme", jsonCall(), header("Authorization", "Bearer x"), 0, sigv4.Malformed, "Unsupported AWS 'algorithm': 'Bearer'"},
		{
			"nothing in it", jsonCall(), header("Authorization", "AWS4-HMAC-SHA256 Credential="), 0, sigv4.Malformed,
			"Authorization header requires 'Credential' parameter. Authorization header requires 'Signature' parameter. Authorization header requires 'SignedHeaders' parameter.",
		},
		{"no date", jsonCall(), func(r *http.Request) { r.Header.Del("X-Amz-Date") }, 0, sigv4.Malformed, "existence of either a 'X-Amz-Date' or a 'Date' header"},
		{"odd date", jsonCall(), header("X-Amz-Date", "2026-03-01T12:00:00Z"), 0, sigv4.Malformed, "Date must be in ISO-8601 'basic format'. Got '2026-03-01T12:00:00Z'."},
		{"fraction of a second", jsonCall(), header("X-Amz-Date", "20260301T120000.5Z"), 0, sigv4.Malformed, "ISO-8601"},
		{"other day", jsonCall(), replaced("/20260301/", "/20260302/"), 0, sigv4.BadSignature, "'20260302' != '20260301', from '20260301T120000Z'."},
		{"short credential", jsonCall(), replaced("/sqs/aws4_request", ""), 0, sigv4.Malformed, "got 'test/20260301/us-east-1'"},
		{"terminator", jsonCall(), replaced("aws4_request", "aws5_request"), 0, sigv4.BadSignature, "'aws4_request', not 'aws5_request'."},
		{"no region", jsonCall(), replaced("us-east-1", ""), 0, sigv4.BadSignature, "valid region, not ''"},
		{"odd region", jsonCall(), replaced("us-east-1", "x y"), 0, sigv4.BadSignature, "valid region, not 'x y'"},
		{"other service", jsonCall(), replaced("/sqs/", "/sns/"), 0, sigv4.BadSignature, "correct service: 'sqs'."},
		{"unknown key", jsonCall(), replaced("=test/", "=nobody/"), 0, sigv4.UnknownKey, "The security token included in the request is invalid."},
		{"host not signed", jsonCall(), replaced("host;", ""), 0, sigv4.BadSignature, "'Host' or ':authority' must be a 'SignedHeader'"},
		{"action not signed", jsonCall(), replaced(";x-amz-target", ""), 0, sigv4.BadSignature, "'X-Amz-Target' must be a 'SignedHeader'"},
		{"unsorted", jsonCall(), replaced("host;x-amz-date", "x-amz-date;host"), 0, sigv4.Malformed, "sorted"},
		{"upper case", jsonCall(), replaced("host;", "Host;"), 0, sigv4.Malformed, "sorted"},
		{"payload", jsonCall(), header("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD"), 0, sigv4.BadSignature, "x-amz-content-sha256"},
		{"method", jsonCall(), func(r *http.Request) { r.Method = "PUT" }, 0, sigv4.BadSignature, "The request signature we calculated does not match"},
		{"late", jsonCall(), nil, 15*time.Minute + time.Second, sigv4.Expired, "Signature expired: 20260301T120000Z is now earlier than 20260301T120001Z (20260301T121501Z - 15 min.)"},
		{"early", jsonCall(), nil, -15*time.Minute - time.Second, sigv4.Expired, "Signature not yet current: 20260301T120000Z is still later than 20260301T115959Z (20260301T114459Z + 15 min.)"},
		{"two mechanisms", jsonCall(), query("X-Amz-Signature", "00"), 0, sigv4.Malformed, "Only one mechanism"},
		{"URL late", presignedCall(), nil, time.Hour + time.Second, sigv4.Expired, "Signature expired"},
		{"URL early", presignedCall(), nil, -time.Hour, sigv4.Expired, "not yet current"},
		{"no life", presignedCall(), query("X-Amz-Expires", "0"), 0, sigv4.Malformed, "1 to 604800"},
		{"long life", presignedCall(), query("X-Amz-Expires", "604801"), 0, sigv4.Malformed, "1 to 604800"},
		{"negative life", presignedCall(), query("X-Amz-Expires", "-1"), 0, sigv4.Malformed, "1 to 604800"},
		{"life not said", presignedCall(), query("X-Amz-Expires", ""), 0, sigv4.BadSignature, "does not match"},
		{"no signature", presignedCall(), query("X-Amz-Signature", ""), 0, sigv4.Malformed, "must include 'X-Amz-Signature'"},
		{"action added", presignedCall(), header("X-Amz-Target", "AmazonSQS.DeleteQueue"), 0, sigv4.BadSignature, "'X-Amz-Target' must be a 'SignedHeader'"},
		{"parameter added", presignedCall(), query("Action", "PurgeQueue"), 0, sigv4.BadSignature, "does not match"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, body := mustRead(t, c.call.wire(t))
			if _, err := newVerifier(noon).Verify(r, body); err != nil {
				t.Fatal(err)
			}
			if c.change != nil {
				c.change(r)
			}
			_, err := newVerifier(noon.Add(c.late)).Verify(r, body)
			var e *sigv4.Error
			if !errors.As(err, &e) {
				t.Fatalf("error %v", err)
			}
			if e.Reason != c.reason || !strings.Contains(e.Text, c.text) {
				t.Errorf("reason %d, %q; want %d, %q", e.Reason, e.Text, c.reason, c.text)
			}
		})
	}
}

// TestTimes: a signature counts for a quarter of an hour, a presigned URL for as long as it says.
func TestTimes(t *testing.T) {
	header, dated, silent := jsonCall(), presignedCall(), presignedCall()
	silent.expires = -1
	for _, c := range []struct {
		name  string
		call  call
		after time.Duration
		ok    bool
	}{
		{"header", header, 15 * time.Minute, true},
		{"header", header, 15*time.Minute + time.Second, false},
		{"header", header, -15 * time.Minute, true},
		{"header", header, -15*time.Minute - time.Second, false},
		{"URL", dated, time.Hour, true},
		{"URL", dated, time.Hour + time.Second, false},
		{"URL", dated, -15 * time.Minute, true},
		{"URL", dated, -15*time.Minute - time.Second, false},
		{"URL without a life", silent, 15 * time.Minute, true},
		{"URL without a life", silent, 15*time.Minute + time.Second, false},
	} {
		r, body := mustRead(t, c.call.wire(t))
		_, err := newVerifier(noon.Add(c.after)).Verify(r, body)
		var e *sigv4.Error
		if c.ok != (err == nil) || err != nil && (!errors.As(err, &e) || e.Reason != sigv4.Expired) {
			t.Errorf("%s, %v later: %v", c.name, c.after, err)
		}
	}
}

func TestUnsigned(t *testing.T) {
	for _, target := range []string{"/", "/?Action=ListQueues", "/?MessageBody=X-Amz-Signature%3D", "/?MessageBody=X-Amz-Signature=1", "/?x=%zz"} {
		r := httptest.NewRequest(http.MethodGet, "http://localhost"+target, nil)
		if _, err := sigv4.Parse(r); !errors.Is(err, sigv4.ErrUnsigned) {
			t.Errorf("%s: parse %v", target, err)
		}
		if _, err := newVerifier(noon).Verify(r, nil); !errors.Is(err, sigv4.ErrUnsigned) {
			t.Errorf("%s: verify %v", target, err)
		}
	}
}

// TestHostile: nobody without a secret makes the server work or remember.
func TestHostile(t *testing.T) {
	for name, change := range map[string]func(*http.Request){
		"many signed headers": func(r *http.Request) {
			r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=test/20260301/us-east-1/sqs/aws4_request, SignedHeaders="+strings.Repeat("host;", 100_000)+"x, Signature=00")
		},
		"headers just too many": func(r *http.Request) {
			r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=test/20260301/us-east-1/sqs/aws4_request, SignedHeaders="+strings.Repeat("host;", 64)+"x, Signature=00")
		},
		"many fields":     func(r *http.Request) { r.Header.Set("Authorization", "AWS4-HMAC-SHA256 "+strings.Repeat("x,", 4000)) },
		"many parameters": func(r *http.Request) { r.URL.RawQuery = strings.Repeat("a=b&", 100_000) + "X-Amz-Signature=00" },
		"long parameter": func(r *http.Request) {
			r.Header.Del("Authorization")
			r.URL.RawQuery = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=" + strings.Repeat("/", 100_000)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, body := mustRead(t, jsonCall().wire(t))
			change(r)
			v := newVerifier(noon)
			var err error
			allocated := testing.AllocsPerRun(10, func() { _, err = v.Verify(r, body) })
			var e *sigv4.Error
			if !errors.As(err, &e) || e.Reason != sigv4.Malformed {
				t.Fatalf("error %v", err)
			}
			if allocated > 20 || len(e.Text) > 500 {
				t.Errorf("%v allocations, an error of %d bytes", allocated, len(e.Text))
			}
		})
	}
}

// TestSDKClient signs by the client of SQS itself, over a connection, many at once.
func TestSDKClient(t *testing.T) {
	v := newVerifier(time.Now())
	v.Now = nil
	var mu sync.Mutex
	seen := map[sigv4.Credential]int{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		who, err := v.Verify(r, body)
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		if err != nil {
			t.Errorf("%s: %v", r.Header.Get("X-Amz-Target"), err)
			w.WriteHeader(http.StatusForbidden)
			return
		}
		who.Date = ""
		mu.Lock()
		seen[who]++
		mu.Unlock()
		_, _ = io.WriteString(w, "{}")
	}))
	defer srv.Close()
	regions := []string{"us-east-1", "eu-west-1"}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			client := sqs.New(sqs.Options{
				BaseEndpoint: aws.String(srv.URL), Region: regions[i%2],
				Credentials: credentials.NewStaticCredentialsProvider("test", "test", "token"), RetryMaxAttempts: 1,
			})
			for range 10 {
				if _, err := client.ListQueues(t.Context(), &sqs.ListQueuesInput{}); err != nil {
					t.Error(err)
				}
				if _, err := client.PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: aws.String(srv.URL + "/000000000000/orders.fifo")}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, region := range regions {
		if n := seen[sigv4.Credential{AccessKey: "test", Region: region, Service: "sqs", Token: "token"}]; n != 80 {
			t.Errorf("%s: %d calls of 80: %v", region, n, seen)
		}
	}
}

func BenchmarkVerify(b *testing.B) {
	c := jsonCall()
	c.body = strings.Repeat("x", 1024)
	for name, c := range map[string]call{"header": c, "presigned": presignedCall()} {
		b.Run(name, func(b *testing.B) {
			r, body := mustRead(b, c.wire(b))
			v := newVerifier(noon)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := v.Verify(r, body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// FuzzVerify: nothing that was not signed is accepted, and nothing takes long.
func FuzzVerify(f *testing.F) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 20 {
		f.Add(anyCall(rnd).wire(f))
	}
	f.Add(bytes.Replace(jsonCall().wire(f), []byte("Signature="), []byte("Signature=,"), 1))
	f.Fuzz(func(t *testing.T, wire []byte) {
		r, body, err := read(wire)
		if err != nil {
			return
		}
		start := time.Now()
		_, _ = sigv4.Parse(r)
		// Nobody knows this secret, so no request is signed with it.
		v := &sigv4.Verifier{Secret: func(string) (string, bool) { return "unguessable", true }, Now: func() time.Time { return noon }}
		if who, err := v.Verify(r, body); err == nil {
			t.Errorf("accepted for %+v", who)
		}
		// The machine may be busy, so one slow run is no proof.
		if took := time.Since(start); took > 100*time.Millisecond {
			start = time.Now()
			_, _ = v.Verify(r, body)
			if again := time.Since(start); again > 100*time.Millisecond {
				t.Errorf("took %s, then %s", took, again)
			}
		}
	})
}
