package sqsd_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/cockroachdb/pebble/v2/vfs"

	"dlq/backends/broker"
	"dlq/backends/broker/sigv4"
	"dlq/backends/broker/sqsd"
	"dlq/backends/broker/store"
	"dlq/backends/message"
	"dlq/backends/sqsmsg"
)

// The benchmarks of this file have 16 clients send, receive and delete messages of 1 KiB: to us, on
// disk and with signatures verified, and, in the same run, since only ratios mean something, to a
// handler that reads a request and answers always the same. One client is the SDK, the other one
// writes signed requests to a socket. The figures of doc.go are made by
//
//	go test -run - -bench . -benchtime 2s -count 3 ./backends/broker/sqsd

const (
	benchClients = 16
	benchKey     = "test"
)

var benchBody = strings.Repeat("x", 1024)

// noOp answers sends as if it had kept them, and receives with ten messages.
type noOp struct {
	one, ten, received, deleted []byte
}

func newNoOp() *noOp {
	sum := sqsmsg.MD5([]byte(benchBody))
	n := &noOp{one: fmt.Appendf(nil, `{"MessageId":"00000000-0000-4000-8000-000000000000","MD5OfMessageBody":"%s"}`, sum)}
	var ten, received, deleted []string
	for i := range 10 {
		ten = append(ten, fmt.Sprintf(`{"Id":"%d","MessageId":"00000000-0000-4000-8000-000000000000","MD5OfMessageBody":"%s"}`, i, sum))
		received = append(received, fmt.Sprintf(`{"MessageId":"00000000-0000-4000-8000-000000000000","ReceiptHandle":"%056d","MD5OfBody":"%s","Body":"%s"}`, i, sum, benchBody))
		deleted = append(deleted, fmt.Sprintf(`{"Id":"%d"}`, i))
	}
	n.ten = []byte(`{"Successful":[` + strings.Join(ten, ",") + `]}`)
	n.received = []byte(`{"Messages":[` + strings.Join(received, ",") + `]}`)
	n.deleted = []byte(`{"Successful":[` + strings.Join(deleted, ",") + `]}`)
	return n
}

func (n *noOp) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	answer := n.one
	switch r.Header.Get("X-Amz-Target") {
	case "AmazonSQS.SendMessageBatch":
		answer = n.ten
	case "AmazonSQS.ReceiveMessage":
		answer = n.received
	case "AmazonSQS.DeleteMessageBatch":
		answer = n.deleted
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
	_, _ = w.Write(answer)
}

// benchServer serves the handler, and returns its address.
func benchServer(b *testing.B, h http.Handler) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go func() { _ = srv.Serve(l) }()
	b.Cleanup(func() { _ = srv.Close() })
	return l.Addr().String()
}

// benchEngine is an engine on disk with one queue.
func benchEngine(b *testing.B) *broker.Engine {
	b.Helper()
	s, err := store.Open(vfs.Default, b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	e, err := broker.Open(broker.Options{Store: s})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = e.Close() })
	if err := e.Create("orders", broker.Queue, broker.Defaults(broker.Queue, broker.SQS)); err != nil {
		b.Fatal(err)
	}
	return e
}

func benchHandler(e *broker.Engine) http.Handler {
	return sqsd.New(sqsd.Options{Engine: e, Verifier: &sigv4.Verifier{
		Secret: func(key string) (string, bool) { return benchKey, key == benchKey },
	}})
}

// both runs a benchmark against the handler that does nothing, and against us.
func both(b *testing.B, run func(b *testing.B, addr string)) {
	b.Run("server=noop", func(b *testing.B) { run(b, benchServer(b, newNoOp())) })
	b.Run("server=dlq", func(b *testing.B) { run(b, benchServer(b, benchHandler(benchEngine(b)))) })
}

// clients has all clients work until b.N calls are made, and reports messages a second.
func clients(b *testing.B, each int, call func(client, i int) error) {
	b.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for client := range benchClients {
		wg.Go(func() {
			for {
				i := int(next.Add(1))
				if i > b.N {
					return
				}
				if err := call(client, i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N*each)/b.Elapsed().Seconds(), "msg/s")
}

func sdkClient(addr string) *sqs.Client {
	transport := &http.Transport{MaxIdleConnsPerHost: benchClients, MaxIdleConns: benchClients}
	return sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://" + addr), HTTPClient: &http.Client{Transport: transport},
		Credentials: credentials.NewStaticCredentialsProvider(benchKey, benchKey, ""),
	})
}

func queueURL(addr string) *string { return aws.String("http://" + addr + "/000000000000/orders") }

func BenchmarkSDKSend(b *testing.B) {
	both(b, func(b *testing.B, addr string) {
		c := sdkClient(addr)
		clients(b, 1, func(int, int) error {
			_, err := c.SendMessage(context.Background(), &sqs.SendMessageInput{QueueUrl: queueURL(addr), MessageBody: &benchBody})
			return err
		})
	})
}

func BenchmarkSDKSendTen(b *testing.B) {
	var entries []types.SendMessageBatchRequestEntry
	for i := range 10 {
		entries = append(entries, types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), MessageBody: &benchBody})
	}
	both(b, func(b *testing.B, addr string) {
		c := sdkClient(addr)
		clients(b, 10, func(int, int) error {
			_, err := c.SendMessageBatch(context.Background(), &sqs.SendMessageBatchInput{QueueUrl: queueURL(addr), Entries: entries})
			return err
		})
	})
}

// rawClient writes signed requests to a connection of its own.
type rawClient struct {
	conn net.Conn
	in   *bufio.Reader
	addr string
	key  []byte
	date string
	out  []byte
}

func dial(b *testing.B, addr string) *rawClient {
	b.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	c := &rawClient{conn: conn, in: bufio.NewReaderSize(conn, 64<<10), addr: addr, date: time.Now().UTC().Format("20060102T150405Z")}
	c.key = []byte("AWS4" + benchKey)
	for _, part := range []string{c.date[:8], "us-east-1", "sqs", "aws4_request"} {
		c.key = sum(c.key, part)
	}
	return c
}

func sum(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// call makes a call and returns the body of its answer, which is good until the next one.
func (c *rawClient) call(action string, body []byte) ([]byte, error) {
	target := "AmazonSQS." + action
	payload := sha256.Sum256(body)
	canonical := fmt.Sprintf("POST\n/\n\nhost:%s\nx-amz-date:%s\nx-amz-target:%s\n\nhost;x-amz-date;x-amz-target\n%x", c.addr, c.date, target, payload)
	hashed := sha256.Sum256([]byte(canonical))
	scope := c.date[:8] + "/us-east-1/sqs/aws4_request"
	signature := hex.EncodeToString(sum(c.key, "AWS4-HMAC-SHA256\n"+c.date+"\n"+scope+"\n"+hex.EncodeToString(hashed[:])))
	c.out = fmt.Appendf(c.out[:0], "POST / HTTP/1.1\r\nHost: %s\r\nContent-Type: application/x-amz-json-1.0\r\nX-Amz-Date: %s\r\nX-Amz-Target: %s\r\n"+
		"Authorization: AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=host;x-amz-date;x-amz-target, Signature=%s\r\nContent-Length: %d\r\n\r\n",
		c.addr, c.date, target, benchKey, scope, signature, len(body))
	c.out = append(c.out, body...)
	if _, err := c.conn.Write(c.out); err != nil {
		return nil, err
	}
	return c.answer()
}

func (c *rawClient) answer() ([]byte, error) {
	length, status := 0, ""
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		line = bytes.TrimSpace(line)
		if status == "" {
			status = string(line)
		}
		if len(line) == 0 {
			break
		}
		if name, value, ok := bytes.Cut(line, []byte(": ")); ok && bytes.EqualFold(name, []byte("Content-Length")) {
			if length, err = strconv.Atoi(string(value)); err != nil {
				return nil, err
			}
		}
	}
	c.out = append(c.out[:0], make([]byte, length)...)
	if _, err := io.ReadFull(c.in, c.out); err != nil {
		return nil, err
	}
	if !strings.Contains(status, " 200 ") {
		return nil, fmt.Errorf("%s: %s", status, c.out)
	}
	return c.out, nil
}

func rawClients(b *testing.B, addr string) []*rawClient {
	b.Helper()
	all := make([]*rawClient, benchClients)
	for i := range all {
		all[i] = dial(b, addr)
	}
	return all
}

func BenchmarkRawSend(b *testing.B) {
	body := fmt.Appendf(nil, `{"QueueUrl":"http://localhost/000000000000/orders","MessageBody":"%s"}`, benchBody)
	both(b, func(b *testing.B, addr string) {
		all := rawClients(b, addr)
		clients(b, 1, func(client, _ int) error {
			_, err := all[client].call("SendMessage", body)
			return err
		})
	})
}

func BenchmarkRawSendTen(b *testing.B) {
	var entries []string
	for i := range 10 {
		entries = append(entries, fmt.Sprintf(`{"Id":"%d","MessageBody":"%s"}`, i, benchBody))
	}
	body := []byte(`{"QueueUrl":"http://localhost/000000000000/orders","Entries":[` + strings.Join(entries, ",") + `]}`)
	both(b, func(b *testing.B, addr string) {
		all := rawClients(b, addr)
		clients(b, 10, func(client, _ int) error {
			_, err := all[client].call("SendMessageBatch", body)
			return err
		})
	})
}

// BenchmarkReceiveDelete takes and deletes messages by tens from a queue that is so deep.
func BenchmarkReceiveDelete(b *testing.B) {
	b.Run("server=noop", func(b *testing.B) { receiveDelete(b, benchServer(b, newNoOp())) })
	for _, depth := range []int{1_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("server=dlq/depth=%d", depth), func(b *testing.B) {
			e := benchEngine(b)
			fill(b, e, depth+10*b.N)
			receiveDelete(b, benchServer(b, benchHandler(e)))
		})
	}
}

// fill puts n messages into the queue.
func fill(b *testing.B, e *broker.Engine, n int) {
	b.Helper()
	batch := make([]*message.Message, 1000)
	for i := range batch {
		batch[i] = &message.Message{ID: message.String("00000000-0000-4000-8000-000000000000"), Body: message.DataBody([]byte(benchBody))}
	}
	for ; n > 0; n -= len(batch) {
		if _, err := e.Send(broker.Address{Name: "orders"}, batch[:min(n, len(batch))]); err != nil {
			b.Fatal(err)
		}
	}
}

func receiveDelete(b *testing.B, addr string) {
	all := rawClients(b, addr)
	receive := []byte(`{"QueueUrl":"http://localhost/000000000000/orders","MaxNumberOfMessages":10,"VisibilityTimeout":3600}`)
	clients(b, 10, func(client, _ int) error {
		c := all[client]
		answer, err := c.call("ReceiveMessage", receive)
		if err != nil {
			return err
		}
		var got struct {
			Messages []struct{ ReceiptHandle string }
		}
		if err := json.Unmarshal(answer, &got); err != nil {
			return err
		}
		if len(got.Messages) == 0 {
			return fmt.Errorf("nothing was received")
		}
		out := []byte(`{"QueueUrl":"http://localhost/000000000000/orders","Entries":[`)
		for i, m := range got.Messages {
			if i > 0 {
				out = append(out, ',')
			}
			out = fmt.Appendf(out, `{"Id":"%d","ReceiptHandle":"%s"}`, i, m.ReceiptHandle)
		}
		_, err = c.call("DeleteMessageBatch", append(out, "]}"...))
		return err
	})
}
