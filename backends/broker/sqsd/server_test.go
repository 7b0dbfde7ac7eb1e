package sqsd

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"dlq/backends/broker"
	"dlq/backends/broker/sigv4"
	"dlq/backends/message"
)

// TestRegionsAndAccounts: the same name is another queue in each.
func TestRegionsAndAccounts(t *testing.T) {
	f := serve(t, func(o *Options) {
		o.Account = func(key string) string {
			if len(key) == 12 {
				return key
			}
			return ""
		}
	})
	for _, who := range []string{"test@us-east-1", "test@eu-west-1", "111122223333@us-east-1"} {
		if a := f.call(who, "CreateQueue", `{"QueueName":"orders"}`); a.status != http.StatusOK {
			t.Fatalf("%s: %d %s", who, a.status, a.body)
		}
		f.call(who, "SendMessage", fmt.Sprintf(`{"QueueUrl":"orders","MessageBody":"of %s"}`, who))
	}
	for who, url := range map[string]string{
		"test@us-east-1": f.url + "/000000000000/orders", "test@eu-west-1": f.url + "/000000000000/orders",
		"111122223333@us-east-1": f.url + "/111122223333/orders",
	} {
		a := f.call(who, "ListQueues", `{}`)
		if want := `{"QueueUrls":["` + url + `"]}`; a.body != want {
			t.Errorf("%s lists %s, want %s", who, a.body, want)
		}
		if a := f.call(who, "ReceiveMessage", `{"QueueUrl":"`+url+`"}`); !strings.Contains(a.body, `"Body":"of `+who+`"`) {
			t.Errorf("%s receives %s", who, a.body)
		}
	}
	for _, name := range []string{"orders", "eu-west-1/000000000000/orders", "us-east-1/111122223333/orders"} {
		if _, err := f.engine.Entity(name); err != nil {
			t.Errorf("the engine: %v", err)
		}
	}
	// Who signs nothing says no region: the queue is found if there is just one.
	f.call("test@eu-west-1", "CreateQueue", `{"QueueName":"only"}`)
	if a := f.call("", "SendMessage", `{"QueueUrl":"`+f.url+`/000000000000/only","MessageBody":"x"}`); a.status != http.StatusOK {
		t.Errorf("the only queue of its name: %d %s", a.status, a.body)
	}
}

// TestForeignEntities: the queues of Service Bus are none of SQS, and keep their names.
func TestForeignEntities(t *testing.T) {
	f := serve(t)
	if err := f.engine.Create("bus", broker.Queue, broker.Defaults(broker.Queue, broker.ServiceBus)); err != nil {
		t.Fatal(err)
	}
	if a := f.call("", "ListQueues", `{}`); a.body != `{}` {
		t.Errorf("listed: %s", a.body)
	}
	if a := f.call("", "GetQueueUrl", `{"QueueName":"bus"}`); !strings.Contains(a.body, "QueueDoesNotExist") {
		t.Errorf("found: %s", a.body)
	}
	if a := f.call("", "CreateQueue", `{"QueueName":"bus"}`); !strings.Contains(a.body, "QueueNameExists") {
		t.Errorf("created: %d %s", a.status, a.body)
	}
	f.json("CreateQueue", `{"QueueName":"Orders"}`)
	if a := f.call("", "GetQueueUrl", `{"QueueName":"orders"}`); !strings.Contains(a.body, "QueueDoesNotExist") {
		t.Errorf("names compare with case: %s", a.body)
	}
}

// TestForeignMessages: what another protocol has put into a queue is given as what SQS can carry.
func TestForeignMessages(t *testing.T) {
	f := serve(t)
	f.json("CreateQueue", `{"QueueName":"orders"}`)
	body := []byte{0, 0xff, 'x'}
	m := &message.Message{Body: message.DataBody(body), Properties: message.Properties{
		{Name: "flag", Value: message.Bool(true)},
		{Name: "count", Value: message.Int(7)},
		{Name: "odd", Value: message.String("a\x01b")},
		{Name: "list", Value: message.List{message.Int(1)}},
	}}
	if _, err := f.engine.Send(broker.Address{Name: "orders"}, []*message.Message{m}); err != nil {
		t.Fatal(err)
	}
	got := f.json("ReceiveMessage", `{"QueueUrl":"orders","MessageAttributeNames":["All"]}`)["Messages"].([]any)[0].(map[string]any)
	if got["Body"] != base64.StdEncoding.EncodeToString(body) {
		t.Errorf("body %q", got["Body"])
	}
	if got["MessageId"] == "" {
		t.Error("it has no id")
	}
	want := `map[count:map[DataType:Number StringValue:7] flag:map[DataType:String StringValue:true] odd:map[BinaryValue:YQFi DataType:Binary]]`
	if attrs := fmt.Sprint(got["MessageAttributes"]); attrs != want {
		t.Errorf("attributes %s, want %s", attrs, want)
	}
}

// TestGETThatChanges: a page of the web can make a browser send a GET, so it has to be signed.
func TestGETThatChanges(t *testing.T) {
	signed := "&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=test%2F20260101%2Fus-east-1%2Fsqs%2Faws4_request&X-Amz-Date=20260101T000000Z" +
		"&X-Amz-Expires=60&X-Amz-SignedHeaders=host&X-Amz-Signature=00"
	for name, set := range map[string]func(*Options){
		"anybody may call":     func(*Options) {},
		"signatures count":     func(o *Options) { o.Verifier = verifier() },
		"all calls are signed": func(o *Options) { o.Verifier, o.Unsigned = verifier(), false },
	} {
		t.Run(name, func(t *testing.T) {
			f := serve(t, set)
			if err := f.engine.Create("orders", broker.Queue, broker.Defaults(broker.Queue, broker.SQS)); err != nil {
				t.Fatal(err)
			}
			if _, err := f.engine.Send(broker.Address{Name: "orders"}, []*message.Message{{Body: message.DataBody([]byte("x"))}}); err != nil {
				t.Fatal(err)
			}
			for action, a := range actions {
				for _, suffix := range []string{"", signed} {
					got := f.do(f.request(http.MethodGet, "/000000000000/orders?Action="+action+"&QueueName=new&AttributeName.1=All"+suffix, ""))
					if a.changes && got.status != http.StatusForbidden && got.status != http.StatusBadRequest {
						t.Errorf("%s%s: %d %s", action, suffix, got.status, got.body)
					}
				}
			}
			info, err := f.engine.Entity("orders")
			all, listErr := f.engine.Entities()
			if err != nil || listErr != nil || len(all) != 1 || info.Active != 1 || info.InFlight != 0 || len(info.Extra) != 0 {
				t.Errorf("something has changed: %d entities, %+v, %v %v", len(all), info, err, listErr)
			}
		})
	}
}

func verifier() *sigv4.Verifier {
	return &sigv4.Verifier{Secret: func(key string) (string, bool) { return "test", key == "test" }}
}

// TestBounds: what is too much is refused, in the words of the protocol.
func TestBounds(t *testing.T) {
	f := serve(t, func(o *Options) { o.Limits = Limits{BodyBytes: 10_000, FormKeys: 50} })
	f.json("CreateQueue", `{"QueueName":"orders"}`)
	many := url.Values{"Action": {"ListQueues"}}
	for i := range 60 {
		many.Set(fmt.Sprint("k", i), "v")
	}
	deep := strings.Repeat(`{"a":`, 70) + "1" + strings.Repeat("}", 70)
	for name, test := range map[string]struct {
		r      func() *http.Request
		status int
		text   string
	}{
		"a large body":          {f.raw("application/x-amz-json-1.0", "SendMessage", strings.Repeat(" ", 10_001)), 413, "at most 10000 bytes"},
		"a body without length": {f.chunked(strings.Repeat(" ", 20_000)), 413, "at most 10000 bytes"},
		"many parameters":       {f.raw("application/x-www-form-urlencoded", "", many.Encode()), 400, "at most 50 parameters"},
		"a deep document":       {f.raw("application/x-amz-json-1.0", "SendMessage", `{"MessageBody":"x","more":`+deep+"}"), 400, "nested deeper"},
		"a member twice":        {f.raw("application/x-amz-json-1.0", "SendMessage", `{"MessageBody":"a","MessageBody":"b"}`), 400, "there twice"},
		"no object":             {f.raw("application/x-amz-json-1.0", "SendMessage", `[]`), 400, "SerializationException"},
		"something behind":      {f.raw("application/x-amz-json-1.0", "SendMessage", `{} {}`), 400, "SerializationException"},
		"a bad escape":          {f.raw("application/x-www-form-urlencoded", "", "Action=ListQueues&a=%zz"), 400, "MalformedInput"},
	} {
		t.Run(name, func(t *testing.T) {
			got := f.do(test.r())
			if got.status != test.status || !strings.Contains(got.body, test.text) {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
	}
	r := f.request(http.MethodPost, "/", "x")
	r.Header.Set("Content-Encoding", "gzip")
	if got := f.do(r); got.status != http.StatusUnsupportedMediaType {
		t.Errorf("an encoded body: %d %s", got.status, got.body)
	}
}

func (f *fixture) raw(kind, action, body string) func() *http.Request {
	return func() *http.Request {
		r := f.request(http.MethodPost, "/", body)
		r.Header.Set("Content-Type", kind)
		if action != "" {
			r.Header.Set("X-Amz-Target", "AmazonSQS."+action)
		}
		return r
	}
}

func (f *fixture) chunked(body string) func() *http.Request {
	return func() *http.Request {
		r := f.raw("application/x-amz-json-1.0", "SendMessage", body)()
		r.ContentLength = -1
		return r
	}
}

// TestReceiveThatWaits ends when a message comes, when the client goes away, and when the server
// stops; a client that has gone gets nothing.
func TestReceiveThatWaits(t *testing.T) {
	f := serve(t)
	f.json("CreateQueue", `{"QueueName":"orders"}`)
	poll := func(ctx context.Context) <-chan string {
		out := make(chan string, 1)
		r := f.raw("application/x-amz-json-1.0", "ReceiveMessage", `{"QueueUrl":"orders","WaitTimeSeconds":20}`)().WithContext(ctx)
		go func() {
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				out <- "gone"
				return
			}
			defer resp.Body.Close()
			b := make([]byte, 4096)
			n, _ := resp.Body.Read(b)
			out <- string(b[:n])
		}()
		return out
	}
	waiting := func(n int) func() bool {
		return func() bool {
			f.server.waiting.mu.Lock()
			defer f.server.waiting.mu.Unlock()
			return f.server.waiting.n == n
		}
	}
	ctx, leave := context.WithCancel(t.Context())
	first := poll(ctx)
	soon(t, "the first waits", waiting(1))
	leave()
	if got := <-first; got != "gone" {
		t.Errorf("the one that went got %s", got)
	}
	soon(t, "nobody waits", waiting(0))
	second, third := poll(t.Context()), poll(t.Context())
	soon(t, "two wait", waiting(2))
	f.json("SendMessage", `{"QueueUrl":"orders","MessageBody":"hello"}`)
	soon(t, "one has it", waiting(1))
	f.server.Close()
	answers := []string{<-second, <-third}
	if joined := strings.Join(answers, ""); strings.Count(joined, `"Body":"hello"`) != 1 || !strings.Contains(joined, "{}") {
		t.Errorf("the answers are %q", answers)
	}
	began := time.Now()
	if got := <-poll(t.Context()); got != "{}" || time.Since(began) > 10*time.Second {
		t.Errorf("a receive of a server that stops got %s after %v", got, time.Since(began))
	}
}

// TestReceiveOfAQueueThatGoes ends with the queue.
func TestReceiveOfAQueueThatGoes(t *testing.T) {
	f := serve(t)
	f.json("CreateQueue", `{"QueueName":"orders"}`)
	out := make(chan answer, 1)
	go func() { out <- f.call("", "ReceiveMessage", `{"QueueUrl":"orders","WaitTimeSeconds":20}`) }()
	soon(t, "it waits", func() bool {
		f.server.waiting.mu.Lock()
		defer f.server.waiting.mu.Unlock()
		return f.server.waiting.n == 1
	})
	f.json("DeleteQueue", `{"QueueUrl":"orders"}`)
	if got := <-out; !strings.Contains(got.body, "QueueDoesNotExist") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// TestMessagesPage shows messages and changes nothing.
func TestMessagesPage(t *testing.T) {
	f := serve(t)
	f.json("CreateQueue", `{"QueueName":"orders"}`)
	f.json("SendMessage", `{"QueueUrl":"orders","MessageBody":"held"}`)
	f.json("ReceiveMessage", `{"QueueUrl":"orders"}`)
	f.json("SendMessage", `{"QueueUrl":"orders","MessageBody":"late","DelaySeconds":900}`)
	f.json("SendMessage", `{"QueueUrl":"orders","MessageBody":"free"}`)
	for query, want := range map[string][]string{
		"?QueueUrl=" + url.QueryEscape(f.url+"/000000000000/orders"): {"free"},
		"/us-east-1/000000000000/orders":                             {"free"},
		"?QueueUrl=orders&ShowInvisible=true":                        {"held", "free"},
		"?QueueUrl=orders&ShowDelayed=true":                          {"late", "free"},
	} {
		got := f.do(f.request(http.MethodGet, messagesPath+query, ""))
		for _, body := range []string{"held", "late", "free"} {
			wanted := strings.Contains(strings.Join(want, " "), body)
			if got.status != http.StatusOK || strings.Contains(got.body, "<Body>"+body+"</Body>") != wanted {
				t.Errorf("%s, %s: %d %s", query, body, got.status, got.body)
			}
		}
	}
	r := f.request(http.MethodGet, messagesPath+"?QueueUrl=orders", "")
	r.Header.Set("Accept", "application/json")
	if got := f.do(r); !strings.Contains(got.body, `"Body":"free"`) || !strings.Contains(got.body, `"ApproximateReceiveCount"`) {
		t.Errorf("as JSON: %d %s", got.status, got.body)
	}
	if got := f.do(f.request(http.MethodGet, messagesPath+"?QueueUrl=none", "")); got.status != http.StatusBadRequest {
		t.Errorf("a queue that is not there: %d %s", got.status, got.body)
	}
}

// TestQueueOfYMQMadeAgain: the URL of a queue that was deleted is not that of its successor.
func TestQueueOfYMQMadeAgain(t *testing.T) {
	f := serve(t, func(o *Options) { o.Flavor = YMQ })
	first := f.json("CreateQueue", `{"QueueName":"orders"}`)["QueueUrl"].(string)
	if parts := strings.Split(strings.TrimPrefix(first, f.url+"/"), "/"); len(parts) != 3 || !strings.HasPrefix(parts[0], "b1g") || !strings.HasPrefix(parts[1], "dj6") {
		t.Fatalf("URL %s", first)
	}
	f.json("SendMessage", `{"QueueUrl":"`+first+`","MessageBody":"x"}`)
	f.json("DeleteQueue", `{"QueueUrl":"`+first+`"}`)
	second := f.json("CreateQueue", `{"QueueName":"orders"}`)["QueueUrl"].(string)
	if second == first {
		t.Fatal("the URLs are the same")
	}
	if got := f.call("", "SendMessage", `{"QueueUrl":"`+first+`","MessageBody":"x"}`); !strings.Contains(got.body, "QueueDoesNotExist") {
		t.Errorf("by the first URL: %d %s", got.status, got.body)
	}
	f.json("SendMessage", `{"QueueUrl":"`+second+`","MessageBody":"x"}`)
}

// TestRights: each action needs its right, at its entity.
func TestRights(t *testing.T) {
	f := serve(t, func(o *Options) {
		o.Allowed = func(key, entity string, r Right) bool {
			return key == "all" || key == "sender" && r == Send && (entity == "orders" || entity == "") || key == "reader" && r == Listen
		}
	})
	for action, a := range actions {
		f.call("all@us-east-1", "CreateQueue", `{"QueueName":"orders"}`) // one of the actions deletes it
		f.call("all@us-east-1", "CreateQueue", `{"QueueName":"other"}`)
		for _, test := range []struct {
			key     string
			queue   string
			allowed bool
		}{
			{"sender", "orders", a.right == Send || a.right == anyRight},
			{"sender", "other", a.right == Send && a.scope != queueScope},
			{"reader", "orders", a.right == Listen || a.right == anyRight},
			{"nobody", "orders", false},
		} {
			got := f.call(test.key+"@us-east-1", action, `{"QueueUrl":"`+test.queue+`","QueueName":"`+test.queue+`"}`)
			if denied := strings.Contains(got.body, "AccessDenied"); denied == test.allowed {
				t.Errorf("%s by %s on %s: %d %s", action, test.key, test.queue, got.status, got.body)
			}
		}
	}
}

// TestQuota: what is called too often in a second is throttled, queue by queue and action by action.
func TestQuota(t *testing.T) {
	for flavor, want := range map[Flavor]answer{AWS: {status: 400, body: "#RequestThrottled"}, YMQ: {status: 403, body: "#ThrottlingException"}} {
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		f := serve(t, func(o *Options) {
			o.Flavor, o.Limits, o.Now = flavor, Limits{Calls: 5, FIFOCalls: 2}, func() time.Time { return now }
		})
		f.json("CreateQueue", `{"QueueName":"orders"}`)
		f.json("CreateQueue", `{"QueueName":"orders.fifo","Attributes":{"FifoQueue":"true","ContentBasedDeduplication":"true"}}`)
		for range 2 {
			for queue, calls := range map[string]int{"orders": 5, "orders.fifo": 2} {
				send := `{"QueueUrl":"` + queue + `","MessageBody":"x","MessageGroupId":"g"}`
				for range calls {
					f.json("SendMessage", send)
				}
				if got := f.call("", "SendMessage", send); got.status != want.status || !strings.Contains(got.body, want.body) {
					t.Errorf("%v, one too many: %d %s", flavor, got.status, got.body)
				}
				f.json("ReceiveMessage", `{"QueueUrl":"`+queue+`"}`)
				f.json("GetQueueAttributes", `{"QueueUrl":"`+queue+`"}`)
			}
			now = now.Add(time.Second)
		}
	}
}

// TestCreateAgainWithWhatWasRead: a client that creates a queue with all the attributes that it has read
// of it gets its URL.
func TestCreateAgainWithWhatWasRead(t *testing.T) {
	f := serve(t)
	f.json("CreateQueue", `{"QueueName":"orders","Attributes":{"DelaySeconds":"5"}}`)
	got := f.call("", "GetQueueAttributes", `{"QueueUrl":"orders","AttributeNames":["All"]}`)
	f.json("SendMessage", `{"QueueUrl":"orders","MessageBody":"x"}`)
	attributes := strings.TrimSuffix(strings.TrimPrefix(got.body, `{"Attributes":`), "}")
	f.json("CreateQueue", `{"QueueName":"orders","Attributes":`+attributes+`}`)
	if got := f.call("", "CreateQueue", `{"QueueName":"other","Attributes":`+attributes+`}`); !strings.Contains(got.body, "Unknown Attribute") {
		t.Errorf("a new queue with them: %d %s", got.status, got.body)
	}
}
