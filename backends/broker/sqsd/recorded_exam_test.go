package sqsd_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/cockroachdb/pebble/v2/vfs"

	"dlq/backends/broker"
	"dlq/backends/broker/sqsd"
	"dlq/backends/broker/store"
)

// exam is a server of its own for one statement in one protocol, with a clock that stands still
// until it is moved.
type exam struct {
	*testing.T
	api      api
	protocol string
	base     string // of the server's URLs
	region   string
	arns     string // what ARNs begin with
	ymq      bool   // the server imitates Yandex Message Queue
	engine   *broker.Engine
	wire     *recorder
	extras   extras // of the next call

	mu  sync.Mutex
	now time.Time
}

func newExam(t *testing.T, protocol string) *exam {
	return openExam(t, protocol, sqsd.Options{})
}

// openExam starts a server.
func openExam(t *testing.T, protocol string, o sqsd.Options) *exam {
	t.Helper()
	x := &exam{
		T: t, protocol: protocol, region: "us-east-1", arns: "arn:aws:sqs:us-east-1:000000000000:",
		now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
	}
	s, err := store.Open(vfs.NewMem(), "data")
	if err != nil {
		t.Fatal(err)
	}
	o.Now, o.Unsigned = x.time, o.Verifier == nil
	if o.Engine, err = broker.Open(broker.Options{Store: s, Now: x.time}); err != nil {
		t.Fatal(err)
	}
	server := sqsd.New(o)
	listener := httptest.NewServer(server)
	t.Cleanup(func() {
		server.Close()
		listener.Close()
		_ = o.Engine.Close()
	})
	x.base, x.engine = listener.URL, o.Engine
	x.wire = &recorder{next: listener.Client().Transport}
	if x.ymq = o.Flavor == sqsd.YMQ; x.ymq {
		x.arns, x.region = "yrn:yc:ymq:ru-central1:"+ymqFolder+":", "ru-central1"
	}
	x.as("test", "test")
	return x
}

// as makes the next calls with a key; "" signs nothing.
func (x *exam) as(access, secret string) {
	x.api = newSDK(x.base, x.region, keys(access, secret), x.wire)
	if x.query() {
		x.api = &queryClient{
			http: &http.Client{Transport: x.wire}, base: x.base, namespace: x.namespace(), region: x.region, keys: keys(access, secret),
		}
	}
}

func (x *exam) time() time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.now
}

func (x *exam) wait(d time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.now = x.now.Add(d)
}

// namespace is that of XML answers; YMQ has none.
func (x *exam) namespace() string {
	if x.ymq {
		return ""
	}
	return queryNamespace
}

// query reports whether the case runs in the Query protocol.
func (x *exam) query() bool { return x.protocol == "query" }

// ctx is of one call, with what that call is to say beside what the SDK can say.
func (x *exam) ctx() context.Context {
	e := x.extras
	x.extras = nil
	return context.WithValue(x.Context(), extrasKey{}, e)
}

// with has the next call send a member that the SDK leaves out, or, with nil, leave one out that
// the SDK sends.
func (x *exam) with(name string, value any) *exam {
	x.extras = maps.Clone(x.extras)
	if x.extras == nil {
		x.extras = extras{}
	}
	x.extras[name] = value
	return x
}

func (x *exam) ok(err error) {
	x.Helper()
	if err != nil {
		x.Fatalf("%v\n%s", err, x.wire.last().body)
	}
}

// equal compares what came with what was recorded.
func (x *exam) equal(what string, got, want any) {
	x.Helper()
	if !reflect.DeepEqual(got, want) {
		x.Errorf("%s: %v, want %v", what, show(got), show(want))
	}
}

func show(v any) string {
	if b, err := json.Marshal(v); err == nil {
		return string(b)
	}
	return fmt.Sprint(v)
}

// refusal is an error as the service says it.
type refusal struct {
	status int
	shape  string // of __type, with its namespace
	code   string // in the Query protocol and in x-amzn-query-error
	text   string // "": whatever it says
	query  string // text of the Query protocol, where it is another one
}

const (
	modeled = "com.amazonaws.sqs#"
	coral   = "com.amazon.coral.service#"
	asqs    = "AWS.SimpleQueueService."
)

func noQueue() refusal {
	return refusal{
		400, modeled + "QueueDoesNotExist", asqs + "NonExistentQueue",
		"The specified queue does not exist.", "The specified queue does not exist for this wsdl version.",
	}
}

func invalidParameter(text string) refusal {
	return refusal{status: 400, shape: coral + "InvalidParameterValueException", code: "InvalidParameterValue", text: text}
}

func missingParameter(name string) refusal {
	return refusal{
		status: 400, shape: coral + "MissingRequiredParameterException", code: "MissingParameter",
		text: "The request must contain the parameter " + name + ".",
	}
}

// plainly is an error of the model whose code is its name.
func plainly(status int, name, text string) refusal {
	return refusal{status: status, shape: modeled + name, code: name, text: text}
}

// prefixed is an error of the model whose code has the prefix of the service.
func prefixed(status int, name, text string) refusal {
	return refusal{status: status, shape: modeled + name, code: asqs + name, text: text}
}

// refused checks that a call failed, on the wire and as the client sees it.
func (x *exam) refused(err error, want refusal) {
	x.Helper()
	if err == nil {
		x.Errorf("no error, want %s %q", want.code, want.text)
		return
	}
	var seen smithy.APIError
	if !errors.As(err, &seen) {
		x.Fatalf("no error of the API: %v", err)
	}
	e := x.wire.last()
	x.equal("status", e.status, want.status)
	x.equal("code", seen.ErrorCode(), want.code)
	if e.header.Get("X-Amzn-Requestid") == "" {
		x.Error("no x-amzn-RequestId")
	}
	if x.query() {
		x.refusedXML(e, want)
		return
	}
	x.equal("Content-Type", e.header.Get("Content-Type"), "application/x-amz-json-1.0")
	x.equal("x-amzn-query-error", e.header["X-Amzn-Query-Error"], []string{want.code + ";" + side(want.status)})
	var body map[string]string
	if err := json.Unmarshal(e.body, &body); err != nil {
		x.Fatalf("%v in %s", err, e.body)
	}
	x.equal("__type", body["__type"], want.shape)
	x.equal("members", slices.Sorted(maps.Keys(body)), []string{"__type", "message"})
	if want.text != "" {
		x.equal("message", body["message"], want.text)
	}
	x.equal("type in the SDK", reflect.TypeOf(seen).Elem().Name(), sdkType(want.shape))
}

// refusedXML checks an error of the Query protocol, which has nothing but this.
func (x *exam) refusedXML(e exchange, want refusal) {
	x.Helper()
	text := want.text
	if want.query != "" {
		text = want.query
	}
	x.equal("Content-Type", e.header.Get("Content-Type"), "text/xml")
	root, err := parseXML(e.body)
	x.ok(err)
	x.equal("root", root.XMLName, xml.Name{Space: x.namespace(), Local: "ErrorResponse"})
	x.equal("elements", root.names(), []string{"Error", "RequestId"})
	if x.ymq {
		x.equal("elements of the error", root.kid("Error").names(), []string{"Message", "Code"})
	} else {
		x.equal("elements of the error", root.kid("Error").names(), []string{"Type", "Code", "Message", "Detail"})
		x.equal("Type", root.kid("Error").kid("Type").Text, side(want.status))
		x.equal("Detail", root.kid("Error").kid("Detail").Text, "")
	}
	if text != "" {
		x.equal("Message", root.kid("Error").kid("Message").Text, text)
	}
}

func side(status int) string {
	if status >= 500 {
		return "Receiver"
	}
	return "Sender"
}

// sdkType is the type that the SDK makes of a shape: its own, if the model has one.
func sdkType(shape string) string {
	if name, ok := strings.CutPrefix(shape, modeled); ok {
		return name
	}
	return "GenericAPIError"
}

// exchange is a request and its answer.
type exchange struct {
	status int
	header http.Header
	body   []byte
}

// recorder keeps what went over the wire.
type recorder struct {
	next http.RoundTripper
	mu   sync.Mutex
	done []exchange
}

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(body))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done = append(r.done, exchange{response.StatusCode, response.Header, body})
	return response, err
}

func (r *recorder) last() exchange {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.done) == 0 {
		return exchange{}
	}
	return r.done[len(r.done)-1]
}

// raw sends a request as it is written.
func (x *exam) raw(method, path string, header map[string]string, body string) exchange {
	x.Helper()
	request, err := http.NewRequestWithContext(x.Context(), method, x.base+path, strings.NewReader(body))
	x.ok(err)
	for name, value := range header {
		request.Header.Set(name, value)
		if name == "Host" {
			request.Host = value
		}
	}
	response, err := (&http.Client{Transport: x.wire}).Do(request)
	x.ok(err)
	_ = response.Body.Close()
	return x.wire.last()
}

// rawJSON posts a request of the JSON protocol.
func (x *exam) rawJSON(path, target, body string) exchange {
	x.Helper()
	return x.raw(http.MethodPost, path, map[string]string{"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": target}, body)
}

// rawForm posts a request of the Query protocol.
func (x *exam) rawForm(path, form string) exchange {
	x.Helper()
	return x.raw(http.MethodPost, path, map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, form)
}

func (x *exam) contains(e exchange, parts ...string) {
	x.Helper()
	for _, part := range parts {
		if !bytes.Contains(e.body, []byte(part)) {
			x.Errorf("no %s in %s", part, e.body)
		}
	}
}

func (x *exam) lacks(e exchange, parts ...string) {
	x.Helper()
	for _, part := range parts {
		if bytes.Contains(e.body, []byte(part)) {
			x.Errorf("%s in %s", part, e.body)
		}
	}
}

// md5Of is the MD5 that the service calculates over message attributes, written down once more.
func md5Of(attributes map[string]types.MessageAttributeValue) string {
	if len(attributes) == 0 {
		return ""
	}
	var b []byte
	put := func(s string) {
		b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
		b = append(b, s...)
	}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		a := attributes[name]
		put(name)
		put(aws.ToString(a.DataType))
		if strings.HasPrefix(aws.ToString(a.DataType), "Binary") {
			b = append(b, 2)
			put(string(a.BinaryValue))
			continue
		}
		b = append(b, 1)
		put(aws.ToString(a.StringValue))
	}
	return md5Hex(string(b))
}

func md5Hex(s string) string {
	sum := md5.Sum([]byte(s))
	return hex.EncodeToString(sum[:])
}
