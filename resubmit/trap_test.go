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
				_ = f.clock.Sleep(f.ctx, 9*time.Minute)
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

				_ = f.clock.Sleep(f.ctx, 2*time.Minute)
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
			_ = f.clock.Sleep(f.ctx, time.Hour)
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
// TestSubscriptionGoesThroughItsTopic: nothing can be sent to a subscription alone, so the plan
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

// TestRedrivePolicies: where the dead-letter queue is a queue of its own, each message goes back to
// TestRestoreWhereDuplicatesAreDetected: what comes back is not dropped for its id, however often.
func TestRestoreWhereDuplicatesAreDetected(t *testing.T) {
	f := newFixture(t)
	id := f.entity("careful", backends.Queue, "RequiresDuplicateDetection=true")
	f.send(id, letters(3)...)
	f.kill(id)
	r := f.run(Spec{Kind: Complete, From: id.DeadLetters()})
	for n := 1; n <= 2; n++ {
		_ = f.clock.Sleep(f.ctx, time.Second)
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
