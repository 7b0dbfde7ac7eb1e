package amqpd

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dlq/backends/amqp"
	"dlq/backends/broker"
	"dlq/backends/broker/sas"
	"dlq/backends/broker/store"
	"dlq/backends/message"
)

// desk is a server that is asked at its nodes, without a connection: it is itself the one who
// asks. What it sends and gets has been bytes in between.
type desk struct {
	testing.TB
	engine   *broker.Engine
	server   *Server
	now      time.Time
	rights   sas.Rights
	asked    sas.Rights // what the last request needed
	sessions []deskSession
	granted  []sas.Claim
}

type deskSession struct {
	at    broker.Address
	link  string
	id    string
	token message.UUID
}

func (d *desk) may(entity string, right sas.Rights) error {
	d.asked = right
	if d.rights.Has(right) {
		return nil
	}
	return d.server.unauthorized(entity, right)
}

func (d *desk) session(a broker.Address, id *string, link string) (message.UUID, string, bool) {
	for _, s := range d.sessions {
		if sameAddress(s.at, a) && (id != nil && *id == s.id || id == nil && link == s.link) {
			return s.token, s.id, true
		}
	}
	return message.UUID{}, "", false
}

func (d *desk) grant(c sas.Claim) { d.granted = append(d.granted, c) }

// start is when the clock of a desk stands still.
var start = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

func newDesk(t testing.TB) *desk {
	t.Helper()
	s, err := store.Open(vfs.NewMem(), "data")
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{TB: t, now: start, rights: sas.Manage}
	ids := byte(0)
	newID := func() message.UUID { // the same in every run
		ids++
		return message.UUID{15: ids}
	}
	d.engine, err = broker.Open(broker.Options{Store: s, Now: func() time.Time { return d.now }, NewID: newID})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.engine.Close() })
	d.server = New(Options{Engine: d.engine, Namespace: "ns", Now: func() time.Time { return d.now }, BatchDeleteMax: 3})
	d.create("orders", broker.Queue, nil)
	d.create("visits", broker.Queue, func(p *broker.Properties) { p.RequiresSession = true })
	d.create("news", broker.Topic, nil)
	d.create("news/Subscriptions/all", broker.Subscription, nil)
	return d
}

var (
	orders  = broker.Address{Name: "orders"}
	visits  = broker.Address{Name: "visits"}
	letters = broker.Address{Name: "news/Subscriptions/all"}
)

func (d *desk) create(name string, kind broker.Kind, change func(*broker.Properties)) {
	d.Helper()
	p := broker.Defaults(kind, broker.ServiceBus)
	if kind != broker.Subscription {
		p.MaxMessageBytes = 256 << 10
	}
	if change != nil {
		change(&p)
	}
	if err := d.engine.Create(name, kind, p); err != nil {
		d.Fatal(err)
	}
}

// said is a message with a text as its body.
func said(text string) *message.Message {
	return &message.Message{ID: message.String(text), Body: message.DataBody([]byte(text))}
}

func saidIn(session, text string) *message.Message {
	m := said(text)
	m.SessionID = &session
	return m
}

func (d *desk) send(a broker.Address, msgs ...*message.Message) {
	d.Helper()
	sent, err := d.engine.Send(a, msgs)
	if err != nil {
		d.Fatal(err)
	}
	for _, one := range sent {
		if one.Err != nil {
			d.Fatal(one.Err)
		}
	}
}

// receive locks messages.
func (d *desk) receive(a broker.Address, o broker.ReceiveOptions) []message.UUID {
	d.Helper()
	o.Max = 100
	msgs, err := d.engine.Receive(a, o)
	if err != nil {
		d.Fatal(err)
	}
	var tokens []message.UUID
	for _, m := range msgs {
		tokens = append(tokens, m.Broker.LockToken)
	}
	return tokens
}

// accept locks a session on a link.
func (d *desk) accept(a broker.Address, id, link string) message.UUID {
	d.Helper()
	s, err := d.engine.AcceptSession(a, &id)
	if err != nil {
		d.Fatal(err)
	}
	d.sessions = append(d.sessions, deskSession{a, link, id, s.Token})
	return s.Token
}

func (d *desk) deferred(a broker.Address, session message.UUID) {
	d.Helper()
	tokens := d.receive(a, broker.ReceiveOptions{Session: session})
	if errs, err := d.engine.Settle(a, broker.Outcome{Action: broker.Defer}, tokens...); firstError(errs, err) != nil {
		d.Fatal(firstError(errs, err))
	}
}

// answer is a reply as a peer reads it.
type answer struct {
	*message.Message
	status    int
	condition string
	text      string
	body      message.Value
}

// ask sends a request with a value as its body and reads the reply.
func (d *desk) ask(a broker.Address, operation string, body message.Value, properties ...message.Attribute) answer {
	d.Helper()
	return d.askIn(nil, a, operation, body, properties...)
}

func (d *desk) askIn(tx *broker.Transaction, a broker.Address, operation string, body message.Value, properties ...message.Attribute) answer {
	d.Helper()
	return d.reply(d.server.manage(context.Background(), d, a, tx, d.request("com.microsoft:"+operation, body, properties...)))
}

func (d *desk) request(operation string, body message.Value, properties ...message.Attribute) *message.Message {
	d.Helper()
	req := &message.Message{ID: message.String("1"), Properties: append(message.Properties{{Name: "operation", Value: message.String(operation)}}, properties...)}
	if body != nil {
		encoded, err := amqp.AppendValue(nil, body)
		if err != nil {
			d.Fatal(err)
		}
		req.Body = message.Body{Kind: message.ValueBody, Sections: [][]byte{encoded}}
	}
	return d.overTheWire(req)
}

func (d *desk) overTheWire(m *message.Message) *message.Message {
	d.Helper()
	b, err := amqp.AppendMessage(nil, m)
	if err != nil {
		d.Fatal(err)
	}
	if m, err = amqp.DecodeMessage(b); err != nil {
		d.Fatal(err)
	}
	return m
}

// reply reads a reply of $management and checks what holds for all of them.
func (d *desk) reply(m *message.Message) answer {
	d.Helper()
	r := answer{Message: d.overTheWire(m)}
	if r.Body.Kind != message.ValueBody || len(r.Body.Sections) != 1 {
		d.Fatalf("the body of the reply is %v", r.Body)
	}
	var err error
	if r.body, _, err = amqp.DecodeValue(r.Body.Sections[0]); err != nil {
		d.Fatal(err)
	}
	for _, names := range [][2]string{{"statusCode", "status-code"}, {"statusDescription", "status-description"}, {"errorCondition", "error-condition"}} {
		camel, _ := r.Properties.Get(names[0])
		dashed, _ := r.Properties.Get(names[1])
		if camel != dashed {
			d.Errorf("%s is %v and %s is %v", names[0], camel, names[1], dashed)
		}
		switch v := camel.(type) {
		case message.Int:
			r.status = int(v)
		case message.String:
			r.text = string(v)
		case message.Symbol:
			r.condition = string(v)
		case nil:
		default:
			d.Errorf("%s is a %s", names[0], message.KindOf(v))
		}
	}
	if r.status == 0 || r.text == "" || (r.status < 300) != (r.condition == "") {
		d.Errorf("the reply has status %d, condition %q and text %q", r.status, r.condition, r.text)
	}
	if r.condition != "" && !suffix.MatchString(r.text) {
		d.Errorf("the text %q does not end as those of the service do", r.text)
	}
	return r
}

var suffix = regexp.MustCompile(`\S TrackingId:[0-9a-f-]{36}_G0, SystemTracker:ns:.*, Timestamp:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$`)

// want checks a reply; body is what its body has to be, type by type.
func (r answer) want(t testing.TB, status int, body message.Value) {
	t.Helper()
	if r.status != status {
		t.Fatalf("status %d %s %q, want %d", r.status, r.condition, r.text, status)
	}
	if !message.EqualValues(r.body, body) {
		t.Errorf("the body is %s, want %s", message.FormatValue(r.body), message.FormatValue(body))
	}
}

func (r answer) wantRefusal(t testing.TB, status int, condition string) {
	t.Helper()
	if r.status != status || r.condition != condition {
		t.Fatalf("status %d %s %q, want %d %s", r.status, r.condition, r.text, status, condition)
	}
	if r.body != (message.Null{}) {
		t.Errorf("a refusal has the body %s", message.FormatValue(r.body))
	}
}

// get returns an entry of the body.
func (r answer) get(t testing.TB, key string) message.Value {
	t.Helper()
	m, ok := r.body.(message.Map)
	if r.status != 200 || !ok {
		t.Fatalf("status %d %s %q, and the body is %s", r.status, r.condition, r.text, message.FormatValue(r.body))
	}
	for _, p := range m {
		if p.Key == message.String(key) {
			return p.Value
		}
	}
	t.Fatalf("the body has no %s", key)
	return nil
}

// fields makes a map of names and values.
func fields(pairs ...any) message.Map {
	m := message.Map{}
	for i := 0; i < len(pairs); i += 2 {
		m = append(m, message.Pair{Key: message.String(pairs[i].(string)), Value: pairs[i+1].(message.Value)})
	}
	return m
}

func longs(ns ...int64) message.Array {
	a := message.Array{Elem: message.KindLong}
	for _, n := range ns {
		a.Items = append(a.Items, message.Long(n))
	}
	return a
}

func uuids(us ...message.UUID) message.Array {
	a := message.Array{Elem: message.KindUUID}
	for _, u := range us {
		a.Items = append(a.Items, u)
	}
	return a
}

func texts(ss ...string) message.Array {
	a := message.Array{Elem: message.KindString}
	for _, s := range ss {
		a.Items = append(a.Items, message.String(s))
	}
	return a
}

// embedded decodes the messages in a reply.
func (r answer) embedded(t testing.TB) (entries []message.Map, msgs []*message.Message) {
	t.Helper()
	list, ok := r.get(t, "messages").(message.List)
	if !ok {
		t.Fatalf("messages is a %s", message.KindOf(r.get(t, "messages")))
	}
	for _, v := range list {
		entry := v.(message.Map)
		var encoded message.Binary
		for _, p := range entry {
			if p.Key == message.String("message") {
				encoded = p.Value.(message.Binary)
			}
		}
		m, err := amqp.DecodeMessage(encoded)
		if err != nil {
			t.Fatal(err)
		}
		entries, msgs = append(entries, entry), append(msgs, m)
	}
	return entries, msgs
}

func bodies(msgs []*message.Message) string {
	var all []string
	for _, m := range msgs {
		all = append(all, string(m.Body.Bytes()))
	}
	return strings.Join(all, " ")
}

func TestManagementEnvelope(t *testing.T) {
	d := newDesk(t)
	id := message.Attribute{Name: "com.microsoft:tracking-id", Value: message.String("T-1")}
	for _, r := range []answer{
		d.ask(orders, "peek-message", fields("from-sequence-number", message.Long(0), "message-count", message.Int(1)), id),
		d.ask(orders, "peek-message", nil, id),
		d.ask(orders, "brew-coffee", nil, id),
	} {
		if v, _ := r.Properties.Get("com.microsoft:tracking-id"); v != id.Value {
			t.Errorf("with status %d the tracking id came back as %v", r.status, v)
		}
	}
	d.ask(orders, "brew-coffee", nil).wantRefusal(t, 501, "amqp:not-implemented")
	d.reply(d.server.manage(context.Background(), d, orders, nil, d.request("peek-message", nil))).
		wantRefusal(t, 501, "amqp:not-implemented")
	d.reply(d.server.manage(context.Background(), d, orders, nil, &message.Message{})).
		wantRefusal(t, 501, "amqp:not-implemented")
}

// TestManagementRights checks which right each operation needs, and that without it nothing is
// looked at.
func TestManagementRights(t *testing.T) {
	d := newDesk(t)
	d.rights = 0
	for operation, right := range map[string]sas.Rights{
		"peek-message": sas.Listen, "renew-lock": sas.Listen, "renew-session-lock": sas.Listen,
		"get-session-state": sas.Listen, "set-session-state": sas.Listen, "get-message-sessions": sas.Listen,
		"receive-by-sequence-number": sas.Listen, "update-disposition": sas.Listen, "batch-delete-messages": sas.Listen,
		"add-rule": sas.Listen, "remove-rule": sas.Listen, "enumerate-rules": sas.Listen,
		"schedule-message": sas.Send, "cancel-scheduled-message": sas.Send,
	} {
		r := d.ask(orders, operation, message.String("no map"))
		r.wantRefusal(t, 401, "amqp:unauthorized-access")
		if d.asked != right {
			t.Errorf("%s needs %v, want %v", operation, d.asked, right)
		}
		want := fmt.Sprintf("Unauthorized access. '%v' claim(s) are required to perform this operation. Resource: 'sb://ns/orders'.", right)
		if !strings.HasPrefix(r.text, want) {
			t.Errorf("%s is refused with %q", operation, r.text)
		}
	}
}

func TestManagementPeek(t *testing.T) {
	d := newDesk(t)
	later := d.now.Add(time.Hour)
	scheduled := said("scheduled")
	scheduled.ScheduledEnqueueTime = &later
	d.send(orders, said("deferred"))
	d.deferred(orders, message.UUID{})
	d.send(orders, said("locked"))
	d.receive(orders, broker.ReceiveOptions{})
	d.send(orders, said("free"), scheduled)

	peek := func(pairs ...any) answer { return d.ask(orders, "peek-message", fields(pairs...)) }
	entries, msgs := peek("from-sequence-number", message.Long(0), "message-count", message.Int(10)).embedded(t)
	if got := bodies(msgs); got != "deferred locked free scheduled" {
		t.Errorf("peeked %s", got)
	}
	for i, state := range []message.Int{1, 0, 0, 2} {
		a := msgs[i].Annotations
		seq, _ := a.Get(annSequence)
		got, _ := a.Get(annState)
		enqueued, _ := a.Get(annEnqueuedTime)
		if seq != message.Long(i+1) || got != state || message.KindOf(enqueued) != message.KindTimestamp {
			t.Errorf("message %d came with %v", i, a)
		}
		if len(entries[i]) != 1 {
			t.Errorf("the entry of message %d is %v", i, entries[i])
		}
		if _, shown := msgs[i].DeliveryAnnotations.Get(annLockToken); shown {
			t.Errorf("message %d is shown with its lock token", i)
		}
	}
	_, msgs = peek("from-sequence-number", message.Long(3), "message-count", message.Int(1)).embedded(t)
	if got := bodies(msgs); got != "free" {
		t.Errorf("from 3 on, one message: %s", got)
	}
	_, msgs = peek("from-sequence-number", message.Long(-5), "message-count", message.Long(1<<40), "omit-message-body", message.Bool(true)).embedded(t)
	if got := bodies(msgs); len(msgs) != 4 || strings.TrimSpace(got) != "" {
		t.Errorf("%d messages without bodies: %q", len(msgs), got)
	}
	peek("from-sequence-number", message.Long(5), "message-count", message.Int(1)).want(t, 204, message.Map{})
	peek("from-sequence-number", message.Long(1<<62), "message-count", message.Int(1)).want(t, 204, message.Map{})
	for _, bad := range []message.Map{
		fields(), fields("message-count", message.Int(0)), fields("message-count", message.Int(-1)),
		fields("message-count", message.String("1")), fields("message-count", message.Int(1), "session-id", message.Int(1)),
	} {
		d.ask(orders, "peek-message", bad).wantRefusal(t, 400, "com.microsoft:argument-error")
	}
}

// TestManagementPeekBounds checks that a page ends by its count and by its bytes, and that the
// pages together have everything.
func TestManagementPeekBounds(t *testing.T) {
	d := newDesk(t)
	const n, large = 600, 5
	for i := range n {
		d.send(orders, said(fmt.Sprint(i)))
	}
	for range large {
		d.send(orders, &message.Message{Body: message.DataBody(make([]byte, 200_000))})
	}
	var pages []int
	for from := int64(0); ; {
		r := d.ask(orders, "peek-message", fields("from-sequence-number", message.Long(from), "message-count", message.Int(100_000)))
		if r.status == 204 {
			break
		}
		_, msgs := r.embedded(t)
		pages = append(pages, len(msgs))
		last, _ := msgs[len(msgs)-1].Annotations.Get(annSequence)
		from = int64(last.(message.Long)) + 1
		if size := len(r.Body.Sections[0]); size > maxPeekBytes+10_000 {
			t.Errorf("a page has %d bytes", size)
		}
	}
	sum := 0
	for _, p := range pages {
		sum += p
		if p > maxPeek {
			t.Errorf("a page has %d messages", p)
		}
	}
	if sum != n+large || len(pages) < 3 {
		t.Errorf("the pages %v hold %d messages, want %d", pages, sum, n+large)
	}
}

func TestManagementPeekSession(t *testing.T) {
	d := newDesk(t)
	d.send(visits, saidIn("a", "a1"), saidIn("b", "b1"), saidIn("a", "a2"), saidIn("", "none"))
	d.accept(visits, "b", "link-b")
	all := []any{"from-sequence-number", message.Long(0), "message-count", message.Int(10)}
	for _, c := range []struct {
		id   message.Value
		link string
		want string
	}{
		{message.Null{}, "", "a1 b1 a2 none"},
		{message.Null{}, "other-link", "a1 b1 a2 none"},
		{message.Null{}, "link-b", "b1"},
		{message.String("a"), "link-b", "a1 a2"},
		{message.String(""), "", "none"},
	} {
		r := d.ask(visits, "peek-message", fields(append(all, "session-id", c.id)...),
			message.Attribute{Name: "associated-link-name", Value: message.String(c.link)})
		if _, msgs := r.embedded(t); bodies(msgs) != c.want {
			t.Errorf("session %v on link %q: %s, want %s", c.id, c.link, bodies(msgs), c.want)
		}
	}
}

func TestManagementRenewLock(t *testing.T) {
	d := newDesk(t)
	d.send(orders, said("a"), said("b"))
	tokens := d.receive(orders, broker.ReceiveOptions{})
	d.now = d.now.Add(20 * time.Second)
	until := message.TimestampOf(d.now.Add(time.Minute))
	renew := func(v message.Value) answer { return d.ask(orders, "renew-lock", fields("lock-tokens", v)) }
	renew(uuids(tokens...)).want(t, 200, fields("expirations",
		message.Array{Elem: message.KindTimestamp, Items: []message.Value{until, until}}))
	renew(message.List{tokens[0]}).want(t, 200, fields("expirations",
		message.Array{Elem: message.KindTimestamp, Items: []message.Value{until}}))
	d.now = d.now.Add(50 * time.Second) // beyond the first lock, not the renewed one
	d.ask(orders, "update-disposition", fields("disposition-status", message.String("renewed"), "lock-tokens", uuids(tokens[0]))).get(t, "expirations")
	d.now = d.now.Add(50 * time.Second)
	renew(uuids(tokens...)).wantRefusal(t, 410, "com.microsoft:message-lock-lost")
	for _, bad := range []message.Value{message.Null{}, uuids(), message.List{message.Int(1)}, message.String("x"), longs(1)} {
		renew(bad).wantRefusal(t, 400, "com.microsoft:argument-error")
	}
	d.send(visits, saidIn("a", "a1"))
	token := d.accept(visits, "a", "link")
	tokens = d.receive(visits, broker.ReceiveOptions{Session: token})
	d.ask(visits, "renew-lock", fields("lock-tokens", uuids(tokens...))).wantRefusal(t, 400, "amqp:not-allowed")
}

// TestManagementBody checks what may stand in the place of a map: nothing, or null.
func TestManagementBody(t *testing.T) {
	d := newDesk(t)
	ask := func(body message.Body) answer {
		req := d.request("com.microsoft:enumerate-rules", nil)
		req.Body = body
		return d.reply(d.server.manage(context.Background(), d, letters, nil, req))
	}
	for _, encoded := range []string{"\x40", "\xc1\x01\x00"} {
		if r := ask(message.Body{Kind: message.ValueBody, Sections: [][]byte{[]byte(encoded)}}); r.status != 200 {
			t.Errorf("% x: %d %s", encoded, r.status, r.text)
		}
	}
	if r := ask(message.Body{}); r.status != 200 {
		t.Errorf("no body: %d %s", r.status, r.text)
	}
	ask(message.DataBody([]byte{0x40})).wantRefusal(t, 400, "com.microsoft:argument-error")
	ask(message.Body{Kind: message.ValueBody, Sections: [][]byte{{0x45}}}).wantRefusal(t, 400, "com.microsoft:argument-error")
	ask(message.Body{Kind: message.ValueBody, Sections: [][]byte{{0xd0, 0xff}}}).wantRefusal(t, 400, "amqp:decode-error")
	d.ask(orders, "peek-message", fields("message-count", message.Int(1), "from-sequence-number", message.Null{})).want(t, 204, message.Map{})
	d.ask(visits, "get-message-sessions", fields("last-updated-time", message.Long(253402300800000))).want(t, 204, message.Map{})
}
