package broker

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"dlq/backends/message"
)

// newFIFO opens an engine with the FIFO queue "jobs.fifo" as the bench's queue, which takes
// the hash of a body for a missing deduplication id.
func newFIFO(t testing.TB, change func(*Properties)) *bench {
	t.Helper()
	b := newBench(t)
	b.queue.Name = "jobs.fifo"
	b.createFIFO(b.queue.Name, change)
	return b
}

// createFIFO makes a FIFO queue. change may be nil.
func (b *bench) createFIFO(name string, change func(*Properties)) {
	b.Helper()
	b.create(name, func(p *Properties) {
		p.setFIFO(true)
		p.ContentDeduplication = true
		if change != nil {
			change(p)
		}
	})
}

// group sends messages of one group.
func (b *bench) group(id string, bodies ...string) {
	b.Helper()
	for _, body := range bodies {
		m := &message.Message{ID: message.String("id of " + body), SessionID: &id, Body: message.DataBody([]byte(body))}
		b.ok(refusals(b.e.Send(b.queue, []*message.Message{m})))
	}
}

// One receive gives several messages of a group in their order, and then goes on with the next
// group.
// Source: sqs-wire.md 4.4, [LS test_fifo_receive_message_group_id_ordering].
func TestGroupsInOneReceive(t *testing.T) {
	b := newFIFO(t, nil)
	b.group("g1", "g1-m1")
	b.group("g2", "g2-m1")
	b.group("g1", "g1-m2", "g1-m3")
	b.wantBodies(b.queue, "g1-m1", "g1-m2", "g1-m3", "g2-m1")
}

// YMQ gives one message of a group in a call.
// Source: sqs-wire.md 5.2.
func TestGroupHeadOnly(t *testing.T) {
	b := newFIFO(t, func(p *Properties) { p.GroupHeadOnly = true })
	b.group("g1", "g1-m1", "g1-m2")
	b.group("g2", "g2-m1", "g2-m2")
	msgs := b.wantBodies(b.queue, "g1-m1", "g2-m1")
	b.wantBodies(b.queue)
	b.want(b.remove(msgs[0]), nil)
	b.wantBodies(b.queue, "g1-m2")
}

// While a message of a group is in flight, nothing behind it is given, newcomers included;
// other groups are.
// Source: sqs-wire.md 4.4.
func TestGroupIsLocked(t *testing.T) {
	b := newFIFO(t, nil)
	b.group("g1", "g1-m1", "g1-m2")
	b.group("g2", "g2-m1")
	b.take(b.queue, 1)
	b.group("g1", "g1-m3")
	b.wantBodies(b.queue, "g2-m1")
	b.wantBodies(b.queue)
}

// A message whose timeout ended is at the front of its group, with all behind it, every time.
// Source: sqs-wire.md 4.1, [LS test_fifo_messages_in_order_after_timeout].
func TestGroupKeepsItsOrderAfterATimeout(t *testing.T) {
	b := newFIFO(t, nil)
	b.group("g", "a", "b", "c")
	for range 3 {
		b.wantBodies(b.queue, "a", "b", "c")
		b.pass(30 * time.Second)
	}
}

// Deleting all that was received of a group unlocks it at once; deleting some keeps it locked.
// Source: sqs-wire.md 4.4, [LS test_fifo_message_group_visibility_after_delete, …_partial_delete].
func TestDeleteUnlocksAGroup(t *testing.T) {
	b := newFIFO(t, nil)
	b.group("g", "a", "b", "c", "d")
	msgs := b.take(b.queue, 2)
	b.want(b.remove(msgs[0]), nil)
	b.wantBodies(b.queue)
	b.want(b.remove(msgs[1]), nil)
	b.wantBodies(b.queue, "c", "d")
}

// Of three messages in flight, one becomes visible: those before the ones that are still
// hidden are given, those after are not. That is so whether its timeout was ended or ran out.
// Source: sqs-wire.md 4.4, [LS], positions 0, 1 and 2 recorded;
// [LS test_fifo_message_group_visibility_after_terminate_visibility_timeout].
func TestPartOfAGroupIsVisible(t *testing.T) {
	for _, d := range []time.Duration{0, time.Second} {
		for position, want := range [][]string{{"a"}, nil, nil} {
			b := newFIFO(t, nil)
			b.group("g", "a", "b", "c", "d")
			msgs := b.take(b.queue, 3)
			b.want(b.visible(msgs[position], d), nil)
			b.pass(d)
			if got := bodies(b.take(b.queue, 10)); !slices.Equal(got, want) {
				t.Errorf("position %d, timeout %v: received %v, want %v", position, d, got, want)
			}
		}
	}
	b := newFIFO(t, nil)
	b.group("g", "a", "b", "c")
	msgs := b.take(b.queue, 3)
	b.want(b.visible(msgs[1], 0), nil)
	b.want(b.visible(msgs[0], 0), nil)
	b.wantBodies(b.queue, "a", "b") // both stand before what is hidden
}

// A group that becomes visible again stands behind the others.
// Source: sqs-wire.md 4.4, [LS test_fifo_receive_message_visibility_timeout_shared_in_group,
// test_fifo_message_group_visibility_after_change_message_visibility].
func TestUnlockedGroupGoesBehind(t *testing.T) {
	b := newFIFO(t, nil)
	b.group("g1", "g1-m1", "g1-m2", "g1-m3", "g1-m4")
	b.group("g2", "g2-m1")
	b.group("g3", "g3-m1")
	b.take(b.queue, 2)
	b.take(b.queue, 1)
	b.pass(30 * time.Second)
	b.wantBodies(b.queue, "g3-m1", "g1-m1", "g1-m2", "g1-m3", "g1-m4", "g2-m1")

	b = newFIFO(t, nil)
	b.group("g1", "g1-m1", "g1-m2")
	b.group("g2", "g2-m1")
	b.want(b.visible(b.take(b.queue, 2)[0], 0), nil)
	b.wantBodies(b.queue, "g2-m1", "g1-m1")
}

// A receive with VisibilityTimeout 0 leaves its groups open, and behind the others.
// Source: sqs-wire.md 4.4, [LS test_fifo_receive_message_with_zero_visibility_timeout]: g3, g1, g2.
func TestZeroVisibilityLeavesTheGroupOpen(t *testing.T) {
	b := newFIFO(t, nil)
	b.group("g1", "g1-m1")
	b.group("g2", "g2-m1", "g2-m2")
	b.group("g3", "g3-m1")
	b.group("g1", "g1-m2")
	got := bodies(b.takeWith(b.queue, ReceiveOptions{Max: 3, Lock: new(time.Duration)}))
	if want := []string{"g1-m1", "g1-m2", "g2-m1"}; !slices.Equal(got, want) {
		t.Errorf("received %v, want %v", got, want)
	}
	got = bodies(b.takeWith(b.queue, ReceiveOptions{Max: 10, Lock: new(time.Duration)}))
	if want := []string{"g3-m1", "g1-m1", "g1-m2", "g2-m1", "g2-m2"}; !slices.Equal(got, want) {
		t.Errorf("then received %v, want %v", got, want)
	}
}

// Every group gets its turn, however many there are and whatever is in flight, and one that is
// left open by a receive comes again after all others.
// Source: sqs-wire.md 4.4.
func TestManyGroupsTakeTurns(t *testing.T) {
	const groups = 30
	b := newFIFO(t, nil)
	name := func(i int) string { return fmt.Sprintf("g%02d", i) }
	var want []string
	for i := range groups {
		b.group(name(i), name(i)+"-1", name(i)+"-2")
		want = append(want, name(i)+"-1", name(i)+"-2")
	}
	for range 2 {
		var got []string
		for range groups * 2 / 10 {
			got = append(got, bodies(b.takeWith(b.queue, ReceiveOptions{Max: 10, Lock: new(time.Duration)}))...)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("received %v", got)
		}
	}
	for ten := range slices.Chunk(want, 10) {
		b.wantBodies(b.queue, ten...)
	}
	b.wantBodies(b.queue)
	b.group(name(groups), "last")
	b.wantBodies(b.queue, "last")
}

// Messages of a locked group that were not received themselves count as visible.
// Source: sqs-wire.md 2.5, [LS test_fifo_approximate_number_of_messages_not_visible].
func TestLockedGroupCountsAsVisible(t *testing.T) {
	b := newFIFO(t, nil)
	b.group("g1", "a", "b", "c")
	b.take(b.queue, 1)
	if i := b.info(b.queue.Name); i.Active != 3 || i.InFlight != 1 {
		t.Errorf("active %d, in flight %d; want 3 (2 visible) and 1", i.Active, i.InFlight)
	}
}

// The queue's delay holds for each message, and one that is delayed holds back those of its
// group behind it, though their own delay was shorter; others come.
// Source: sqs-wire.md 4.4; [LS test_fifo_queue_send_message_with_delay_on_queue_works].
func TestDelayHoldsBackTheGroup(t *testing.T) {
	b := newFIFO(t, func(p *Properties) { p.Delay = 10 * time.Second })
	b.group("g1", "g1-m1")
	b.pass(time.Second)
	if err := b.e.Change(b.queue.Name, func(p *Properties) error { p.Delay = 0; return nil }); err != nil {
		t.Fatal(err)
	}
	b.group("g1", "g1-m2")
	b.group("g2", "g2-m1")
	if i := b.info(b.queue.Name); i.Delayed != 1 || i.Active != 2 {
		t.Errorf("delayed %d, active %d; want 1, 2", i.Delayed, i.Active)
	}
	b.wantBodies(b.queue, "g2-m1")
	b.pass(9*time.Second - time.Millisecond)
	b.wantBodies(b.queue)
	b.pass(time.Millisecond)
	b.wantBodies(b.queue, "g1-m1", "g1-m2")
}

// Groups, what is locked and what is delayed in them are the same after a restart.
func TestGroupsSurviveARestart(t *testing.T) {
	b := newFIFO(t, nil)
	b.group("g1", "g1-m1", "g1-m2")
	b.group("g2", "g2-m1")
	msgs := b.take(b.queue, 1)
	if err := b.e.Close(); err != nil {
		t.Fatal(err)
	}
	b.open()
	b.wantBodies(b.queue, "g2-m1")
	b.want(b.remove(msgs[0]), nil)
	b.wantBodies(b.queue, "g1-m2")
}

// A message group id orders and locks nothing on a standard queue; it is kept and returned.
// Source: sqs-wire.md 2.7 and 4.4, [LS] fair queues.
func TestGroupOnAStandardQueue(t *testing.T) {
	b := newSQS(t, nil)
	b.group("g", "a", "b")
	b.take(b.queue, 1)
	if m := b.receive(b.queue); m == nil || message.Str(m.SessionID) != "g" {
		t.Errorf("received %+v, want the second of the group", m)
	}
}

// A message of a FIFO queue needs a group, and a deduplication id unless the queue makes one.
// Source: sqs-wire.md 2.7, [LS].
func TestFIFONeedsIDs(t *testing.T) {
	b := newFIFO(t, func(p *Properties) { p.ContentDeduplication = false })
	id := message.Attribute{Name: DeduplicationIDAttribute, Value: message.String("x")}
	for name, m := range map[string]*message.Message{
		"no group":            {System: []message.Attribute{id}},
		"no deduplication id": {SessionID: new("g"), ID: message.String("a message id is none")},
	} {
		if errs, err := refusals(b.e.Send(b.queue, []*message.Message{m})); err != nil || errs[0] == nil {
			t.Errorf("%s was accepted: %v", name, err)
		} else {
			b.want(errs[0], ErrInvalid)
		}
	}
	b.ok(refusals(b.e.Send(b.queue, []*message.Message{{SessionID: new("g"), System: []message.Attribute{id}}})))
}

// What a receive passes over holds back what lies behind it in its group, and nothing else.
func TestReceiveExcept(t *testing.T) {
	b := newBench(t)
	b.createFIFO("orders.fifo", nil)
	b.queue = at("orders.fifo")
	b.group("x", "x1", "x2")
	b.group("y", "y1", "y2")
	b.make("plain", Queue, nil)
	for _, text := range []string{"a", "b", "c"} {
		b.post("plain", says(text))
	}
	except := func(seqs ...int64) func(int64) bool {
		return func(seq int64) bool { return slices.Contains(seqs, seq) }
	}
	for _, c := range []struct {
		queue  string
		except func(int64) bool
		want   []string
	}{
		{"orders.fifo", except(1), []string{"y1", "y2"}},
		{"orders.fifo", except(2, 3), []string{"x1"}},
		{"orders.fifo", except(1, 3), []string{}},
		{"plain", except(1, 3), []string{"b"}},
	} {
		got := b.takeWith(at(c.queue), ReceiveOptions{Max: 10, Except: c.except})
		if texts := bodies(got); !slices.Equal(texts, c.want) {
			t.Errorf("received %v of %s, want %v", texts, c.queue, c.want)
		}
		for _, m := range got {
			b.ok(nil, b.e.Release(at(c.queue), m.Broker.LockToken))
		}
	}
}
