package amqpd

import (
	"errors"
	"slices"
	"testing"
	"time"

	"dlq/backends/amqp"
	"dlq/backends/broker"
	"dlq/backends/message"
)

func TestManagementSession(t *testing.T) {
	d := newDesk(t)
	d.accept(visits, "a", "link-a")
	link := message.Attribute{Name: "associated-link-name", Value: message.String("link-a")}
	id := fields("session-id", message.String("a"))
	with := func(state message.Value) message.Map {
		return fields("session-id", message.String("a"), "session-state", state)
	}
	none := fields("session-state", message.Null{})

	d.ask(visits, "get-session-state", id).want(t, 200, none)
	for _, state := range []message.Value{message.Binary("\x00\xffstate"), message.Binary("{}")} {
		d.ask(visits, "set-session-state", with(state)).want(t, 200, message.Map{})
		d.ask(visits, "get-session-state", id).want(t, 200, fields("session-state", state))
		d.ask(visits, "get-session-state", fields("session-id", message.Null{}), link).want(t, 200, fields("session-state", state))
	}
	for _, state := range []message.Value{message.Null{}, message.Binary{}} { // Go sends the second for none
		d.ask(visits, "set-session-state", with(message.Binary("x"))).want(t, 200, message.Map{})
		d.ask(visits, "set-session-state", with(state)).want(t, 200, message.Map{})
		d.ask(visits, "get-session-state", id).want(t, 200, none)
	}
	d.ask(visits, "set-session-state", with(message.String("x"))).wantRefusal(t, 400, "com.microsoft:argument-error")
	d.ask(visits, "set-session-state", with(message.Binary(make([]byte, 256<<10)))).want(t, 200, message.Map{})
	d.ask(visits, "set-session-state", with(message.Binary(make([]byte, 256<<10+1)))).wantRefusal(t, 413, "amqp:link:message-size-exceeded")

	d.now = d.now.Add(30 * time.Second)
	d.ask(visits, "renew-session-lock", id).want(t, 200, fields("expiration", message.TimestampOf(d.now.Add(time.Minute))))
	d.now = d.now.Add(2 * time.Minute)
	for _, operation := range []string{"renew-session-lock", "get-session-state", "set-session-state"} {
		d.ask(visits, operation, id).wantRefusal(t, 410, "com.microsoft:session-lock-lost")
		d.ask(visits, operation, fields("session-id", message.String("b"))).wantRefusal(t, 410, "com.microsoft:session-lock-lost")
		d.ask(visits, operation, fields("session-id", message.Int(1))).wantRefusal(t, 400, "com.microsoft:argument-error")
	}
	d.ask(visits, "receive-by-sequence-number", fields("sequence-numbers", longs(1), "session-id", message.String("a"))).
		wantRefusal(t, 410, "com.microsoft:session-lock-lost")
	d.ask(visits, "update-disposition", fields("lock-tokens", uuids(message.UUID{1}), "disposition-status", message.String("completed"))).
		wantRefusal(t, 410, "com.microsoft:session-lock-lost")
}

// TestManagementSessionOfSubscription: a subscription has no size of messages of its own.
func TestManagementSessionOfSubscription(t *testing.T) {
	d := newDesk(t)
	a := broker.Address{Name: "news/Subscriptions/visits"}
	d.create(a.Name, broker.Subscription, func(p *broker.Properties) { p.RequiresSession = true })
	d.accept(a, "a", "link")
	state := fields("session-id", message.String("a"), "session-state", message.Binary("x"))
	d.ask(a, "set-session-state", state).want(t, 200, message.Map{})
	d.ask(a, "get-session-state", state).want(t, 200, fields("session-state", message.Binary("x")))
}

func TestManagementListSessions(t *testing.T) {
	d := newDesk(t)
	early := d.now
	for _, id := range []string{"c", "a", "b"} {
		d.send(visits, saidIn(id, "m"))
	}
	d.now = d.now.Add(time.Minute)
	token := d.accept(visits, "state only", "link")
	if err := d.engine.SetSessionState(visits, token, []byte("x")); err != nil {
		t.Fatal(err)
	}
	list := func(pairs ...any) answer { return d.ask(visits, "get-message-sessions", fields(pairs...)) }
	ever := message.Timestamp(253402300800000)
	page := func(skip int32, ids ...string) message.Map {
		return fields("skip", message.Int(skip), "sessions-ids", texts(ids...))
	}
	for _, last := range []message.Value{ever, ever - 1, message.Null{}} {
		list("last-updated-time", last, "skip", message.Int(0), "top", message.Int(100)).want(t, 200, page(4, "a", "b", "c", "state only"))
	}
	list("last-updated-time", ever, "skip", message.Int(1), "top", message.Int(2)).want(t, 200, page(3, "b", "c"))
	list("last-updated-time", ever, "skip", message.Int(-7), "top", message.Long(1)).want(t, 200, page(1, "a"))
	list("last-updated-time", ever, "skip", message.Int(4), "top", message.Int(2)).want(t, 204, message.Map{})
	list("last-updated-time", ever, "skip", message.Int(0), "top", message.Int(0)).want(t, 204, message.Map{})
	list("last-updated-time", message.TimestampOf(early)).want(t, 200, page(1, "state only"))
	list("last-updated-time", message.TimestampOf(time.Time{})).want(t, 200, page(1, "state only")) // .NET's first time
	list("last-updated-time", message.TimestampOf(d.now)).want(t, 204, message.Map{})
	list("last-updated-time", message.String("yesterday")).wantRefusal(t, 400, "com.microsoft:argument-error")
	d.ask(orders, "get-message-sessions", fields("last-updated-time", ever)).wantRefusal(t, 400, "amqp:not-allowed")
}

func TestManagementReceiveDeferred(t *testing.T) {
	d := newDesk(t)
	d.send(orders, said("1"), said("2"), said("3"), said("4"))
	d.deferred(orders, message.UUID{})
	d.send(orders, said("5"))
	ask := func(pairs ...any) answer { return d.ask(orders, "receive-by-sequence-number", fields(pairs...)) }

	entries, msgs := ask("sequence-numbers", longs(3, 1), "receiver-settle-mode", message.Uint(1)).embedded(t)
	if bodies(msgs) != "3 1" {
		t.Fatalf("received %s", bodies(msgs))
	}
	for i, m := range msgs {
		token, _ := m.DeliveryAnnotations.Get(annLockToken)
		if entries[i][0].Key != message.String("lock-token") || message.KindOf(token) != message.KindUUID || entries[i][0].Value != token {
			t.Errorf("message %d came with %v in the entry and %v inside", i, entries[i][0], token)
		}
		if state, _ := m.Annotations.Get(annState); state != message.Int(1) {
			t.Errorf("message %d has the state %v", i, state)
		}
		if until, _ := m.Annotations.Get(annLockedUntil); until != message.TimestampOf(d.now.Add(time.Minute)) {
			t.Errorf("message %d is locked until %v", i, until)
		}
	}
	const missing = "com.microsoft:message-not-found"
	ask("sequence-numbers", longs(1)).wantRefusal(t, 404, missing)    // locked now
	ask("sequence-numbers", longs(2, 9)).wantRefusal(t, 404, missing) // one does not exist
	ask("sequence-numbers", longs(5)).wantRefusal(t, 404, missing)    // not deferred
	for _, bad := range [][]any{
		{},
		{"sequence-numbers", longs()},
		{"sequence-numbers", message.List{message.String("1")}},
		{"sequence-numbers", longs(2), "receiver-settle-mode", message.Uint(2)},
		{"sequence-numbers", longs(2), "receiver-settle-mode", message.String("0")},
		{"sequence-numbers", longs(make([]int64, maxDeferred+1)...)},
	} {
		ask(bad...).wantRefusal(t, 400, "com.microsoft:argument-error")
	}
	// Without a mode nothing is deleted; an integer of any width will do.
	_, msgs = ask("sequence-numbers", message.List{message.Ubyte(2)}).embedded(t)
	d.now = d.now.Add(2 * time.Minute)
	_, again := ask("sequence-numbers", message.Array{Elem: message.KindInt, Items: []message.Value{message.Int(2)}}, "receiver-settle-mode", message.Ubyte(0)).embedded(t)
	if bodies(msgs) != "2" || bodies(again) != "2" {
		t.Fatalf("received %s, then %s", bodies(msgs), bodies(again))
	}
	d.now = d.now.Add(2 * time.Minute)
	ask("sequence-numbers", longs(2)).wantRefusal(t, 404, missing) // deleted
}

func TestManagementReceiveDeferredInSession(t *testing.T) {
	d := newDesk(t)
	d.send(visits, saidIn("a", "a1"))
	token := d.accept(visits, "a", "link-a")
	d.deferred(visits, token)
	body := fields("sequence-numbers", longs(1), "receiver-settle-mode", message.Uint(1))
	d.ask(visits, "receive-by-sequence-number", body).wantRefusal(t, 410, "com.microsoft:session-lock-lost")
	_, msgs := d.ask(visits, "receive-by-sequence-number", body,
		message.Attribute{Name: "associated-link-name", Value: message.String("link-a")}).embedded(t)
	if bodies(msgs) != "a1" {
		t.Errorf("received %s", bodies(msgs))
	}
}

func TestManagementReplyable(t *testing.T) {
	d := newDesk(t)
	for range 3 {
		d.send(orders, &message.Message{Body: message.DataBody(make([]byte, 1000))})
	}
	r := &request{s: d.server, a: orders}
	for _, c := range []struct {
		seqs []int64
		most int64
		ok   bool
	}{
		{[]int64{1, 2, 3}, 3000, true},
		{[]int64{1, 2, 3}, 2999, false},
		{[]int64{1}, 1, true},       // one has to be receivable
		{[]int64{1, 9}, 1000, true}, // what is not there takes no room; it fails later
	} {
		if err := r.replyable(c.seqs, c.most); (err == nil) != c.ok {
			t.Errorf("%v in %d bytes: %v", c.seqs, c.most, err)
		}
	}
}

func TestManagementUpdateDisposition(t *testing.T) {
	set := fields("n", message.Long(7), "gone", message.Null{})
	for _, c := range []struct {
		status string
		in     broker.Address // where the message is then; an empty name: nowhere
		state  message.State
		count  uint32
		set    bool
	}{
		{status: "completed"},
		{status: "abandoned", in: orders, count: 1, set: true},
		{status: "defered", in: orders, state: message.Deferred, set: true},
		{status: "deferred", in: orders, state: message.Deferred, set: true},
		{status: "suspended", in: broker.Address{Name: "orders", Sub: broker.DeadLetter}, set: true},
		{status: "unlocked", in: orders},
	} {
		t.Run(c.status, func(t *testing.T) {
			d := newDesk(t)
			d.send(orders, said("m"))
			tokens := d.receive(orders, broker.ReceiveOptions{})
			body := fields("disposition-status", message.String(c.status), "lock-tokens", uuids(tokens...), "properties-to-modify", set,
				"deadletter-reason", message.String("why"), "deadletter-description", message.String("so"))
			d.ask(orders, "update-disposition", body).want(t, 200, message.Map{})
			found := 0
			for _, a := range []broker.Address{orders, {Name: "orders", Sub: broker.DeadLetter}} {
				msgs, err := d.engine.Peek(a, broker.PeekOptions{Max: 10})
				if err != nil {
					t.Fatal(err)
				}
				found += len(msgs)
				for _, m := range msgs {
					n, _ := m.Properties.Get("n")
					_, null := m.Properties.Get("gone")
					if a != c.in || m.Broker.State != c.state || m.Broker.DeliveryCount != c.count || (n == message.Long(7)) != c.set || null {
						t.Errorf("in %s it is %v, delivered %d times, with %v", path(a), m.Broker.State, m.Broker.DeliveryCount, m.Properties)
					}
					if dead := a.Sub == broker.DeadLetter; dead && (m.DeadLetterReason() != "why" || m.DeadLetterDescription() != "so") {
						t.Errorf("it died of %q, %q", m.DeadLetterReason(), m.DeadLetterDescription())
					}
				}
			}
			if want := min(1, len(c.in.Name)); found != want {
				t.Errorf("it is there %d times, want %d", found, want)
			}
			if c.status != "unlocked" { // to give back what is free already is no failure
				d.ask(orders, "update-disposition", body).wantRefusal(t, 410, "com.microsoft:message-lock-lost")
			}
		})
	}
}

func TestManagementUpdateDispositionRefusals(t *testing.T) {
	d := newDesk(t)
	d.send(orders, said("m"))
	tokens := uuids(d.receive(orders, broker.ReceiveOptions{})...)
	for _, bad := range []message.Map{
		fields("lock-tokens", tokens),
		fields("lock-tokens", tokens, "disposition-status", message.String("eaten")),
		fields("lock-tokens", tokens, "disposition-status", message.Int(1)),
		fields("disposition-status", message.String("completed")),
		fields("lock-tokens", tokens, "disposition-status", message.String("abandoned"), "properties-to-modify", message.String("x")),
		fields("lock-tokens", tokens, "disposition-status", message.String("suspended"), "deadletter-reason", message.Int(1)),
		fields("lock-tokens", tokens, "disposition-status", message.String("suspended"), "deadletter-description", message.List{}),
	} {
		d.ask(orders, "update-disposition", bad).wantRefusal(t, 400, "com.microsoft:argument-error")
	}
	// Nothing of that has touched the message. Symbols are as good as strings.
	d.ask(orders, "update-disposition", message.Map{
		{Key: message.Symbol("lock-tokens"), Value: tokens},
		{Key: message.Symbol("disposition-status"), Value: message.Symbol("completed")},
	}).want(t, 200, message.Map{})
}

// scheduling is an entry of schedule-message.
func scheduling(t testing.TB, m *message.Message, at time.Time) message.Map {
	t.Helper()
	m.Annotations = append(m.Annotations, message.Pair{Key: annScheduled, Value: message.TimestampOf(at)})
	b, err := amqp.AppendMessage(nil, m)
	if err != nil {
		t.Fatal(err)
	}
	return fields("message-id", m.ID, "message", message.Binary(b))
}

func TestManagementSchedule(t *testing.T) {
	d := newDesk(t)
	later := d.now.Add(time.Hour)
	list := message.List{scheduling(t, said("a"), later), scheduling(t, said("b"), later), scheduling(t, said("past"), d.now.Add(-time.Hour))}
	d.ask(orders, "schedule-message", fields("messages", list)).want(t, 200, fields("sequence-numbers", longs(1, 2, 3)))
	info, err := d.engine.Entity("orders")
	if err != nil || info.Scheduled != 2 || info.Active != 1 {
		t.Errorf("%d are scheduled and %d active: %v", info.Scheduled, info.Active, err)
	}
	cancel := func(v message.Value) answer {
		return d.ask(orders, "cancel-scheduled-message", fields("sequence-numbers", v))
	}
	cancel(longs(1, 3)).wantRefusal(t, 404, "com.microsoft:message-not-found") // all or none
	cancel(longs(1)).want(t, 200, message.Map{})
	cancel(longs(1)).wantRefusal(t, 404, "com.microsoft:message-not-found")
	cancel(message.List{message.Ushort(2)}).want(t, 200, message.Map{})
	cancel(message.Null{}).wantRefusal(t, 400, "com.microsoft:argument-error")

	maps := message.Array{Elem: message.KindMap, Items: []message.Value{scheduling(t, said("c"), later)}}
	d.ask(broker.Address{Name: "news"}, "schedule-message", fields("messages", maps)).get(t, "sequence-numbers")
}

func TestManagementScheduleRefusals(t *testing.T) {
	d := newDesk(t)
	d.create("off", broker.Queue, func(p *broker.Properties) { p.Status = broker.SendDisabled })
	later := d.now.Add(time.Hour)
	one := message.List{scheduling(t, said("a"), later)}
	large := said("large")
	large.Body = message.DataBody(make([]byte, 256<<10))
	for _, c := range []struct {
		a         broker.Address
		messages  message.Value
		status    int
		condition string
	}{
		{orders, message.Null{}, 400, "com.microsoft:argument-error"},
		{orders, message.List{}, 400, "com.microsoft:argument-error"},
		{orders, message.List{message.Int(1)}, 400, "com.microsoft:argument-error"},
		{orders, message.List{fields("message", message.String("x"))}, 400, "com.microsoft:argument-error"},
		{orders, message.List{fields("message", message.Binary("\x00\x53\x75\xa0\x09x"))}, 400, "amqp:decode-error"},
		{orders, message.List{scheduling(t, said("ok"), later), scheduling(t, large, later)}, 413, "amqp:link:message-size-exceeded"},
		{visits, one, 400, "amqp:not-allowed"},
		{letters, one, 400, "amqp:not-allowed"},
		{broker.Address{Name: "orders", Sub: broker.DeadLetter}, one, 400, "amqp:not-allowed"},
		{broker.Address{Name: "off"}, one, 403, "com.microsoft:entity-disabled"},
		{broker.Address{Name: "nowhere"}, one, 404, "amqp:not-found"},
	} {
		d.ask(c.a, "schedule-message", fields("messages", c.messages)).wantRefusal(t, c.status, c.condition)
	}
	if info, err := d.engine.Entity("orders"); err != nil || info.Scheduled != 0 {
		t.Errorf("%d messages are scheduled: %v", info.Scheduled, err)
	}
}

func TestManagementTransaction(t *testing.T) {
	for _, commit := range []bool{true, false} {
		d := newDesk(t)
		d.send(orders, said("m"))
		tokens := uuids(d.receive(orders, broker.ReceiveOptions{})...)
		tx := d.engine.Begin()
		complete := fields("lock-tokens", tokens, "disposition-status", message.String("completed"))
		d.askIn(tx, orders, "update-disposition", complete).want(t, 200, message.Map{})
		d.askIn(tx, orders, "schedule-message", fields("messages", message.List{scheduling(t, said("s"), d.now.Add(time.Hour))})).
			want(t, 200, fields("sequence-numbers", longs(0))) // numbers come with the commit
		long := said("long")
		long.ID = message.String(make([]byte, 200))
		d.askIn(tx, orders, "schedule-message", fields("messages", message.List{
			scheduling(t, said("good"), d.now), scheduling(t, long, d.now),
		})).wantRefusal(t, 400, "com.microsoft:argument-error") // the reason, and not that the first was not sent because of it
		info, err := d.engine.Entity("orders")
		if err != nil || info.Active != 1 || info.Scheduled != 0 {
			t.Fatalf("before the commit %d are active and %d scheduled: %v", info.Active, info.Scheduled, err)
		}
		if commit {
			err = tx.Commit()
		} else {
			err = tx.Rollback()
		}
		if err != nil {
			t.Fatal(err)
		}
		info, err = d.engine.Entity("orders")
		if err != nil || (info.Active == 0) != commit || (info.Scheduled == 1) != commit {
			t.Errorf("commit %v: %d are active and %d scheduled: %v", commit, info.Active, info.Scheduled, err)
		}
		d.askIn(tx, orders, "update-disposition", complete).wantRefusal(t, 404, "amqp:transaction:unknown-id")
	}
}

func TestManagementBatchDelete(t *testing.T) {
	d := newDesk(t)
	for _, m := range []string{"1", "2", "3", "4", "5", "6", "7"} {
		d.send(orders, said(m))
	}
	d.now = d.now.Add(time.Minute)
	d.send(orders, said("new"))
	tokens := d.receive(orders, broker.ReceiveOptions{})
	if err := d.engine.Release(orders, tokens[1:]...); err != nil { // the first stays locked
		t.Fatal(err)
	}
	ask := func(pairs ...any) answer { return d.ask(orders, "batch-delete-messages", fields(pairs...)) }
	count := func(n int32) message.Map { return fields("message-count", message.Int(n)) }
	before := message.TimestampOf(d.now)

	ask("message-count", message.Int(5), "enqueued-time-utc", message.TimestampOf(start)).want(t, 204, message.Map{})
	ask("message-count", message.Int(5), "enqueued-time-utc", message.TimestampOf(time.Time{})).want(t, 204, message.Map{})
	ask("message-count", message.Int(5), "enqueued-time-utc", before).want(t, 200, count(3)) // as many as the server takes
	ask("message-count", message.Long(1)).want(t, 200, count(1))
	ask("message-count", message.Int(3)).want(t, 200, count(2)) // without a time: what was there before the request
	ask("message-count", message.Int(3), "enqueued-time-utc", before).want(t, 204, message.Map{})
	ask("message-count", message.Int(3), "enqueued-time-utc", message.Timestamp(253402300800000)).want(t, 200, count(1))
	for _, bad := range [][]any{
		{},
		{"message-count", message.Int(0)},
		{"message-count", message.Int(1), "session-id", message.Int(4)},
		{"message-count", message.Int(1), "enqueued-time-utc", message.String("now")},
	} {
		ask(bad...).wantRefusal(t, 400, "com.microsoft:argument-error")
	}
	if info, err := d.engine.Entity("orders"); err != nil || info.Active != 1 {
		t.Errorf("%d are left: %v", info.Active, err)
	}
	d.send(visits, saidIn("a", "a"), saidIn("b", "b"))
	d.now = d.now.Add(time.Minute)
	d.ask(visits, "batch-delete-messages", fields("message-count", message.Int(3), "session-id", message.String("b"))).want(t, 200, count(1))
	msgs, err := d.engine.Peek(visits, broker.PeekOptions{Max: 9})
	if err != nil || bodies(msgs) != "a" {
		t.Errorf("%s is left: %v", bodies(msgs), err)
	}
}

// TestManagementMissing checks that an entity that is not there is told as the SDKs know it,
// by every operation that looks at it.
func TestManagementMissing(t *testing.T) {
	d := newDesk(t)
	nowhere := broker.Address{Name: "nowhere"}
	body := fields("message-count", message.Int(1), "lock-tokens", uuids(message.UUID{1}), "sequence-numbers", longs(1), "rule-name", message.String("r"),
		"rule-description", message.Map{}, "messages", message.List{scheduling(t, said("m"), d.now)}, "disposition-status", message.String("completed"))
	for _, operation := range []string{
		"peek-message", "renew-lock", "get-message-sessions", "receive-by-sequence-number", "update-disposition", "schedule-message",
		"cancel-scheduled-message", "batch-delete-messages", "add-rule", "remove-rule", "enumerate-rules",
	} {
		d.ask(nowhere, operation, body).wantRefusal(t, 404, "amqp:not-found")
	}
	if err := d.engine.Change("orders", func(p *broker.Properties) error { p.Status = broker.Disabled; return nil }); err != nil {
		t.Fatal(err)
	}
	for _, operation := range []string{"peek-message", "receive-by-sequence-number", "schedule-message", "batch-delete-messages"} {
		d.ask(orders, operation, body).wantRefusal(t, 403, "com.microsoft:entity-disabled")
	}
}

func TestFirstError(t *testing.T) {
	cause, other := errors.New("cause"), broker.ErrNotSent
	for _, c := range []struct {
		errs []error
		err  error
		want error
	}{
		{},
		{errs: []error{nil, nil}},
		{err: cause, want: cause},
		{errs: []error{other, cause, other}, want: cause},
		{errs: []error{nil, other}, want: other},
	} {
		if got := firstError(slices.Clone(c.errs), c.err); !errors.Is(got, c.want) {
			t.Errorf("of %v and %v the first is %v", c.errs, c.err, got)
		}
	}
}
