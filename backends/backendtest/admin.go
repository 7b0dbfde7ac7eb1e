package backendtest

import (
	"slices"
	"sync"

	"dlq/backends"
	"dlq/backends/message"
)

func purgeCases() []testCase {
	return []testCase{
		{"purge/missing-entity", purgeMissingEntity},
		{"purge/all-but-locked", purgeAllButLocked},
		{"purge/dead-letters", purgeDeadLetters},
		{"purge/while-others-send", purgeWhileSending},
	}
}

func (f *fixture) purge(id backends.EntityID, want int64) {
	f.Helper()
	n, err := capability[backends.Purger](f).Purge(f.ctx, id)
	if err != nil {
		f.Fatalf("purge: %v", err)
	}
	if n != want {
		f.Errorf("purge says that it removed %d messages, want %d", n, want)
	}
}

func purgeMissingEntity(f *fixture) {
	n, err := capability[backends.Purger](f).Purge(f.ctx, missing)
	f.wantCode("purge", err, backends.NotFound)
	if n != 0 {
		f.Errorf("purge of nothing removed %d messages", n)
	}
}

func purgeAllButLocked(f *fixture) {
	capability[backends.Purger](f)
	id, held := f.mixture()
	f.send(id, texts("more", "and more")...)
	f.purge(id, 5)
	f.purge(id, 0)
	if c := f.entity(id).Counts; c.Scheduled > 0 || c.Deferred > 0 {
		f.Errorf("after a purge there are %d scheduled and %d deferred messages", c.Scheduled, c.Deferred)
	}
	f.h.Advance(f, 2*farOff) // also lets the lock run out
	held.release()
	f.holds(id, "locked")
}

func purgeDeadLetters(f *fixture) {
	capability[backends.Purger](f)
	id := f.queue()
	dlq := f.dead(id, texts("a", "b")...)
	f.send(id, text("living"))
	f.purge(dlq, 2)
	f.holds(dlq)
	f.purge(id, 1)
	f.dead(id, text("c"))
	f.purge(id, 0)
	f.holds(dlq, "c")
}

// purgeWhileSending: every message is either counted as removed or still there.
func purgeWhileSending(f *fixture) {
	p := capability[backends.Purger](f)
	id := f.queue()
	const senders, each = 3, 20
	var wg sync.WaitGroup
	for range senders {
		wg.Go(func() {
			for range each {
				if err := f.b.Send(f.ctx, id, texts("a")); err != nil {
					f.Errorf("send: %v", err)
				}
			}
		})
	}
	var removed int64
	for range 10 {
		n, err := p.Purge(f.ctx, id)
		if err != nil {
			f.Errorf("purge: %v", err)
		}
		removed += n
	}
	wg.Wait()
	if left := int64(len(f.drain(id))); removed+left != senders*each {
		f.Errorf("of %d messages %d were removed and %d are left", senders*each, removed, left)
	}
}

func createCases() []testCase {
	return []testCase{{"create/queue", createQueue}}
}

func createQueue(f *fixture) {
	c := capability[backends.QueueCreator](f)
	id := f.queue()
	f.send(id, text("a"))
	f.wantCode("create what exists", c.CreateQueue(f.ctx, id.Name), backends.AlreadyExists)
	f.holds(id, "a")

	made := backends.EntityID{Name: id.Name + "-2"}
	if err := c.CreateQueue(f.ctx, made.Name); err != nil {
		f.Fatalf("create: %v", err)
	}
	f.wantCode("create it again", c.CreateQueue(f.ctx, made.Name), backends.AlreadyExists)
	if e := f.entity(made); e.Kind != backends.Queue {
		f.Errorf("a queue was made, it is a %q", e.Kind)
	}
	f.send(made, text("b"))
	f.holds(made, "b")
	f.holds(id)
	f.wantCode("create without a name", c.CreateQueue(f.ctx, ""), backends.Invalid)
}

func validateCases() []testCase {
	return []testCase{
		{"validate/agrees-with-send", validateAgrees},
		{"validate/no-side-effects", validateNoSideEffects},
	}
}

// validateAgrees holds ValidateSend against what Send then does.
func validateAgrees(f *fixture) {
	v := capability[backends.SendValidator](f)
	id := f.h.Queue(f, QueueOptions{MaxBodyBytes: 4 << 10})
	msgs := []*message.Message{{}, text("a"), richMessage()}
	if limit := f.entity(id).Limits.MaxBodyBytes; limit > 0 {
		msgs = append(msgs,
			&message.Message{Body: message.DataBody(make([]byte, limit))},
			&message.Message{Body: message.DataBody(make([]byte, limit+1))})
	}
	for _, value := range values() {
		msgs = append(msgs, &message.Message{Properties: message.Properties{{Name: "p", Value: value}}})
	}
	for _, m := range msgs {
		for _, to := range []backends.EntityID{id, missing} {
			before := f.promptly("validate", func() error { return v.ValidateSend(f.ctx, to, m) })
			after := f.b.Send(f.ctx, to, []*message.Message{m})
			codeBefore, _ := backends.CodeOf(before)
			codeAfter, _ := backends.CodeOf(after)
			if (before == nil) != (after == nil) || codeBefore != codeAfter {
				f.Errorf("to %v, %d bytes, %v: validate says %v, send %v", to, m.Body.Len(), m.Properties, before, after)
			}
		}
	}
}

func validateNoSideEffects(f *fixture) {
	v := capability[backends.SendValidator](f)
	id := f.queue()
	m := richMessage()
	if err := v.ValidateSend(f.ctx, id, m); err != nil {
		f.Skipf("the service carries no such message: %v", err)
	}
	if d := message.Diff(richMessage(), m); d != nil {
		f.Errorf("validating has changed the message in %v", d)
	}
	if got := bodies(f.drain(id)); !slices.Equal(got, []string{}) {
		f.Errorf("validating has sent %s", list(got))
	}
}
