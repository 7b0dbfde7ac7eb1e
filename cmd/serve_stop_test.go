package cmd

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"dlq/backends"
	"dlq/backends/local"
	"dlq/backends/message"
)

// served is a dlq serve that runs in this process.
type served struct {
	printed map[string]string // by name, before it was ready
	stop    func()            // as an interrupt does
	ended   chan struct{}     // closed when it has ended
	code    exitCode
	said    bytes.Buffer // on standard error; to be read when it has ended
}

// startServe runs dlq serve until it is stopped, and waits until it is ready.
func startServe(t *testing.T, args ...string) *served {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, printed := io.Pipe()
	s := &served{printed: map[string]string{}, stop: cancel, ended: make(chan struct{})}
	a := &app{
		args:   append([]string{"serve", "--servicebus", "127.0.0.1:0", "--admin", "none", "--sqs", "127.0.0.1:0"}, args...),
		getenv: func(string) string { return "" },
		now:    time.Now,
		streams: streams{
			in: strings.NewReader(""), out: bufio.NewWriter(printed), err: &s.said,
		},
	}
	go func() {
		defer close(s.ended)
		s.code = a.main(ctx)
		_ = printed.Close()
	}()
	t.Cleanup(func() {
		cancel()
		<-s.ended
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "dlq: ready" {
		name, value, _ := strings.Cut(lines.Text(), "=")
		s.printed[name] = value
	}
	if lines.Text() != "dlq: ready" {
		<-s.ended
		t.Fatalf("it did not become ready: exit code %d\n%s", s.code, &s.said)
	}
	return s
}

// TestServeStopsUnderLoad: what was acknowledged before the server was told to stop is there
// afterwards, and it stops soon.
func TestServeStopsUnderLoad(t *testing.T) {
	const senders, enough = 4, 200
	dir := t.TempDir()
	config := filepath.Join(dir, "Config.json")
	src := `{"UserConfig": {"Namespaces": [{"Name": "n", "Queues": [{"Name": "orders"}]}]}}`
	if err := os.WriteFile(config, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	server := startServe(t, "--data", data, "--config", config)

	var mu sync.Mutex
	acknowledged := map[string]bool{}
	loaded := make(chan struct{})
	acknowledge := func(id string) {
		mu.Lock()
		defer mu.Unlock()
		if acknowledged[id] = true; len(acknowledged) == enough {
			close(loaded)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	for n := range senders {
		wg.Go(func() {
			sendUntilFailure(ctx, t, server.printed["SERVICEBUS_CONNECTION_STRING"], fmt.Sprint(n), acknowledge)
		})
	}
	select {
	case <-loaded:
	case <-ctx.Done():
		mu.Lock()
		defer mu.Unlock()
		t.Fatalf("%d messages were acknowledged in a minute", len(acknowledged))
	}
	began := time.Now()
	server.stop()
	<-server.ended
	if took := time.Since(began); server.code != exitDone || took > drainTime {
		t.Errorf("it ended after %s with exit code %d:\n%s", took, server.code, &server.said)
	}
	cancel()
	wg.Wait()
	requireStored(t, data, acknowledged)
}

// sendUntilFailure sends messages one after the other until one is not acknowledged.
func sendUntilFailure(ctx context.Context, t *testing.T, connection, prefix string, acknowledge func(id string)) {
	client, err := azservicebus.NewClientFromConnectionString(connection, &azservicebus.ClientOptions{
		RetryOptions: azservicebus.RetryOptions{MaxRetries: -1},
	})
	if err != nil {
		t.Error(err)
		return
	}
	defer client.Close(context.WithoutCancel(ctx)) // the server may be gone
	sender, err := client.NewSender("orders", nil)
	if err != nil {
		t.Error(err)
		return
	}
	for i := 0; ; i++ {
		id := fmt.Sprintf("%s-%d", prefix, i)
		if err := sender.SendMessage(ctx, &azservicebus.Message{MessageID: to.Ptr(id), Body: []byte(id)}, nil); err != nil {
			return
		}
		acknowledge(id)
	}
}

// requireStored fails unless every one of the messages is in the queue once.
func requireStored(t *testing.T, dir string, ids map[string]bool) {
	t.Helper()
	b, err := local.Open(t.Context(), local.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	stored := map[string]int{}
	for m, err := range b.Peek(t.Context(), backends.EntityID{Name: "orders"}, backends.PeekOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		stored[string(m.ID.(message.String))]++
	}
	for id := range ids {
		if stored[id] != 1 {
			t.Errorf("message %s was acknowledged and is there %d times", id, stored[id])
		}
	}
}
