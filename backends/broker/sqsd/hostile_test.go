package sqsd

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"dlq/backends/broker"
	"dlq/backends/message"
)

// TestErrorsBeforeTheBody: what is wrong with a body is said in the protocol of the request, too.
// Source: sqs-wire.md 7.15.
func TestErrorsBeforeTheBody(t *testing.T) {
	f := serve(t, func(o *Options) { o.Limits.BodyBytes = 100 })
	for name, change := range map[string]func(*http.Request){
		"too long": func(*http.Request) {},
		"encoded":  func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") },
	} {
		r := f.request(http.MethodPost, "/", `{"QueueName":"`+strings.Repeat("x", 200)+`"}`)
		r.Header.Set("X-Amz-Target", "AmazonSQS.CreateQueue")
		change(r)
		a := f.do(r)
		if !json.Valid([]byte(a.body)) || a.header.Get("Content-Type") != contentJSON || a.header.Get("X-Amzn-Query-Error") == "" {
			t.Errorf("%s: %d %v %s", name, a.status, a.header, a.body)
		}
	}
}

// TestOnlyAPostChangesUnsigned: a page of the web can make a browser send a HEAD, too.
func TestOnlyAPostChangesUnsigned(t *testing.T) {
	f := serve(t)
	f.json("CreateQueue", `{"QueueName":"orders"}`)
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodOptions} {
		f.do(f.request(method, "/000000000000/orders?Action=DeleteQueue", ""))
		if _, err := f.engine.Entity("orders"); err != nil {
			t.Fatalf("an unsigned %s has deleted a queue", method)
		}
	}
}

// TestWhoMayAskForAURL: everybody who may send or receive, and only of that queue.
func TestWhoMayAskForAURL(t *testing.T) {
	f := serve(t, func(o *Options) {
		o.Allowed = func(key, entity string, r Right) bool {
			right := map[string]Right{"sender": Send, "listener": Listen, "manager": Manage}
			return entity == "orders" && (r == right[key] || key == "manager")
		}
	})
	for _, name := range []string{"orders", "others"} {
		f.json("CreateQueue", `{"QueueName":"`+name+`"}`)
	}
	for _, key := range []string{"sender", "listener", "manager"} {
		if a := f.call(key+"@us-east-1", "GetQueueUrl", `{"QueueName":"orders"}`); a.status != http.StatusOK {
			t.Errorf("%s: %d %s", key, a.status, a.body)
		}
		for _, name := range []string{"others", "missing"} {
			if a := f.call(key+"@us-east-1", "GetQueueUrl", `{"QueueName":"`+name+`"}`); a.status != http.StatusForbidden {
				t.Errorf("%s, %s: %d %s", key, name, a.status, a.body)
			}
		}
	}
}

// TestNamesDoNotReachElsewhere: a name of a queue has no region and account in it.
func TestNamesDoNotReachElsewhere(t *testing.T) {
	f := serve(t)
	f.call("test@eu-west-1", "CreateQueue", `{"QueueName":"dead"}`)
	if _, err := f.engine.Entity("eu-west-1/000000000000/dead"); err != nil {
		t.Fatal(err)
	}
	f.json("CreateQueue", `{"QueueName":"orders"}`)
	if a := f.call("test@us-east-1", "GetQueueUrl", `{"QueueName":"eu-west-1/000000000000/dead"}`); a.status == http.StatusOK {
		t.Errorf("found: %s", a.body)
	}
	policy := `{\"maxReceiveCount\":1,\"deadLetterTargetArn\":\"arn:aws:sqs:us-east-1:000000000000:eu-west-1/000000000000/dead\"}`
	if a := f.call("test@us-east-1", "SetQueueAttributes", `{"QueueUrl":"orders","Attributes":{"RedrivePolicy":"`+policy+`"}}`); a.status == http.StatusOK {
		t.Error("a dead-letter queue in another region was taken")
	}
}

// TestAQueueKeepsNoMoreThanItMay: everything that a queue has is in memory.
func TestAQueueKeepsNoMoreThanItMay(t *testing.T) {
	f := serve(t)
	f.json("CreateQueue", `{"QueueName":"orders"}`)
	long := strings.Repeat("x", 100_000)
	for action, body := range map[string]string{
		"SetQueueAttributes": `{"QueueUrl":"orders","Attributes":{"Policy":"\"` + long + `\""}}`,
		"CreateQueue":        `{"QueueName":"other","Attributes":{"KmsMasterKeyId":"` + long + `"}}`,
		"TagQueue":           `{"QueueUrl":"orders","Tags":{"a":"` + long + `"}}`,
		"AddPermission":      `{"QueueUrl":"orders","Label":"a","AWSAccountIds":["` + long + `"],"Actions":["*"]}`,
	} {
		if a := f.call("", action, body); a.status == http.StatusOK {
			t.Errorf("%s was taken", action)
		}
	}
	for i := range 1000 {
		f.call("", "AddPermission", fmt.Sprintf(`{"QueueUrl":"orders","Label":"l%d","AWSAccountIds":["111122223333"],"Actions":["*"]}`, i))
	}
	f.json("TagQueue", `{"QueueUrl":"orders","Tags":{"`+strings.Repeat("ж", 128)+`":"`+strings.Repeat("ж", 256)+`"}}`)
	if info, err := f.engine.Entity("orders"); err != nil || len(info.Extra[extraPolicy]) > 10_000 {
		t.Errorf("a policy of %d bytes, %v", len(info.Extra[extraPolicy]), err)
	}
}

// TestTakenName: the code is the one that clients know, whatever has the name.
func TestTakenName(t *testing.T) {
	f := serve(t)
	if err := f.engine.Create("bus", broker.Queue, broker.Defaults(broker.Queue, broker.ServiceBus)); err != nil {
		t.Fatal(err)
	}
	a := f.call("", "CreateQueue", `{"QueueName":"bus"}`)
	if a.status != http.StatusBadRequest || a.header.Get("X-Amzn-Query-Error") != "QueueAlreadyExists;Sender" {
		t.Errorf("%d %s %s", a.status, a.header.Get("X-Amzn-Query-Error"), a.body)
	}
}

// TestAttemptsAreBounded: what is remembered of receives costs neither much memory nor a delete its
// time, and the last receives can be tried again.
func TestAttemptsAreBounded(t *testing.T) {
	var a attempts
	now := time.Unix(1_800_000_000, 0)
	key := func(i int) attemptKey { return attemptKey{"orders.fifo", fmt.Sprint(i)} }
	msgs := func() []*message.Message {
		out := make([]*message.Message, 10)
		for i := range out {
			out[i] = &message.Message{Broker: message.Broker{SequenceNumber: int64(i + 1), LockToken: message.RandomUUID()}}
		}
		return out
	}
	const n = 3 * maxAttempts
	for i := range n {
		a.keep(key(i), msgs(), now)
		if a.find(key(i), now) == nil {
			t.Fatalf("receive %d cannot be tried again", i)
		}
	}
	last := a.find(key(n-1), now)
	start := time.Now()
	for range 10_000 {
		a.spoil([]broker.Delivery{{Seq: 1, Token: message.RandomUUID()}})
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("10,000 deletes took %v", took)
	}
	a.spoil(last[3:4])
	if a.find(key(n-1), now) != nil {
		t.Error("a receive can be tried again though a message of it was deleted")
	}
	if len(a.by) > maxAttempts || len(a.of) > 10*maxAttempts {
		t.Errorf("%d receives of %d deliveries are kept", len(a.by), len(a.of))
	}
	a.keep(key(1), msgs(), now.Add(attemptWindow))
	a.keep(key(1), msgs(), now.Add(attemptWindow)) // takes the place of the first
	for i := range n {
		if i != 1 && a.find(key(i), now.Add(attemptWindow)) != nil {
			t.Fatalf("receive %d is tried again after its time", i)
		}
	}
	if len(a.by) != 1 || len(a.of) != 10 {
		t.Errorf("%d receives of %d deliveries are left", len(a.by), len(a.of))
	}
}

// TestAllMessagesAreShown: the page shows more than the engine gives at once.
func TestAllMessagesAreShown(t *testing.T) {
	f := serve(t)
	f.json("CreateQueue", `{"QueueName":"orders"}`)
	const n = 20
	for range n {
		f.json("SendMessage", `{"QueueUrl":"orders","MessageBody":"`+strings.Repeat("x", 1<<20)+`"}`)
	}
	a := f.do(f.request(http.MethodGet, messagesPath+"?QueueUrl=orders", ""))
	if got := strings.Count(a.body, "<Message>"); got != n {
		t.Errorf("%d messages of %d are shown", got, n)
	}
}

// TestAllowPolicyNamesOtherRegions: a source in another region stays what it is.
func TestAllowPolicyNamesOtherRegions(t *testing.T) {
	f := serve(t)
	const there, here = "arn:aws:sqs:us-east-1:000000000000:orders", "arn:aws:sqs:eu-west-1:000000000000:orders"
	policy := `{\"redrivePermission\":\"byQueue\",\"sourceQueueArns\":[\"` + there + `\"]}`
	for _, call := range []string{
		`CreateQueue {"QueueName":"dead","Attributes":{"RedriveAllowPolicy":"` + policy + `"}}`,
		`CreateQueue {"QueueName":"dead","Attributes":{"RedriveAllowPolicy":"` + policy + `"}}`,
		`SetQueueAttributes {"QueueUrl":"dead","Attributes":{"RedriveAllowPolicy":"` + policy + `"}}`,
	} {
		action, body, _ := strings.Cut(call, " ")
		if a := f.call("test@eu-west-1", action, body); a.status != http.StatusOK {
			t.Fatalf("%s: %d %s", action, a.status, a.body)
		}
		a := f.call("test@eu-west-1", "GetQueueAttributes", `{"QueueUrl":"dead","AttributeNames":["RedriveAllowPolicy"]}`)
		if !strings.Contains(a.body, there) || strings.Contains(a.body, here) {
			t.Errorf("after %s: %s", action, a.body)
		}
	}
	redrive := `{\"maxReceiveCount\":1,\"deadLetterTargetArn\":\"arn:aws:sqs:eu-west-1:000000000000:dead\"}`
	if a := f.call("test@eu-west-1", "CreateQueue", `{"QueueName":"orders","Attributes":{"RedrivePolicy":"`+redrive+`"}}`); a.status == http.StatusOK {
		t.Error("a queue that the policy does not name may use the dead-letter queue")
	}
}

// TestManySegments: of a name that is too long for one, not every part is looked at.
// Source: reliability.md, test 17: no input takes 100 ms.
func TestManySegments(t *testing.T) {
	f := serve(t)
	for body, action := range map[string]string{
		`{"SourceArn":"` + strings.Repeat(":", 4<<20) + `"}`:   "StartMessageMoveTask",
		`{"QueueUrl":"` + strings.Repeat("/a", 2<<20) + `"}`:   "ReceiveMessage",
		`{"QueueUrl":"` + strings.Repeat("a/", 2<<20) + `"}`:   "ReceiveMessage",
		`{"QueueUrl":"` + strings.Repeat("/%41", 1<<20) + `"}`: "ReceiveMessage",
	} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r.Header.Set("X-Amz-Target", "AmazonSQS."+action)
		w := httptest.NewRecorder()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f.server.ServeHTTP(w, r)
		runtime.ReadMemStats(&after)
		if got := (after.TotalAlloc - before.TotalAlloc) / uint64(len(body)); w.Code != http.StatusBadRequest || got > 12 {
			t.Errorf("%s, %.30s: %d, and took %d times its size in memory", action, body, w.Code, got)
		}
	}
}

// TestShortOfMemory: what is large is not even read then, and settling goes on.
// Source: reliability.md §4, "memory guard".
func TestShortOfMemory(t *testing.T) {
	short := false
	f := serve(t, func(o *Options) { o.Short = func() bool { return short } })
	f.json("CreateQueue", `{"QueueName":"orders"}`)
	f.json("SendMessage", `{"QueueUrl":"orders","MessageBody":"x"}`)
	short = true
	for name, length := range map[string]int64{"announced": 1 << 20, "chunked": -1} {
		body := strings.NewReader(`{"QueueUrl":"orders","Junk":"` + strings.Repeat("x", 1<<20) + `"}`)
		r := httptest.NewRequest(http.MethodPost, "/", io.NopCloser(body))
		r.ContentLength = length
		r.Header.Set("X-Amz-Target", "AmazonSQS.ReceiveMessage")
		w := httptest.NewRecorder()
		f.server.ServeHTTP(w, r)
		if !strings.Contains(w.Body.String(), "RequestThrottled") || body.Len() < 900<<10 {
			t.Errorf("%s: %d %s, and %d bytes were not read", name, w.Code, w.Body, body.Len())
		}
	}
	got := f.json("ReceiveMessage", `{"QueueUrl":"orders"}`)["Messages"].([]any)[0].(map[string]any)
	f.json("DeleteMessage", `{"QueueUrl":"orders","ReceiptHandle":"`+got["ReceiptHandle"].(string)+`"}`)
	if a := f.call("", "SendMessage", `{"QueueUrl":"orders","MessageBody":"x"}`); !strings.Contains(a.body, "RequestThrottled") {
		t.Errorf("sent: %s", a.body)
	}
}

// TestTraceHeaderIsOneShortText: it does not count as part of the message, so that it must not be
// able to carry one.
func TestTraceHeaderIsOneShortText(t *testing.T) {
	f := serve(t)
	f.json("CreateQueue", `{"QueueName":"orders"}`)
	for name, value := range map[string]string{"long": strings.Repeat("x", 2<<20), "longish": strings.Repeat("x", 20_000), "odd": `\u0001`, "half": `\ud800`} {
		a := f.call("", "SendMessage", `{"QueueUrl":"orders","MessageBody":"x","MessageSystemAttributes":{"AWSTraceHeader":{"DataType":"String","StringValue":"`+value+`"}}}`)
		if a.status != http.StatusBadRequest || len(a.body) > 1000 {
			t.Errorf("%s: %d %.200s", name, a.status, a.body)
		}
	}
	twice := []string{"Action", "SendMessage", "QueueUrl", "orders", "MessageBody", "x"}
	for _, i := range []string{"1", "2"} {
		key := "MessageSystemAttribute." + i
		twice = append(twice, key+".Name", "AWSTraceHeader", key+".Value.DataType", "String", key+".Value.StringValue", "Root="+i)
	}
	if a := f.form("/", twice...); a.status != http.StatusBadRequest {
		t.Errorf("twice: %d %s", a.status, a.body)
	}
	f.json("SendMessage", `{"QueueUrl":"orders","MessageBody":"`+strings.Repeat("x", 1<<20)+`","MessageSystemAttributes":{"AWSTraceHeader":{"DataType":"String","StringValue":"`+strings.Repeat("x", maxTrace)+`"}}}`)
}
