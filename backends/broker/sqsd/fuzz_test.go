package sqsd

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"dlq/backends/broker"
	"dlq/backends/broker/store"
	"dlq/backends/message"
)

// decoded reads a document with the reader under test, into what encoding/json makes of it but
// that numbers stay text.
func decoded(r *jsonReader) (any, error) {
	switch r.peek() {
	case '{':
		out := map[string]any{}
		err := r.object(func(name string) error {
			v, err := decoded(r)
			out[name] = v
			return err
		})
		return out, err
	case '[':
		out := []any{}
		err := r.array(func() error {
			v, err := decoded(r)
			out = append(out, v)
			return err
		})
		return out, err
	case 'n':
		return nil, r.word("null")
	case 't':
		return true, r.word("true")
	case 'f':
		return false, r.word("false")
	case '"':
		return r.quoted()
	}
	s, err := r.number()
	return json.Number(s), err
}

// FuzzJSON compares the reader with encoding/json: what it reads is the same, and it reads
// everything but what is too deep, too large, or has a member twice.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{
		`{}`, ` [1, -0.5e+3, true, false, null, "a\u00e9\ud83d\ude00\n\/"] `, `{"a":{"b":[{}]},"a":1}`, `"\ud800"`, `01`, `1.`, `"` + "\x01" + `"`, `{"a":1,}`, `[1 2]`,
		strings.Repeat("[", 100), `{"QueueUrl":"x","Entries":[{"Id":"a","MessageAttributes":{"n":{"DataType":"Number","StringValue":"5"}}}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := &jsonReader{b: b}
		got, err := decoded(r)
		if err == nil {
			err = r.end()
		}
		_ = parseJSON(b, &input{})
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber()
		var want any
		wantErr := d.Decode(&want)
		if wantErr == nil {
			if _, more := d.Token(); !errors.Is(more, io.EOF) {
				wantErr = io.ErrUnexpectedEOF
			}
		}
		switch {
		case err == nil && wantErr != nil:
			t.Fatalf("it reads %q, which encoding/json does not: %v", b, wantErr)
		case err != nil && wantErr == nil:
			if text := err.Error(); !strings.Contains(text, "there twice") && !strings.Contains(text, "nested deeper") && !strings.Contains(text, "members") {
				t.Fatalf("it does not read %q: %v", b, err)
			}
		case err == nil && utf8.Valid(b) && !strings.Contains(string(b), `\u`):
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%q is %v, want %v", b, got, want)
			}
		}
	})
}

// FuzzStrings: whatever text goes into an answer comes out of a parser as it was, or, where the format
// cannot hold it, with U+FFFD.
func FuzzStrings(f *testing.F) {
	for _, seed := range []string{"", "a\r\n\t\"<&>'\\/", "é😀", "\x00\x1f\x7f", "\xff\xfe", "\ufffe\uffff\u2028"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var fromJSON string
		if err := json.Unmarshal(appendJSONString(nil, s), &fromJSON); err != nil || fromJSON != strings.ToValidUTF8(s, "\ufffd") && utf8.ValidString(s) {
			t.Fatalf("JSON: %q became %q: %v", s, fromJSON, err)
		}
		var fromXML struct {
			Text string `xml:",chardata"`
		}
		doc := append(appendXMLText([]byte("<a>"), s), "</a>"...)
		if err := xml.Unmarshal(doc, &fromXML); err != nil {
			t.Fatalf("XML: %q: %v", doc, err)
		}
		clean := !strings.ContainsFunc(s, func(r rune) bool {
			return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xfffe || r == 0xffff
		})
		if clean && utf8.ValidString(s) && fromXML.Text != s {
			t.Fatalf("XML: %q became %q", s, fromXML.Text)
		}
	})
}

// FuzzForm: a form gives the values that net/url gives, by keys that are not too deep.
func FuzzForm(f *testing.F) {
	for _, seed := range []string{
		"Action=SendMessage&QueueUrl=http%3A%2F%2Fx%2F1%2Fq&MessageBody=a+b", "Attribute.2.Name=b&Attribute.1.Name=a&Attribute.1.Value=1",
		"MessageAttribute.1.Value.StringListValue.1=x&a=%zz", "a.b.c.d.e.f.g.h.i=1&&=&.=", "AttributeName=All&AttributeName.7=x",
		"SendMessageBatchRequestEntry.1.Id=a&SendMessageBatchRequestEntry.1.MessageAttribute.1.Name=n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, bad := parseForm(s, 2000)
		if bad != nil {
			return
		}
		for _, action := range []string{"SendMessageBatch", "ReceiveMessage"} {
			var in input
			in.query(got, action)
		}
		want, err := url.ParseQuery(s)
		if err != nil {
			return // a semicolon, which is no separator here
		}
		for key, values := range want {
			if strings.Count(key, ".") >= maxFormDepth {
				continue
			}
			node := got
			for segment := range strings.SplitSeq(key, ".") {
				node = node.at(segment)
			}
			if node.value == nil || *node.value != values[0] {
				t.Fatalf("%q in %q is %v, want %q", key, s, node.value, values[0])
			}
		}
	})
}

// FuzzHandle: a receipt handle is one that was given, or none.
func FuzzHandle(f *testing.F) {
	good := receiptHandle("orders", broker.Delivery{Seq: 7, Token: message.UUID{1}})
	f.Add(good)
	f.Add("garbage")
	f.Add(good[:len(good)-1])
	f.Fuzz(func(t *testing.T, handle string) {
		d, ok := readHandle("orders", handle)
		if ok && receiptHandle("orders", d) != handle {
			t.Fatalf("%q is read as %v", handle, d)
		}
		if _, other := readHandle("other", handle); ok && other {
			t.Fatalf("%q is of two queues", handle)
		}
		_, _ = readToken(handle)
	})
}

// FuzzRequest: whatever is sent is answered, never with a fault of the server's, and in a document
// that can be read.
func FuzzRequest(f *testing.F) {
	for _, seed := range [][3]string{
		{"AmazonSQS.SendMessage", "/", `{"QueueUrl":"orders","MessageBody":"x","MessageAttributes":{"b":{"DataType":"Binary","BinaryValue":"AAE="}}}`},
		{"AmazonSQS.CreateQueue", "/", `{"QueueName":"a.fifo","Attributes":{"FifoQueue":"true","RedrivePolicy":"{\"deadLetterTargetArn\":\"arn:aws:sqs:us-east-1:000000000000:orders\",\"maxReceiveCount\":3}"}}`},
		{"AmazonSQS.SetQueueAttributes", "/", `{"QueueUrl":"orders","Attributes":{"Policy":"{}","RedriveAllowPolicy":"{\"redrivePermission\":\"denyAll\"}"}}`},
		{"AmazonSQS.ReceiveMessage", "/", `{"QueueUrl":"orders","MaxNumberOfMessages":10,"AttributeNames":["All"],"MessageAttributeNames":["a.*"]}`},
		{"AmazonSQS.StartMessageMoveTask", "/", `{"SourceArn":"arn:aws:sqs:us-east-1:000000000000:orders"}`},
		{"", "/000000000000/orders", "Action=SendMessage&MessageBody=%0D%00"},
		{"", "/", "Action=DeleteMessageBatch&QueueUrl=orders&DeleteMessageBatchRequestEntry.1.Id=a&DeleteMessageBatchRequestEntry.1.ReceiptHandle=x"},
		{"", "/", "Action=AddPermission&QueueUrl=orders&Label=x&AWSAccountId.1=1&ActionName.1=SendMessage"},
		{"AmazonSQS.Nothing", "/_aws/sqs/messages", ""},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	s, err := store.OpenMemory()
	if err != nil {
		f.Fatal(err)
	}
	e, err := broker.Open(broker.Options{Store: s})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = e.Close() })
	server := New(Options{Engine: e, Unsigned: true})
	server.Close() // receives do not wait
	f.Fuzz(func(t *testing.T, target, path, body string) {
		if err := e.Create("orders", broker.Queue, broker.Defaults(broker.Queue, broker.SQS)); err == nil {
			defer e.Delete("orders") //nolint:errcheck // a request may have deleted it
		}
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r.URL.Path = path
		if target != "" {
			r.Header.Set("X-Amz-Target", target)
		} else {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		if w.Code >= http.StatusInternalServerError {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		readable(t, w.Header().Get("Content-Type"), w.Body.Bytes())
	})
}

func readable(t *testing.T, kind string, body []byte) {
	t.Helper()
	if strings.Contains(kind, "json") {
		if !json.Valid(body) {
			t.Fatalf("no JSON: %s", body)
		}
		return
	}
	for d := xml.NewDecoder(bytes.NewReader(body)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("no XML: %v in %s", err, body)
		}
	}
}
