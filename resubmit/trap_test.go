package resubmit

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"dlq/backends"
	"dlq/backends/message"
)

// entity makes an entity. The settings are written "Name=value".
func (f *fixture) entity(name string, kind backends.EntityKind, settings ...string) backends.EntityID {
	f.Helper()
	e := backends.NewEntity{ID: backends.EntityID{Name: name}, Kind: kind}
	for _, s := range settings {
		name, value, _ := strings.Cut(s, "=")
		e.Settings = append(e.Settings, backends.Setting{Name: name, Value: value})
	}
	d, err := f.local.CreateEntity(f.ctx, e)
	if err != nil {
		f.Fatal(err)
	}
	return d.ID
}

// subscription makes one with a single rule.
func (f *fixture) subscription(name, filter string) backends.EntityID {
	f.Helper()
	rule := backends.Rule{Name: "r", Filter: filter}
	d, err := f.local.CreateEntity(f.ctx, backends.NewEntity{ID: backends.EntityID{Name: name}, Kind: backends.Subscription, Rules: []backends.Rule{rule}})
	if err != nil {
		f.Fatal(err)
	}
	return d.ID
}

func (f *fixture) send(to backends.EntityID, msgs ...*message.Message) {
	f.Helper()
	if err := f.local.Send(f.ctx, to, msgs); err != nil {
		f.Fatal(err)
	}
}

// kill dead-letters everything in an entity.
func (f *fixture) kill(id backends.EntityID) {
	f.Helper()
	var seqs []int64
	for _, m := range f.peek(id) {
		seqs = append(seqs, m.Broker.SequenceNumber)
	}
	if err := f.local.SettleDirect(f.ctx, id, f.cause, seqs...); err != nil {
		f.Fatal(err)
	}
}

// letters are messages with the bodies "0", "1", …, an id each, and properties.
func letters(n int, properties ...message.Attribute) []*message.Message {
	out := make([]*message.Message, n)
	for i := range out {
		out[i] = &message.Message{ID: message.String(fmt.Sprintf("id-%d", i)), Body: message.DataBody(fmt.Append(nil, i)), Properties: slices.Clone(properties)}
	}
	return out
}

// finding returns the one with that code; there must be one.
func finding(t *testing.T, in []Finding, code string) Finding {
	t.Helper()
	for _, f := range in {
		if f.Code == code {
			return f
		}
	}
	t.Fatalf("there is no %q among %q", code, codes(in))
	return Finding{}
}

// naive makes a plan run that was refused.
func naive(p *Plan) *Plan {
	p.Vetoes = nil
	return p
}

// TestDuplicatesAreNotLost: an entity that detects duplicates accepts an id which it has seen in its
// window and drops the message, so that a resubmit which keeps ids would lose everything.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/duplicate-detection
func TestDuplicatesAreNotLost(t *testing.T) {
	const n = 1000
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			begin := func(t *testing.T) (*fixture, backends.EntityID) {
				f := way.fixture(t)
				id := f.entity("careful", backends.Queue, "RequiresDuplicateDetection=true", "DuplicateDetectionHistoryTimeWindow=PT10M")
				f.send(id, letters(n)...)
				f.kill(id)
				f.clock.Sleep(f.ctx, 9*time.Minute)
				return f, id
			}
			t.Run("auto", func(t *testing.T) {
				f, id := begin(t)
				p := f.plan(Spec{From: id.DeadLetters(), Selection: Selection{All: true}})
				if text := finding(t, p.Warnings, FindNewIDs).Text; !strings.Contains(text, "careful detects duplicates: messages get new ids, and keep the old ones in "+OriginalIDProperty) {
					t.Errorf("the plan says %q", text)
				}
				r, err := Run(f.ctx, f.env, p, nil)
				if err != nil {
					t.Fatal(err)
				}
				f.want(r, "moved 1000, left 0, lost 0")
				ids := map[string]bool{}
				for _, m := range f.peek(id) {
					old, _ := m.Properties.Get(OriginalIDProperty)
					if want := "id-" + string(m.Body.Bytes()); old != message.Value(message.String(want)) {
						t.Fatalf("the old id %s is kept as %v", want, old)
					}
					ids[message.FormatValue(m.ID)] = true
				}
				if len(ids) != n {
					t.Errorf("%d of %d arrived", len(ids), n)
				}
			})
			t.Run("keep", func(t *testing.T) {
				f, id := begin(t)
				p := f.plan(Spec{From: id.DeadLetters(), Selection: Selection{All: true}, Edits: Edits{MessageID: IDKeep}})
				if veto := finding(t, p.Vetoes, FindDuplicate); veto.Count != n || !strings.Contains(veto.Text, "careful remembers ids for 10m0s") {
					t.Errorf("the veto is %+v", veto)
				}
				if _, err := Run(f.ctx, f.env, p, nil); !errors.Is(err, ErrRefused) {
					t.Errorf("run all the same: %v", err)
				}
				f.holds(id.DeadLetters(), n)
				f.holds(id, 0)

				f.clock.Sleep(f.ctx, 2*time.Minute)
				p = f.plan(Spec{From: id.DeadLetters(), Selection: Selection{All: true}, Edits: Edits{MessageID: IDKeep}})
				r, err := Run(f.ctx, f.env, p, nil)
				if err != nil {
					t.Fatalf("after the window: %v", err)
				}
				f.want(r, "moved 1000, left 0, lost 0")
				f.holds(id, n)
			})
			t.Run("naive", func(t *testing.T) {
				f, id := begin(t)
				p := naive(f.plan(Spec{From: id.DeadLetters(), Selection: Selection{All: true}, Edits: Edits{MessageID: IDKeep}}))
				r, err := Run(f.ctx, f.env, p, nil)
				if err != nil {
					t.Fatal(err)
				}
				if way.name != "atomic move" { // the core interface cannot tell: this is the loss
					f.want(r, "moved 1000, left 0, lost 0")
					f.holds(id.DeadLetters(), 0)
					f.holds(id, 0)
					return
				}
				if r.Done != 0 || len(r.Skipped) != n || !strings.Contains(r.Skipped[0].Reason, "move to careful: duplicate: the destination has seen this id") {
					t.Errorf("%d were moved, %d skipped, the first for %q", r.Done, len(r.Skipped), r.Skipped[0].Reason)
				}
				f.holds(id.DeadLetters(), n)
			})
		})
	}
}

// TestTwiceTheSameID: two dead letters with one id are two messages.
func TestTwiceTheSameID(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			f := way.fixture(t)
			id := f.entity("careful", backends.Queue, "RequiresDuplicateDetection=true", "DuplicateDetectionHistoryTimeWindow=PT1M")
			f.buryAll(letters(1)[0], letters(1)[0], letters(2)[1], &message.Message{}, &message.Message{})
			f.clock.Sleep(f.ctx, time.Hour)
			keep := f.plan(Spec{To: &id, Edits: Edits{MessageID: IDKeep}})
			if veto := finding(t, keep.Vetoes, FindDuplicate); veto.Count != 1 || veto.Samples[0].Seq != 2 {
				t.Errorf("the veto is %+v", veto)
			}
			f.want(f.run(Spec{To: &id}), "moved 5, left 0, lost 0")
			f.holds(id, 5)
		})
	}
}

// TestDuplicatesBehindAForward: the destination detects none, but passes on to one that does.
func TestDuplicatesBehindAForward(t *testing.T) {
	f := newFixture(t)
	careful := f.entity("careful", backends.Queue, "RequiresDuplicateDetection=true")
	inbox := f.entity("inbox", backends.Queue, "ForwardTo=careful")
	f.send(careful, letters(3)[2])
	f.buryAll(letters(5)...)
	keep := f.plan(Spec{To: &inbox, Edits: Edits{MessageID: IDKeep}})
	if veto := finding(t, keep.Vetoes, FindDuplicate); veto.Count != 1 {
		t.Errorf("the veto is %+v", veto)
	}
	p := f.plan(Spec{To: &inbox})
	if text := finding(t, p.Warnings, FindNewIDs).Text; !strings.HasPrefix(text, "what is behind inbox detects duplicates") {
		t.Errorf("the plan says %q", text)
	}
	if text := finding(t, p.Warnings, FindForwarded).Text; text != "inbox passes on what it gets: 1 queue receives each: careful" {
		t.Errorf("the plan says %q", text)
	}
	f.want(f.run(Spec{To: &inbox}), "moved 5, left 0, lost 0")
	f.holds(careful, 6)
}

// TestDeduplicationIDs: a FIFO queue goes by an id of its own, which is what must be new.
func TestDeduplicationIDs(t *testing.T) {
	f := newFixture(t)
	f.entity("dead.fifo", backends.Queue, "Dialect=sqs", "FifoQueue=true", "ContentBasedDeduplication=true")
	work := f.entity("work.fifo", backends.Queue, "Dialect=sqs", "FifoQueue=true", "ContentBasedDeduplication=true", "RedrivePolicy=dead.fifo:1")
	all := Spec{From: work.DeadLetters(), Selection: Selection{All: true}}
	f.send(work, &message.Message{ID: message.String("id-0"), SessionID: ptr("g"), Body: message.DataBody([]byte("0"))})
	f.redrive(work)
	// In the dead-letter queue its deduplication id has become its message id, which is new to
	// the queue once.
	all.Edits.MessageID = IDKeep
	f.want(f.run(all), "moved 1, left 0, lost 0")
	f.redrive(work)
	if veto := finding(t, f.plan(all).Vetoes, FindDuplicate); veto.Count != 1 {
		t.Errorf("the veto is %+v", veto)
	}
	all.Edits.MessageID = IDAuto
	if text := finding(t, f.plan(all).Warnings, FindNewIDs).Text; text != "work.fifo detects duplicates: messages get a new MessageDeduplicationId" {
		t.Errorf("the plan says %q", text)
	}
	for range 2 {
		f.want(f.run(all), "moved 1, left 0, lost 0")
		m := f.peek(work)[0]
		if m.ID != message.Value(message.String("id-0")) || message.Str(m.SessionID) != "g" || len(m.Properties) != 0 {
			t.Errorf("it came back as %v of group %v with %v", m.ID, message.Str(m.SessionID), m.Properties)
		}
		f.redrive(work) // it dies again within the five minutes
	}
}

// redrive receives everything in a queue whose redrive policy allows it once, and once more.
func (f *fixture) redrive(id backends.EntityID) {
	f.Helper()
	for range 2 {
		l, err := f.local.Lease(f.ctx, id, backends.LeaseOptions{})
		if err != nil {
			f.Fatal(err)
		}
		for {
			if _, err = l.Next(f.ctx); err != nil {
				break
			}
		}
		if !errors.Is(err, io.EOF) {
			f.Fatal(err)
		}
		if err := l.Release(f.ctx); err != nil {
			f.Fatal(err)
		}
	}
}

// TestTopicTrap: a topic accepts what no rule lets through, and it is gone; else everybody
// whose rules let it through gets a copy.
func TestTopicTrap(t *testing.T) {
	for _, way := range []way{ways[0], {"send, then complete", func(t *testing.T) *fixture {
		f := newFixture(t)
		f.env.Backend = routed{f.local, f.local, f.local}
		return f
	}}} {
		t.Run(way.name, func(t *testing.T) {
			f := way.fixture(t)
			topic := f.entity("billing", backends.Topic)
			var subs []backends.EntityID
			for _, name := range []string{"a", "b", "c"} {
				subs = append(subs, f.subscription("billing/"+name, "tenant = 'acme'"))
			}
			acme, other := message.Attribute{Name: "tenant", Value: message.String("acme")}, message.Attribute{Name: "tenant", Value: message.String("other")}
			f.buryAll(slices.Concat(letters(7, acme), letters(3, other))...)

			p := f.plan(Spec{To: &topic})
			if veto := finding(t, p.Vetoes, FindUnrouted); veto.Count != 3 || !strings.HasPrefix(veto.Text, "no rule of billing lets these through") {
				t.Errorf("the veto is %+v", veto)
			}
			if _, err := Run(f.ctx, f.env, p, nil); !errors.Is(err, ErrRefused) {
				t.Errorf("run all the same: %v", err)
			}
			f.holds(dead, 10)

			selected := Selection{Where: "tenant = 'acme'"}
			p = f.plan(Spec{To: &topic, Selection: selected})
			want := "billing is a topic: 3 subscriptions receive each: billing/Subscriptions/a, billing/Subscriptions/b, billing/Subscriptions/c"
			if text := finding(t, p.Warnings, FindTopic).Text; text != want {
				t.Errorf("the plan says %q, want %q", text, want)
			}
			f.want(f.run(Spec{To: &topic, Selection: selected}), "moved 7, left 0, lost 0")
			for _, id := range subs {
				f.holds(id, 7)
			}
			f.holds(dead, 3)

			p = f.plan(Spec{To: &topic, AllowUnrouted: true})
			if w := finding(t, p.Warnings, FindUnrouted); w.Count != 3 || p.Destinations[0].Unrouted != 3 {
				t.Errorf("the warning is %+v, the destination %+v", w, p.Destinations[0])
			}
			r, err := Run(f.ctx, f.env, p, nil)
			if err != nil {
				t.Fatal(err)
			}
			f.want(r, "moved 3 (3 of them to nobody, since no rule lets them through), left 0, lost 0")
			f.holds(dead, 0)
			f.holds(subs[0], 7)
		})
	}
}

// routed is a backend that can tell who would get a message, and peek, but cannot move.
type routed struct {
	backends.Backend
	backends.Router
	backends.Peeker
}

// TestUnroutedMoveIsRefused: rules may change after the plan.
func TestUnroutedMoveIsRefused(t *testing.T) {
	f := newFixture(t)
	topic := f.entity("billing", backends.Topic)
	sub := f.entity("billing/all", backends.Subscription)
	f.bury(3)
	p := f.plan(Spec{To: &topic})
	if err := f.local.RemoveRule(f.ctx, sub, "$Default"); err != nil {
		t.Fatal(err)
	}
	r, err := Run(f.ctx, f.env, p, nil)
	if err != nil || len(r.Skipped) != 3 || !strings.Contains(r.Skipped[0].Reason, "move to billing: unrouted") {
		t.Errorf("%+v, %v", r, err)
	}
	f.holds(dead, 3)
}

// TestSubscriptionGoesThroughItsTopic: nothing can be sent to a subscription alone, so the plan
// says who else gets it, and whether the subscription itself does.
func TestSubscriptionGoesThroughItsTopic(t *testing.T) {
	f := newFixture(t)
	topic := f.entity("billing", backends.Topic)
	f.entity("billing/all", backends.Subscription)
	sub := f.subscription("billing/invoices", "total > 5")
	f.send(topic, letters(4, message.Attribute{Name: "total", Value: message.Int(7)})...)
	f.kill(sub)
	p := f.plan(Spec{From: sub.DeadLetters()})
	want := "billing is a topic: 2 subscriptions receive each: billing/Subscriptions/all, billing/Subscriptions/invoices; those that did not fail get it a second time"
	if text := finding(t, p.Warnings, FindTopic).Text; text != want {
		t.Errorf("the plan says %q, want %q", text, want)
	}
	p = f.plan(Spec{From: sub.DeadLetters(), Edits: Edits{Unset: []string{"total"}}})
	if w := finding(t, p.Warnings, FindNotBack); w.Count != 4 || !strings.Contains(w.Text, "no rule of billing/Subscriptions/invoices lets these through") {
		t.Errorf("the warning is %+v", w)
	}
}

// TestCopiesDiffer: where not all get the same, the copies are counted.
func TestCopiesDiffer(t *testing.T) {
	f := newFixture(t)
	topic := f.entity("billing", backends.Topic)
	f.entity("billing/all", backends.Subscription)
	f.subscription("billing/low", "n < 2")
	f.bury(5)
	p := f.plan(Spec{To: &topic})
	if text, want := finding(t, p.Warnings, FindTopic).Text, "billing is a topic: 7 copies of 5 messages: billing/Subscriptions/all 5, billing/Subscriptions/low 2"; text != want {
		t.Errorf("the plan says %q, want %q", text, want)
	}
}

// TestSessionsAreNeeded: what has no session id is named before anything is sent, and what has one
// keeps it.
func TestSessionsAreNeeded(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			f := way.fixture(t)
			to := f.entity("chat", backends.Queue, "RequiresSession=true")
			msgs := letters(4)
			msgs[1].SessionID, msgs[3].SessionID = ptr("s1"), ptr("s3")
			f.buryAll(msgs...)
			p := f.plan(Spec{To: &to})
			w := finding(t, p.Warnings, FindSessionMissing)
			if w.Count != 2 || w.Samples[0].Seq != 1 || w.Samples[1].Seq != 3 {
				t.Errorf("the warning is %+v", w)
			}
			r, err := Run(f.ctx, f.env, p, nil)
			if err != nil || r.Done != 2 || len(r.Skipped) != 2 {
				t.Errorf("%+v, %v", r, err)
			}
			f.holds(dead, 2)
			var got []string
			for _, m := range f.peek(to) {
				got = append(got, message.Str(m.SessionID))
			}
			slices.Sort(got) // several are sent at once where moves are not atomic
			if !slices.Equal(got, []string{"s1", "s3"}) {
				t.Errorf("the sessions are %v", got)
			}
			p = f.plan(Spec{To: &to})
			if text := finding(t, p.Vetoes, FindNothingToSend).Text; !strings.HasSuffix(text, "it has no session id") {
				t.Errorf("the veto is %q", text)
			}
		})
	}
}

// TestDiesAgain: a resubmit after which the messages are dead letters again helps nobody.
func TestDiesAgain(t *testing.T) {
	f := newFixture(t)
	inbox := f.entity("inbox", backends.Queue)
	f.entity("gone", backends.Queue)
	if err := f.local.ChangeEntity(f.ctx, inbox, backends.Setting{Name: "ForwardTo", Value: "gone"}); err != nil {
		t.Fatal(err)
	}
	if err := f.local.DeleteEntity(f.ctx, backends.EntityID{Name: "gone"}); err != nil {
		t.Fatal(err)
	}
	f.send(inbox, letters(2)...)
	transfer := backends.EntityID{Name: "inbox", Sub: backends.TransferDeadLetterQueue}
	f.holds(transfer, 2)
	p := f.plan(Spec{From: transfer})
	if v := finding(t, p.Vetoes, FindDiesAgain); v.Count != 2 || !strings.Contains(v.Text, "at once, in inbox/$Transfer/$DeadLetterQueue; mend") {
		t.Errorf("the veto is %+v", v)
	}

	f.entity("gone", backends.Queue)
	f.want(f.run(Spec{From: transfer}), "moved 2, left 0, lost 0")
	f.holds(backends.EntityID{Name: "gone"}, 2)

	// Some die, some do not.
	topic := f.entity("news", backends.Topic)
	f.entity("news/all", backends.Subscription)
	f.entity("news/chat", backends.Subscription, "RequiresSession=true")
	f.bury(1)
	p = f.plan(Spec{To: &topic})
	if w := finding(t, p.Warnings, FindDiesAgain); w.Count != 1 || len(p.Vetoes) > 0 || !strings.HasSuffix(w.Text, "in news/Subscriptions/chat/$DeadLetterQueue") {
		t.Errorf("the warning is %+v, the vetoes %q", w, codes(p.Vetoes))
	}
}

// TestTransferDeadLetters: what works on dead letters works on those that could not be passed on.
func TestTransferDeadLetters(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			f := way.fixture(t)
			f.entity("archive", backends.Queue)
			inbox := f.entity("inbox", backends.Queue, "ForwardTo=archive")
			if err := f.local.ChangeEntity(f.ctx, backends.EntityID{Name: "archive"}, backends.Setting{Name: "Status", Value: "SendDisabled"}); err != nil {
				t.Fatal(err)
			}
			f.send(inbox, letters(4)...)
			transfer := backends.EntityID{Name: "inbox", Sub: backends.TransferDeadLetterQueue}
			f.holds(transfer, 4)
			f.want(f.run(Spec{Kind: Complete, From: transfer, Selection: Selection{Seqs: []int64{1}}}), "completed 1, left 0, lost 0")
			f.want(f.run(Spec{From: transfer, To: &orders, Selection: Selection{Seqs: []int64{2}}}), "moved 1, left 0, lost 0")
			if err := f.local.ChangeEntity(f.ctx, backends.EntityID{Name: "archive"}, backends.Setting{Name: "Status", Value: "Active"}); err != nil {
				t.Fatal(err)
			}
			f.want(f.run(Spec{From: transfer}), "moved 2, left 0, lost 0")
			f.holds(backends.EntityID{Name: "archive"}, 2)
			f.holds(transfer, 0)
		})
	}
}

// TestRedrivePolicies: where the dead-letter queue is a queue of its own, each message goes back to
// the queue whose policy has moved it there.
func TestRedrivePolicies(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			f := way.fixture(t)
			failed := f.entity("failed", backends.Queue, "Dialect=sqs")
			one := f.entity("one", backends.Queue, "Dialect=sqs", "RedrivePolicy=failed:1")
			f.send(one, letters(3)...)
			f.redrive(one)
			p := f.plan(Spec{From: one.DeadLetters()})
			if p.Spec.From != failed || len(p.Destinations) != 1 || p.Destinations[0].Entity != one {
				t.Errorf("the plan goes from %v to %+v, with %q", p.Spec.From, p.Destinations, codes(p.Warnings))
			}
			two := f.entity("two", backends.Queue, "Dialect=sqs", "RedrivePolicy=failed:1")
			f.send(two, letters(2)...)
			f.redrive(two)
			f.send(failed, &message.Message{Body: message.DataBody([]byte("stray"))})

			for _, from := range []backends.EntityID{one.DeadLetters(), failed.DeadLetters(), failed} {
				p := f.plan(Spec{From: from})
				if p.Spec.From != failed || p.Matched != 6 {
					t.Errorf("from %v the plan is about %d messages of %v", from, p.Matched, p.Spec.From)
				}
				if w := finding(t, p.Warnings, FindSkips); w.Count != 1 || !strings.Contains(w.Samples[0].Reason, "name the destination with --to") {
					t.Errorf("the warning is %+v", w)
				}
				if from == one.DeadLetters() {
					if text := finding(t, p.Warnings, FindShared).Text; text != "the dead letters of one lie in failed, together with those of two" {
						t.Errorf("the plan says %q", text)
					}
				}
			}
			r := f.run(Spec{From: one.DeadLetters()})
			if r.Done != 5 || len(r.Skipped) != 1 || r.From != failed {
				t.Errorf("%+v", r)
			}
			f.holds(one, 3)
			f.holds(two, 2)
			f.want(f.run(Spec{From: failed.DeadLetters(), To: &orders}), "moved 1, left 0, lost 0")
		})
	}
}

// TestSourceThatIsGone: a queue that was deleted is not made again behind anybody's back.
func TestSourceThatIsGone(t *testing.T) {
	f := newFixture(t)
	failed := f.entity("failures", backends.Queue)
	gone := f.entity("gone", backends.Queue, "ForwardDeadLetteredMessagesTo=failures")
	f.send(gone, letters(2)...)
	f.kill(gone)
	p := f.plan(Spec{From: failed})
	if len(p.Destinations) != 1 || p.Destinations[0].Entity != gone || len(p.Vetoes) > 0 {
		t.Fatalf("the plan goes to %+v, refused for %q", p.Destinations, codes(p.Vetoes))
	}
	if err := f.local.DeleteEntity(f.ctx, gone); err != nil {
		t.Fatal(err)
	}
	p = f.plan(Spec{From: failed})
	finding(t, p.Vetoes, FindDestinationMissing)
	f.want(f.run(Spec{From: failed, To: &orders}), "moved 2, left 0, lost 0")
}

// TestRestoreWhereDuplicatesAreDetected: what comes back is not dropped for its id, however often.
func TestRestoreWhereDuplicatesAreDetected(t *testing.T) {
	f := newFixture(t)
	id := f.entity("careful", backends.Queue, "RequiresDuplicateDetection=true")
	f.send(id, letters(3)...)
	f.kill(id)
	r := f.run(Spec{Kind: Complete, From: id.DeadLetters()})
	for n := 1; n <= 2; n++ {
		f.clock.Sleep(f.ctx, time.Second)
		back, err := Restore(f.ctx, f.env, r.Job, RestoreOptions{Again: n > 1}, nil)
		if err != nil {
			t.Fatal(err)
		}
		f.want(back, "restored 3, left 0, lost 0")
		f.holds(id.DeadLetters(), 3*n)
	}
	for _, m := range f.peek(id.DeadLetters()) {
		if old, _ := m.Properties.Get(OriginalIDProperty); old != message.Value(message.String("id-"+string(m.Body.Bytes()))) || m.DeadLetterReason() != f.cause.Reason {
			t.Errorf("%v came back with the old id %v and died of %q", m.ID, old, m.DeadLetterReason())
		}
	}
}

// TestRestoreIntoOtherPlaces: a queue that a redrive policy names is sent to, a subscription cannot be.
func TestRestoreIntoOtherPlaces(t *testing.T) {
	f := newFixture(t)
	failed := f.entity("failed", backends.Queue, "Dialect=sqs")
	one := f.entity("one", backends.Queue, "Dialect=sqs", "RedrivePolicy=failed:1")
	f.send(failed, letters(2)...)
	r := f.run(Spec{Kind: Complete, From: one.DeadLetters()})
	f.holds(failed, 0)
	back, err := Restore(f.ctx, f.env, r.Job, RestoreOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.want(back, "restored 2, left 0, lost 0")
	f.holds(failed, 2)

	topic := f.entity("news", backends.Topic)
	sub := f.entity("news/all", backends.Subscription)
	f.send(topic, letters(2)...)
	f.kill(sub)
	r = f.run(Spec{Kind: Complete, From: sub.DeadLetters()})
	if _, err := Restore(f.ctx, f.env, r.Job, RestoreOptions{}, nil); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "--to news") {
		t.Errorf("into a subscription: %v", err)
	}
	if back, err = Restore(f.ctx, f.env, r.Job, RestoreOptions{To: &topic}, nil); err != nil {
		t.Fatal(err)
	}
	f.want(back, "restored 2, left 0, lost 0")
	f.holds(sub, 2)
}
