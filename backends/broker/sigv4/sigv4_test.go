package sigv4_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"dlq/backends/broker/sigv4"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const (
	key    = "AKIDEXAMPLE"
	secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
)

func verifier(at time.Time) *sigv4.Verifier {
	return &sigv4.Verifier{
		Secret: func(k string) (string, bool) { return secret, k == key },
		Now:    func() time.Time { return at },
	}
}

// shape is a request to be signed.
type shape struct {
	method, url, body string
	header            http.Header
	region, token     string
	presign           bool
}

// signed signs a request with the SDK's signer, and returns it as a server gets it.
func (s shape) signed(t testing.TB, at time.Time) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), s.method, s.url, strings.NewReader(s.body))
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range s.header {
		r.Header[name] = values
	}
	sum := sha256.Sum256([]byte(s.body))
	who := aws.Credentials{AccessKeyID: key, SecretAccessKey: secret, SessionToken: s.token}
	if !s.presign {
		if err := v4.NewSigner().SignHTTP(t.Context(), who, r, hex.EncodeToString(sum[:]), "sqs", s.region, at); err != nil {
			t.Fatal(err)
		}
		return received(t, r, s.body)
	}
	q := r.URL.Query()
	q.Set("X-Amz-Expires", "300")
	r.URL.RawQuery = q.Encode()
	uri, header, err := v4.NewSigner().PresignHTTP(t.Context(), who, r, hex.EncodeToString(sum[:]), "sqs", s.region, at)
	if err != nil {
		t.Fatal(err)
	}
	if r, err = http.NewRequestWithContext(t.Context(), s.method, uri, strings.NewReader(s.body)); err != nil {
		t.Fatal(err)
	}
	for name, values := range header {
		if name != "Host" {
			r.Header[name] = values
		}
	}
	return received(t, r, s.body)
}

// received sends a request over the wire and returns what a server makes of it.
func received(t testing.TB, r *http.Request, body string) *http.Request {
	t.Helper()
	var wire bytes.Buffer
	if err := r.Write(&wire); err != nil {
		t.Fatal(err)
	}
	in := httptest.NewRequest(r.Method, "/", nil)
	in.Header = http.Header{}
	head, _, _ := strings.Cut(wire.String(), "\r\n\r\n")
	lines := strings.Split(head, "\r\n")
	target := strings.Fields(lines[0])[1]
	u, err := url.ParseRequestURI(target)
	if err != nil {
		t.Fatal(err)
	}
	in.URL = u
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ": ")
		if strings.EqualFold(name, "Host") {
			in.Host = value
			continue
		}
		in.Header.Add(name, value)
	}
	in.ContentLength = int64(len(body))
	return in
}

// shapes are requests of many kinds.
func shapes(n int) []shape {
	random := rand.New(rand.NewPCG(1, 2))
	paths := []string{"", "/", "/000000000000/orders", "/000000000000/orders.fifo", "/a%20b/c", "/queue/eu-west-1/1/q", "/%C3%A9/", "//a//b", "/a+b"}
	queries := []string{"", "?Action=ListQueues", "?b=2&a=1&a=0", "?Action=SendMessage&MessageBody=a%20b%2Bc%26%3D&Version=2012-11-05", "?empty=&flag", "?%C3%A9=%F0%9F%98%80&~=-._"}
	var out []shape
	for i := range n {
		s := shape{
			method: "POST", region: []string{"us-east-1", "elasticmq", "ru-central1"}[i%3],
			url: "http://localhost:9324" + paths[random.IntN(len(paths))] + queries[random.IntN(len(queries))],
			header: http.Header{
				"Content-Type": {"application/x-amz-json-1.0"}, "X-Amz-Target": {"AmazonSQS.SendMessage"},
				"Amz-Sdk-Request": {"attempt=1;  max=3"}, "X-Amzn-Query-Mode": {"true"}, "X-Amz-User-Agent": {" aws-sdk-js/3.1   md/x "},
			},
			body: strings.Repeat("é", random.IntN(50)) + strconv.Itoa(i),
		}
		if i%4 == 1 {
			s.token = "session/token+=="
		}
		if i%3 == 1 {
			s.method, s.presign, s.body, s.header = "GET", true, "", nil
		}
		if i%7 == 3 && !s.presign {
			s.header["X-Amz-Meta"] = []string{"one", "two  three"}
		}
		out = append(out, s)
	}
	return out
}

// TestSigned takes a thousand requests that the SDK has signed.
func TestSigned(t *testing.T) {
	v := verifier(now)
	for i, s := range shapes(1000) {
		r := s.signed(t, now)
		got, err := v.Verify(r, []byte(s.body))
		want := sigv4.Credential{AccessKey: key, Date: "20260301", Region: s.region, Service: "sqs", Token: s.token, Presigned: s.presign}
		if err != nil || got != want {
			t.Fatalf("%d: %s %s %v: %+v, %v", i, s.method, s.url, s.header, got, err)
		}
		if parsed, err := sigv4.Parse(r); err != nil || parsed != want {
			t.Fatalf("parsed as %+v, %v", parsed, err)
		}
	}
}

// TestTampered takes none of ten thousand that were changed after they were signed.
func TestTampered(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	v := verifier(now)
	all := shapes(200)
	counts := map[string]int{}
	for i := range 10_000 {
		s := all[i%len(all)]
		r := s.signed(t, now)
		body := []byte(s.body)
		what := tamper(random, r, &body)
		if what == "" {
			continue
		}
		counts[what]++
		if got, err := v.Verify(r, body); err == nil {
			t.Fatalf("%d: %s: %s %s was taken as %+v", i, what, r.Method, r.URL, got)
		}
	}
	t.Logf("%v", counts)
	if len(counts) < 8 {
		t.Errorf("only these were tried: %v", counts)
	}
}

// tamper changes one thing, and says which; "": there was nothing of its kind to change.
func tamper(random *rand.Rand, r *http.Request, body *[]byte) string {
	flip := func(s string) string {
		b := []byte(s)
		i := random.IntN(len(b))
		b[i] ^= 1 << random.IntN(7)
		if b[i] < 0x21 || b[i] == 0x7f || string(b) == s {
			b[i] = 'Q'
		}
		if string(b) == s {
			b[i] = 'R'
		}
		return string(b)
	}
	header := func(name string) string {
		if old := r.Header.Get(name); old != "" {
			r.Header.Set(name, flip(old))
			return name
		}
		return ""
	}
	switch random.IntN(10) {
	case 0:
		if len(*body) == 0 {
			*body = []byte("x")
		} else {
			*body = []byte(flip(string(*body)))
		}
		return "body"
	case 1:
		r.Method = map[string]string{"POST": "GET", "GET": "POST"}[r.Method]
		return "method"
	case 2:
		r.URL.Path, r.URL.RawPath = "/000000000000/other", ""
		return "path"
	case 3:
		r.URL.RawQuery = strings.TrimPrefix(r.URL.RawQuery+"&Action=PurgeQueue", "&")
		return "query"
	case 4:
		r.Host = "evil.example"
		return "host"
	case 5:
		return header("X-Amz-Target")
	case 6:
		return header("X-Amz-Date")
	case 7:
		return header("X-Amz-Security-Token")
	case 8:
		if old := r.Header.Get("Authorization"); old != "" {
			i := strings.LastIndexByte(old, '=') + 1
			r.Header.Set("Authorization", old[:i]+flip(old[i:]))
			return "signature"
		}
		q := r.URL.Query()
		q.Set("X-Amz-Signature", flip(q.Get("X-Amz-Signature")))
		r.URL.RawQuery = q.Encode()
		return "presigned signature"
	}
	if old := r.Header.Get("Authorization"); old != "" {
		r.Header.Set("Authorization", strings.Replace(old, key, flip(key), 1))
		return "key"
	}
	q := r.URL.Query()
	q.Set("X-Amz-Expires", "604800")
	r.URL.RawQuery = q.Encode()
	return "life"
}

// TestTimes: a signature counts for a quarter of an hour, a presigned URL for as long as it says.
func TestTimes(t *testing.T) {
	header := shape{method: "POST", url: "http://localhost/", region: "us-east-1"}
	presigned := shape{method: "GET", url: "http://localhost/?Action=ListQueues", region: "us-east-1", presign: true}
	for _, test := range []struct {
		s     shape
		after time.Duration
		ok    bool
	}{
		{header, 0, true},
		{header, 15 * time.Minute, true},
		{header, 15*time.Minute + time.Second, false},
		{header, -15 * time.Minute, true},
		{header, -15*time.Minute - time.Second, false},
		{presigned, 300 * time.Second, true},
		{presigned, 301 * time.Second, false},
		{presigned, -16 * time.Minute, false},
	} {
		_, err := verifier(now.Add(test.after)).Verify(test.s.signed(t, now), nil)
		var bad *sigv4.Error
		if test.ok != (err == nil) || err != nil && (!errors.As(err, &bad) || bad.Reason != sigv4.Expired) {
			t.Errorf("presigned %v, %v later: %v", test.s.presign, test.after, err)
		}
	}
}

// TestRefused says why.
func TestRefused(t *testing.T) {
	good := shape{method: "POST", url: "http://localhost/", region: "us-east-1", header: http.Header{"X-Amz-Target": {"AmazonSQS.ListQueues"}}}
	bare := shape{method: "POST", url: "http://localhost/", region: "us-east-1"}
	pre := shape{method: "GET", url: "http://localhost/?Action=ListQueues", region: "us-east-1", presign: true}
	set := func(old, with string) func(*http.Request) {
		return func(r *http.Request) {
			r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), old, with, 1))
		}
	}
	query := func(name, value string) func(*http.Request) {
		return func(r *http.Request) {
			q := r.URL.Query()
			q.Set(name, value)
			r.URL.RawQuery = q.Encode()
		}
	}
	for name, test := range map[string]struct {
		s      shape
		change func(*http.Request)
		reason sigv4.Reason
	}{
		"another algorithm":      {good, set("AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256"), sigv4.Malformed},
		"basic":                  {good, func(r *http.Request) { r.SetBasicAuth("a", "b") }, sigv4.Malformed},
		"no credential":          {good, set("Credential=", "Nothing="), sigv4.Malformed},
		"a short scope":          {good, set("/us-east-1", ""), sigv4.Malformed},
		"another service":        {good, set("/sqs/", "/s3/"), sigv4.BadSignature},
		"another region":         {good, set("us-east-1", "us-east-2"), sigv4.BadSignature},
		"an unknown key":         {good, set(key, "AKIDOTHER"), sigv4.UnknownKey},
		"no signature":           {good, set("Signature=", "Nothing="), sigv4.Malformed},
		"the host is not signed": {good, set("host;", ""), sigv4.BadSignature},
		"no date":                {good, func(r *http.Request) { r.Header.Del("X-Amz-Date") }, sigv4.Malformed},
		"a strange date":         {good, func(r *http.Request) { r.Header.Set("X-Amz-Date", "Sun, 01 Mar 2026 12:00:00 GMT") }, sigv4.Malformed},
		"another day":            {good, func(r *http.Request) { r.Header.Set("X-Amz-Date", "20260302T120000Z") }, sigv4.BadSignature},
		"a long header":          {good, func(r *http.Request) { r.Header.Set("Authorization", "AWS4-HMAC-SHA256 "+strings.Repeat("a", 100_000)) }, sigv4.Malformed},
		"many headers":           {good, set("SignedHeaders=", "SignedHeaders="+strings.Repeat("a;", 1000)), sigv4.Malformed},
		"another body's hash":    {good, func(r *http.Request) { r.Header.Set("X-Amz-Content-Sha256", strings.Repeat("0", 64)) }, sigv4.BadSignature},
		"a long life":            {pre, query("X-Amz-Expires", "604801"), sigv4.Malformed},
		"no life":                {pre, query("X-Amz-Expires", ""), sigv4.Malformed},
		"a target not signed":    {bare, func(r *http.Request) { r.Header.Set("X-Amz-Target", "AmazonSQS.PurgeQueue") }, sigv4.BadSignature},
		"two signatures":         {good, query("X-Amz-Signature", "00"), sigv4.Malformed},
		"a bad query string":     {pre, func(r *http.Request) { r.URL.RawQuery += "&%zz" }, sigv4.Malformed},
	} {
		t.Run(name, func(t *testing.T) {
			r := test.s.signed(t, now)
			test.change(r)
			_, err := verifier(now).Verify(r, nil)
			var bad *sigv4.Error
			if !errors.As(err, &bad) || bad.Reason != test.reason || bad.Text == "" {
				t.Errorf("%v, want reason %d", err, test.reason)
			}
		})
	}
	for name, r := range map[string]*http.Request{
		"nothing": httptest.NewRequest("POST", "/", nil),
		"a query": httptest.NewRequest("GET", "/?Action=ListQueues&X-Amz-Date=20260301T120000Z", nil),
	} {
		if _, err := verifier(now).Verify(r, nil); !errors.Is(err, sigv4.ErrUnsigned) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSDK takes what the client for SQS sends, over a socket.
func TestSDK(t *testing.T) {
	v := &sigv4.Verifier{Secret: func(k string) (string, bool) { return secret, k == key }}
	calls := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		calls++
		if got, err := v.Verify(r, body); err != nil || got.AccessKey != key || got.Region != "eu-west-1" {
			t.Errorf("%+v, %v", got, err)
		}
		fmt.Fprint(w, "{}")
	}))
	defer srv.Close()
	c := sqs.New(sqs.Options{Region: "eu-west-1", BaseEndpoint: &srv.URL, Credentials: credentials.NewStaticCredentialsProvider(key, secret, "token")})
	for _, url := range []string{srv.URL + "/000000000000/orders", srv.URL + "/000000000000/orders.fifo"} {
		if _, err := c.ReceiveMessage(context.Background(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10}); err != nil {
			t.Error(err)
		}
	}
	if calls != 2 {
		t.Errorf("%d calls", calls)
	}
}

// FuzzVerify: nothing that was not signed is taken, and nothing makes it panic.
func FuzzVerify(f *testing.F) {
	good := shape{method: "POST", url: "http://localhost/a?b=c", region: "us-east-1", body: "x"}.signed(f, now)
	f.Add(good.Header.Get("Authorization"), good.URL.RawQuery, "/a", "x", good.Header.Get("X-Amz-Date"))
	pre := shape{method: "GET", url: "http://localhost/?Action=ListQueues", region: "us-east-1", presign: true}.signed(f, now)
	f.Add("", pre.URL.RawQuery, "/", "", "")
	f.Add("AWS4-HMAC-SHA256 Credential=/////,SignedHeaders=host;;,Signature=", "%", "%2F", "", "20260301T120000Z")
	wrong := &sigv4.Verifier{Secret: func(string) (string, bool) { return "another secret", true }, Now: func() time.Time { return now }}
	f.Fuzz(func(t *testing.T, authorization, query, path, body, date string) {
		r := httptest.NewRequest("POST", "/", nil)
		r.URL.Path, r.URL.RawQuery, r.Host = path, query, "localhost"
		if authorization != "" {
			r.Header["Authorization"] = []string{authorization}
		}
		r.Header["X-Amz-Date"] = []string{date}
		_, _ = sigv4.Parse(r)
		if _, err := wrong.Verify(r, []byte(body)); err == nil {
			t.Fatal("taken")
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	body := strings.Repeat("x", 1024)
	r := shape{
		method: "POST", url: "http://localhost:9324/", region: "us-east-1", body: body,
		header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "X-Amz-Target": {"AmazonSQS.SendMessage"}},
	}.signed(b, now)
	v := verifier(now)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.Verify(r, []byte(body)); err != nil {
			b.Fatal(err)
		}
	}
}
