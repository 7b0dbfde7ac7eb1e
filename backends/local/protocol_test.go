package local

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"dlq/backends"
	"dlq/backends/message"
)

// wholeRequest has something in every field.
func wholeRequest() *request {
	m := text("body")
	m.Properties = message.Properties{{Name: "n", Value: message.Long(5)}}
	return &request{
		Op: opMove, Entity: shared.DeadLetters(), Lease: 3, Batch: 4, Max: 5, Session: new(""), From: -6, NoBody: true,
		Seqs: []int64{1, -2, 1 << 62},
		Outcome: backends.Outcome{
			Action: backends.DeadLetter, Reason: "why", Description: "\xff\x00",
			Set: []message.Attribute{{Name: "a", Value: message.Bool(true)}},
		},
		Tokens:   []message.UUID{{}, {1, 2, 3}},
		Messages: []*message.Message{m, nil},
		Moves:    []backends.Move{{Seq: 9, To: shared, As: m, Keep: true, AllowUnrouted: true}, {}},
		Query:    backends.EntityQuery{Prefix: "p", Names: []string{"a", ""}, NoCounts: true},
		Kind:     backends.Topic, Settings: []backends.Setting{{Name: "k", Value: "v"}},
		Rules: []backends.Rule{{Name: "r", Filter: "1=1", Action: "SET a=1"}, {Correlation: []message.Attribute{{Name: "c", Value: message.String("x")}}}},
		Name:  "name",
	}
}

func wholeReply() *reply {
	at := time.Date(2026, 3, 1, 12, 0, 0, 1, time.UTC)
	return &reply{
		More: true, Lease: 1, Count: 2, Messages: []*message.Message{text("a")}, IDs: []backends.EntityID{shared},
		Entities: []backends.Entity{{
			ID: shared, Kind: backends.Queue,
			Counts:      backends.Counts{Active: 1, DeadLetter: 2, TransferDeadLetter: 3, Scheduled: 4, Deferred: 5, Delayed: 6, InFlight: -1, Summed: true, Source: "s", AsOf: at},
			DeadLetters: shared.DeadLetters(), Sources: []backends.EntityID{shared}, Oldest: at,
			Limits:          backends.Limits{MaxBodyBytes: 7, LockDuration: time.Minute, MaxDeliveryCount: 8},
			RequiresSession: true, Deduplication: backends.Deduplication{Window: time.Hour, Attribute: "d"},
		}},
		Description: backends.EntityDescription{
			ID: shared, Kind: backends.Queue, Properties: []backends.Property{{Name: "n", Value: "v", Default: "d", Range: "r", Immutable: true}},
			Rules: []backends.Rule{{Name: "r"}}, Created: at, Modified: at,
		},
	}
}

// TestFramesKeepEverything: no field is forgotten on the way.
func TestFramesKeepEverything(t *testing.T) {
	for _, test := range []struct{ whole, got coded }{
		{wholeRequest(), &request{}},
		{&request{}, &request{}},
		{wholeReply(), &reply{}},
		{&reply{}, &reply{}},
		{&hello{Magic: magic, Protocol: 1, Build: "b", Owner: owner{PID: 1, Command: "c", Since: time.Unix(5, 0).UTC()}}, &hello{}},
	} {
		b, err := encode(test.whole)
		if err != nil {
			t.Fatal(err)
		}
		if err := decode(b, test.got); err != nil {
			t.Errorf("%T: %v", test.whole, err)
		}
		if !reflect.DeepEqual(test.whole, test.got) {
			t.Errorf("%T changes on the way: sent\n%+v\nreceived\n%+v", test.whole, test.whole, test.got)
		}
	}
}

// TestErrorsKeepTheirMeaning: whoever acts on an error acts the same on both sides.
func TestErrorsKeepTheirMeaning(t *testing.T) {
	coded := &backends.Error{Op: "send to", Entity: shared, Code: backends.TooLarge, Err: errors.New("by a byte")}
	unsupported := wrap("defer", shared, errors.ErrUnsupported)
	unsupported = &backends.Error{Op: "defer", Entity: shared, Code: backends.Unsupported, Err: unsupported}
	for _, err := range []error{
		nil, io.EOF, coded, unsupported,
		&backends.Error{Op: "settle in", Code: backends.NotTried},
		backends.Batch([]error{nil, coded, nil, &backends.Error{Op: "x", Code: backends.Locked}, errors.New("plain")}),
		errors.New("plain"),
	} {
		b, encoding := encode(&reply{Err: err})
		var got reply
		if err := errors.Join(encoding, decode(b, &got)); err != nil {
			t.Fatal(err)
		}
		if (err == nil) != (got.Err == nil) || err != nil && err.Error() != got.Err.Error() {
			t.Errorf("%v becomes %v", err, got.Err)
		}
		for _, sentinel := range []error{io.EOF, errors.ErrUnsupported} {
			if errors.Is(err, sentinel) != errors.Is(got.Err, sentinel) {
				t.Errorf("%v: wrapping %v is lost or made up", err, sentinel)
			}
		}
		wantCode, wantOK := backends.CodeOf(err)
		if code, ok := backends.CodeOf(got.Err); code != wantCode || ok != wantOK {
			t.Errorf("%v: code %v %v, want %v %v", err, code, ok, wantCode, wantOK)
		}
		for i, want := range backends.ItemErrors(err, 6) {
			if item := backends.ItemErrors(got.Err, 6)[i]; (want == nil) != (item == nil) {
				t.Errorf("%v: message %d has %v, want %v", err, i, item, want)
			}
		}
	}
	b, err := encode(&reply{Err: context.Canceled})
	var got reply
	if err := errors.Join(err, decode(b, &got)); err != nil {
		t.Fatal(err)
	}
	if errors.Is(got.Err, context.Canceled) {
		t.Error("the owner's cancellation is taken for the caller's own")
	}
}

// frame writes a frame by hand.
func frame(length uint32, kind byte, content ...byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, length)
	return append(append(b, kind), content...)
}

// TestFramesAreBounded: a length is refused before memory is given to it.
func TestFramesAreBounded(t *testing.T) {
	for name, b := range map[string][]byte{
		"empty":            frame(0, requestFrame),
		"too long":         frame(maxFrame+1, requestFrame),
		"as long as it is": frame(1<<32-1, requestFrame),
		"cut off":          frame(100, requestFrame, 1, 2, 3),
		"head cut off":     {0, 0},
	} {
		if _, _, err := readFrame(bytes.NewReader(b), maxFrame); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	announced := frame(maxFrame, requestFrame, bytes.Repeat([]byte{7}, believed)...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := readFrame(bytes.NewReader(announced), maxFrame)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; err == nil || took > 16*believed {
		t.Errorf("a frame of 1 GiB of which 1 MiB comes takes %d bytes of memory (%v)", took, err)
	}
}

// TestMalformedRequests: counts, lengths and numbers that do not fit are refused, with an answer.
func TestMalformedRequests(t *testing.T) {
	good, err := encode(wholeRequest())
	if err != nil {
		t.Fatal(err)
	}
	for n := range good {
		if err := decode(good[:n], &request{}); err == nil {
			t.Errorf("cut off after %d of %d bytes: accepted", n, len(good))
		}
	}
	if err := decode(append(bytes.Clone(good), 0), &request{}); err == nil {
		t.Error("a byte too many: accepted")
	}
	for name, write := range map[string]func(c *codec){
		"failures out of order": func(c *codec) {
			c.failure(new(error(&backends.BatchError{Failed: []backends.ItemError{{Index: 3, Err: io.EOF}, {Index: 1, Err: io.EOF}}})), false)
		},
		"a negative index": func(c *codec) {
			c.failure(new(error(&backends.BatchError{Failed: []backends.ItemError{{Index: -1, Err: io.EOF}}})), false)
		},
		"no failure": func(c *codec) { c.failure(new(error(&backends.BatchError{})), false) },
		"an unknown kind": func(c *codec) {
			kind := uint8(99)
			number(c, &kind)
		},
		"more entries than bytes": func(c *codec) {
			kind, n := batchError, 1<<40
			number(c, &kind)
			number(c, &n)
		},
	} {
		c := &codec{}
		write(c)
		d := &codec{buf: c.buf, reading: true}
		var got error
		d.failure(&got, false)
		if d.err == nil && c.err == nil {
			t.Errorf("%s: accepted as %v", name, got)
		}
	}
}

// TestHostileConnections: none of them stops the owner, and each ends.
func TestHostileConnections(t *testing.T) {
	dir := shortDir(t)
	b := owned(t, Options{Dir: dir})
	hi, err := encode(&hello{Magic: magic, Protocol: protocolVersion})
	if err != nil {
		t.Fatal(err)
	}
	greeting := frame(uint32(len(hi)+1), helloFrame, hi...)
	unknown, err := encode(&request{Op: 200})
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"http":                []byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
		"zeros":               make([]byte, 100),
		"a long hello":        frame(maxHello+1, helloFrame),
		"a hello of garbage":  frame(4, helloFrame, 1, 2, 3),
		"no hello":            frame(1, requestFrame),
		"garbage after hello": append(bytes.Clone(greeting), frame(4, requestFrame, 9, 9, 9)...),
		"a second hello":      append(bytes.Clone(greeting), greeting...),
		"a huge request":      append(bytes.Clone(greeting), frame(maxFrame+1, requestFrame)...),
	} {
		t.Run(name, func(t *testing.T) {
			c := rawConn(t, dir)
			_, _ = c.Write(b)
			if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, c); err != nil && strings.Contains(err.Error(), "timeout") {
				t.Error("the connection stays open")
			}
		})
	}
	t.Run("an unknown operation", func(t *testing.T) {
		w := newWire(rawConn(t, dir))
		_, _ = w.Write(append(bytes.Clone(greeting), frame(uint32(len(unknown)+1), requestFrame, unknown...)...))
		_, _, _ = w.receive(maxHello)
		r, _, err := read(w)
		if err != nil || !backends.IsCode(r.Err, backends.Invalid) {
			t.Errorf("%v, %v; want an answer that it is invalid", r.Err, err)
		}
	})
	if err := through(t, Options{Dir: dir}).CreateQueue(t.Context(), "after"); err != nil {
		t.Error(err)
	}
	soon(t, "the end of the connections", func() bool {
		b.others.mu.Lock()
		defer b.others.mu.Unlock()
		return len(b.others.conns) <= 1
	})
}

func rawConn(t *testing.T, dir string) net.Conn {
	t.Helper()
	by, err := readOwner(dir)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("unix", by.Socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// FuzzFrames reads a stream of frames as both ends do. What is understood must mean the same when it
// is sent on.
func FuzzFrames(f *testing.F) {
	for i, v := range []coded{
		wholeRequest(), wholeReply(), &hello{Magic: magic},
		&reply{Err: backends.Batch([]error{io.EOF, wrap("x", shared, errors.ErrUnsupported)})},
	} {
		b, err := encode(v)
		if err != nil {
			f.Fatal(err)
		}
		kind := [...]byte{requestFrame, replyFrame, helloFrame, replyFrame}[i]
		f.Add(frame(uint32(len(b)+1), kind, b...))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		in := bytes.NewReader(b)
		for {
			kind, content, err := readFrame(in, 1<<20)
			if err != nil {
				return
			}
			switch kind {
			case helloFrame:
				sentOn(t, content, &hello{}, &hello{})
			case requestFrame:
				sentOn(t, content, &request{}, &request{})
			case replyFrame:
				sentOn(t, content, &reply{}, &reply{})
			}
		}
	})
}

func sentOn(t *testing.T, b []byte, first, second coded) {
	t.Helper()
	if decode(b, first) != nil {
		return
	}
	once, err := encode(first)
	if err != nil {
		t.Fatalf("what was read cannot be written: %v", err)
	}
	if err := decode(once, second); err != nil {
		t.Fatalf("what was written cannot be read: %v", err)
	}
	twice, err := encode(second)
	if err != nil || !bytes.Equal(once, twice) {
		t.Fatalf("the second writing differs (%v)", err)
	}
}
