package resubmit

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"dlq/backends"
	"dlq/backends/message"
)

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
					if text := finding(t, p.Vetoes, FindShared).Text; !strings.HasPrefix(text, "the dead letters of one lie in failed, together with those of two: name failed") {
						t.Errorf("the plan says %q", text)
					}
				}
			}
			r := f.run(Spec{From: failed})
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

// TestSourcesChangeAfterThePlan: a message never goes where the plan has not looked.
func TestSourcesChangeAfterThePlan(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			f := way.fixture(t)
			failed := f.entity("failed", backends.Queue, "Dialect=sqs")
			one := f.entity("one", backends.Queue, "Dialect=sqs", "RedrivePolicy=failed:1")
			f.send(failed, letters(2)...)
			p := f.plan(Spec{From: failed})
			if len(p.Destinations) != 1 || p.Destinations[0].Entity != one {
				t.Fatalf("the plan goes to %+v", p.Destinations)
			}
			if err := f.local.DeleteEntity(f.ctx, one); err != nil {
				t.Fatal(err)
			}
			two := f.entity("two", backends.Queue, "Dialect=sqs", "RedrivePolicy=failed:1")
			r, err := Run(f.ctx, f.env, p, nil)
			if err != nil || len(r.Skipped) != 2 || !strings.Contains(r.Skipped[0].Reason, "it would go to two, which the plan did not look at") {
				t.Errorf("%+v, %v", r, err)
			}
			f.holds(failed, 2)
			f.holds(two, 0)
		})
	}
}
