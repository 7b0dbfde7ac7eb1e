package sqsd

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"dlq/backends/broker"
	"dlq/backends/broker/store"
)

// fixture is a server over a real socket.
type fixture struct {
	testing.TB
	engine *broker.Engine
	server *Server
	url    string
}

// serve starts a server; set changes its options.
func serve(t testing.TB, set ...func(*Options)) *fixture {
	t.Helper()
	s, err := store.OpenMemory()
	if err != nil {
		t.Fatal(err)
	}
	e, err := broker.Open(broker.Options{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Engine: e, Unsigned: true}
	for _, f := range set {
		f(&o)
	}
	f := &fixture{TB: t, engine: e, server: New(o)}
	listener := httptest.NewServer(f.server)
	f.url = listener.URL
	t.Cleanup(func() {
		f.server.Close()
		listener.Close()
		_ = e.Close()
	})
	return f
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
}

func (f *fixture) do(r *http.Request) answer {
	f.Helper()
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		f.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		f.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(b)}
}

func (f *fixture) request(method, path, body string) *http.Request {
	f.Helper()
	r, err := http.NewRequestWithContext(f.Context(), method, f.url+path, strings.NewReader(body))
	if err != nil {
		f.Fatal(err)
	}
	return r
}

// call makes a JSON request. region is that of its credential; "": it is not signed.
func (f *fixture) call(region, action, body string) answer {
	f.Helper()
	r := f.request(http.MethodPost, "/", body)
	r.Header.Set("Content-Type", contentJSON)
	r.Header.Set("X-Amz-Target", "AmazonSQS."+action)
	if key, region, ok := strings.Cut(region, "@"); ok {
		r.Header.Set("X-Amz-Date", "20260101T000000Z")
		r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+key+"/20260101/"+region+"/sqs/aws4_request, SignedHeaders=host;x-amz-date, Signature=00")
	}
	return f.do(r)
}

// json makes an unsigned JSON request that has to succeed, and returns its answer.
func (f *fixture) json(action, body string) map[string]any {
	f.Helper()
	a := f.call("", action, body)
	if a.status != http.StatusOK {
		f.Fatalf("%s: %d %s", action, a.status, a.body)
	}
	var out map[string]any
	if err := json.Unmarshal([]byte(a.body), &out); err != nil {
		f.Fatalf("%s: %v in %s", action, err, a.body)
	}
	return out
}

// form makes a Query request.
func (f *fixture) form(path string, pairs ...string) answer {
	f.Helper()
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		v.Add(pairs[i], pairs[i+1])
	}
	r := f.request(http.MethodPost, path, v.Encode())
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	return f.do(r)
}

// soon waits until something is true that another goroutine does.
func soon(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within ten seconds: %s", what)
		}
	}
}
