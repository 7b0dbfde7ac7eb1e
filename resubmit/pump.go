package resubmit

import (
	"hash/maphash"
	"sync"

	"dlq/backends"
	"dlq/backends/message"
)

// work is one message on its way.
type work struct {
	index int // in the plan
	msg   *message.Message
	out   *message.Message // what to send
	to    backends.EntityID
}

// pump runs a feed, cuts what it emits into batches, and processes several batches at a time.
// Messages of one session always take the same lane, so that they stay in order. It holds at
// most two batches for each lane. It returns the feed's error; what goes wrong in a batch
// ends the run by itself.
func (r *run) pump(feed func(emit func(work) bool) error) error {
	lanes := make([]lane, r.spec.Concurrency)
	var workers sync.WaitGroup
	for i := range lanes {
		l := &lanes[i]
		l.ch = make(chan []work)
		workers.Go(func() {
			for batch := range l.ch {
				r.process(batch)
			}
		})
	}
	seed := maphash.MakeSeed()
	next := 0
	err := feed(func(w work) bool {
		at := next
		if s := w.msg.SessionID; s != nil {
			at = int(maphash.String(seed, *s) % uint64(len(lanes)))
		}
		sent, open := lanes[at].add(r, w)
		if sent && at == next {
			next = (next + 1) % len(lanes)
		}
		return open
	})
	for i := range lanes {
		if err == nil {
			lanes[i].flush(r)
		}
		close(lanes[i].ch)
	}
	workers.Wait()
	return err
}

// lane is a queue of batches that are processed one after the other.
type lane struct {
	ch    chan []work
	batch []work
	bytes int
}

// add puts a message into the batch that is being filled. flushed: a full batch went off; open: the run
// has not been stopped.
func (l *lane) add(r *run, w work) (flushed, open bool) {
	open = r.stop.Err() == nil
	size := w.msg.Body.Len()
	if len(l.batch) > 0 && l.bytes+size > maxBatchBytes {
		open, flushed = l.flush(r), true
	}
	l.batch = append(l.batch, w)
	l.bytes += size
	if len(l.batch) >= r.batchMax || l.bytes >= maxBatchBytes {
		open, flushed = l.flush(r), true
	}
	return flushed, open
}

func (l *lane) flush(r *run) (open bool) {
	batch := l.batch
	l.batch, l.bytes = nil, 0
	if len(batch) == 0 {
		return true
	}
	select {
	case l.ch <- batch:
		return true
	case <-r.stop.Done():
		return false
	}
}
