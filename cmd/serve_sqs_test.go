package cmd

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"dlq/backends/broker/amqpd"
	"dlq/backends/broker/port"
	"dlq/backends/broker/sas"
	"dlq/backends/broker/sqsd"
)

func testKeys() []sas.Key {
	return []sas.Key{
		{Name: sas.RootKeyName, Primary: sas.NewSecret("r"), Secondary: sas.NewSecret("other"), Rights: sas.Manage},
		{Name: sas.SendOnlyName, Primary: sas.NewSecret("s"), Rights: sas.Send},
		{Name: sas.ListenOnlyName, Primary: sas.NewSecret("l"), Rights: sas.Listen},
		{Name: "orders", Primary: sas.NewSecret("o"), Rights: sas.Manage, Entity: "orders"},
		{Name: sas.SendOnlyName, Primary: sas.NewSecret("no"), Rights: sas.Manage, Entity: "orders"},
	}
}

// TestAccessKeysMayWhatTheirRightsSay: at the entities that they are for.
func TestAccessKeysMayWhatTheirRightsSay(t *testing.T) {
	keys := newAccessKeys(testKeys(), true)
	for _, c := range []struct {
		accessKey, entity    string
		send, listen, manage bool
	}{
		{sas.RootKeyName, "orders", true, true, true},
		{sas.RootKeyName, "", true, true, true},
		{sas.SendOnlyName, "orders", true, false, false},
		{sas.ListenOnlyName, "orders", false, true, false},
		{"orders", "orders", true, true, true},
		{"orders", "orders2", false, false, false},
		{"orders", "", false, false, false},
		{"test", "orders", true, true, true},
		{"111122223333", "us-east-1/111122223333/orders", true, true, true},
		{"somebody", "orders", false, false, false},
	} {
		for right, want := range map[sqsd.Right]bool{sqsd.Send: c.send, sqsd.Listen: c.listen, sqsd.Manage: c.manage} {
			if got := keys.allowed(c.accessKey, c.entity, right); got != want {
				t.Errorf("%s has the right %d at %q: %t", c.accessKey, right, c.entity, got)
			}
		}
	}
}

// TestSecretsOfAccessKeys: what everybody knows counts only where it may, and never in place of a
// key that was made.
func TestSecretsOfAccessKeys(t *testing.T) {
	made := append(testKeys(), sas.Key{Name: "test", Primary: sas.NewSecret("made"), Rights: sas.Listen})
	for _, c := range []struct {
		keys        []sas.Key
		development bool
		accessKey   string
		want        string // "": unknown
	}{
		{testKeys(), true, sas.RootKeyName, "r"},
		{testKeys(), false, sas.SendOnlyName, "s"},
		{testKeys(), true, "test", "test"},
		{testKeys(), true, "111122223333", "test"},
		{testKeys(), true, "11112222333", ""},
		{testKeys(), true, "11112222333x", ""},
		{testKeys(), true, "AKIAIOSFODNN7EXAMPLE", ""},
		{testKeys(), false, "test", ""},
		{testKeys(), false, "111122223333", ""},
		{made, true, "test", "made"},
	} {
		got, ok := newAccessKeys(c.keys, c.development).secret(c.accessKey)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%s, development %t: the secret is %q, known %t; want %q", c.accessKey, c.development, got, ok, c.want)
		}
	}
	if newAccessKeys(made, true).allowed("test", "orders", sqsd.Send) {
		t.Error("a key that was made has the rights of the development key")
	}
}

// TestSQSVariables: what is printed works for every SDK, and for everything.
func TestSQSVariables(t *testing.T) {
	aws, err := flavorNamed("AWS")
	if err != nil {
		t.Fatal(err)
	}
	ymq, err := flavorNamed("ymq")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		flavor  flavor
		withTLS bool
		keys    accessKeys
		want    []string
	}{
		{aws, false, newAccessKeys(testKeys(), true), []string{
			"AWS_ENDPOINT_URL_SQS=http://localhost:9324", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test",
			"AWS_REGION=us-east-1", "AWS_DEFAULT_REGION=us-east-1",
		}},
		{ymq, true, newAccessKeys(testKeys(), false), []string{
			"AWS_ENDPOINT_URL_SQS=https://localhost:9324", "AWS_ACCESS_KEY_ID=" + sas.RootKeyName, "AWS_SECRET_ACCESS_KEY=r",
			"AWS_REGION=ru-central1", "AWS_DEFAULT_REGION=ru-central1",
		}},
		{aws, true, newAccessKeys(testKeys()[1:], false), []string{
			"AWS_ENDPOINT_URL_SQS=https://localhost:9324", "AWS_REGION=us-east-1", "AWS_DEFAULT_REGION=us-east-1",
		}},
	} {
		s := serving{flavor: c.flavor}
		if got := s.sqsVariables("localhost:9324", c.withTLS, c.keys); !slices.Equal(got, c.want) {
			t.Errorf("got\n%q\nwant\n%q", got, c.want)
		}
	}
}

// TestSQSFaults: what the specification says happens to SQS, as far as it can.
func TestSQSFaults(t *testing.T) {
	if sqsFault(nil) != nil {
		t.Error("there are faults without a specification")
	}
	faults, err := amqpd.ParseFaults("detach=always,throttle/send=at:2@orders,delay/receive=50ms,duplicate=at:2,lock-lost=always,disconnect/manage=always,error/http=always")
	if err != nil {
		t.Fatal(err)
	}
	ask := sqsFault(faults)
	for i, c := range []struct {
		op      sqsd.FaultOp
		entity  string
		want    sqsd.Fault
		strikes bool
	}{
		{op: sqsd.OpSend, entity: "orders"},
		{op: sqsd.OpSend, entity: "others"},
		{op: sqsd.OpSend, entity: "orders", want: sqsd.Fault{Kind: sqsd.FaultThrottle}, strikes: true},
		{op: sqsd.OpReceive, entity: "orders", want: sqsd.Fault{Delay: 50 * time.Millisecond}, strikes: true},
		{op: sqsd.OpReceive, entity: "orders", want: sqsd.Fault{Kind: sqsd.FaultDuplicate, Delay: 50 * time.Millisecond}, strikes: true},
		{op: sqsd.OpSettle, entity: "orders", want: sqsd.Fault{Kind: sqsd.FaultLockLost}, strikes: true},
		{op: sqsd.OpManage, want: sqsd.Fault{Kind: sqsd.FaultDisconnect}, strikes: true},
	} {
		if got, struck := ask(c.op, c.entity); struck != c.strikes || got != c.want {
			t.Errorf("call %d: %+v, %t; want %+v", i, got, struck, c.want)
		}
	}
}

// answer is what a call of SQS came to.
type answer struct {
	status int
	body   string
	err    error
}

// call calls SQS without a signature.
func (s *served) call(action, body string) answer {
	request, err := http.NewRequest(http.MethodPost, s.printed["AWS_ENDPOINT_URL_SQS"], strings.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	request.Header.Set("Content-Type", "application/x-amz-json-1.0")
	request.Header.Set("X-Amz-Target", "AmazonSQS."+action)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer{err: err}
	}
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, string(got), err}
}

// TestServeEndsReceivesThatWait: a server that stops answers them, and does not wait for them.
func TestServeEndsReceivesThatWait(t *testing.T) {
	server := startServe(t, "--memory", "--limit", "waiting-receives=1")
	if got := server.call("CreateQueue", `{"QueueName":"orders"}`); got.status != http.StatusOK {
		t.Fatalf("create a queue: %+v", got)
	}
	answers := make(chan answer, 2)
	for range 2 { // only one may wait, so that the other's answer tells that the one does
		go func() { answers <- server.call("ReceiveMessage", `{"QueueUrl":"orders","WaitTimeSeconds":20}`) }()
	}
	empty := answer{status: http.StatusOK, body: "{}"}
	if got := <-answers; got != empty {
		t.Fatalf("the receive that may not wait: %+v", got)
	}
	began := time.Now()
	server.stop()
	got := <-answers
	<-server.ended
	if took := time.Since(began); got != empty || server.code != exitDone || took > drainTime {
		t.Errorf("the receive that waits: %+v; the server ended after %s with exit code %d:\n%s", got, took, server.code, &server.said)
	}
}

// TestServeOfSQSStopsUnderLoad: what was acknowledged before the server was told to stop is there
// afterwards, and it stops soon.
func TestServeOfSQSStopsUnderLoad(t *testing.T) {
	const senders, enough = 4, 200
	data := t.TempDir()
	server := startServe(t, "--data", data)
	if got := server.call("CreateQueue", `{"QueueName":"orders"}`); got.status != http.StatusOK {
		t.Fatalf("create a queue: %+v", got)
	}
	ids := make(chan string, 10_000)
	var wg sync.WaitGroup
	for range senders {
		wg.Go(func() {
			for {
				got := server.call("SendMessage", `{"QueueUrl":"orders","MessageBody":"{}"}`)
				if got.err != nil || got.status != http.StatusOK {
					return
				}
				var sent struct {
					ID string `json:"MessageId"`
				}
				if err := json.Unmarshal([]byte(got.body), &sent); err != nil {
					t.Errorf("%s: %v", got.body, err)
					return
				}
				ids <- sent.ID
			}
		})
	}
	go func() {
		wg.Wait()
		close(ids)
	}()
	acknowledged := map[string]bool{}
	for range enough {
		id, ok := <-ids
		if !ok {
			t.Fatalf("after %d messages none is acknowledged", len(acknowledged))
		}
		acknowledged[id] = true
	}
	began := time.Now()
	server.stop()
	<-server.ended
	if took := time.Since(began); server.code != exitDone || took > drainTime {
		t.Errorf("it ended after %s with exit code %d:\n%s", took, server.code, &server.said)
	}
	for id := range ids {
		acknowledged[id] = true
	}
	requireStored(t, data, acknowledged)
}

// TestPatientLimits: no client that may wait is cut off, whatever the limits of HTTP are.
func TestPatientLimits(t *testing.T) {
	got := patient(port.Limits{Read: time.Second, Write: time.Hour})
	if got.Read <= 20*time.Second || got.Write != time.Hour {
		t.Errorf("%s to read and %s to answer", got.Read, got.Write)
	}
}
