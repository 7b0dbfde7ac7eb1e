package sqsd

import (
	"sync"
	"time"

	"dlq/backends/broker"
	"dlq/backends/message"
)

// attemptWindow is how long a receive can be tried again.
// Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/using-receiverequestattemptid-request-parameter.html
const attemptWindow = 5 * time.Minute

// maxAttempts bounds what is remembered.
const maxAttempts = 10_000

// attemptKey is what a client calls a receive.
type attemptKey struct{ entity, id string }

// attempt is what a receive gave. The answer may have been lost on its way.
type attempt struct {
	at         time.Time
	deliveries []broker.Delivery
}

// attempts are the receives from FIFO queues that can be tried again. They are in memory: after a
// restart the messages come when their visibility timeout is over.
type attempts struct {
	mu sync.Mutex
	by map[attemptKey]attempt
	of map[message.UUID]attemptKey // by lock token: which of them gave that delivery
}

func (a *attempts) keep(k attemptKey, msgs []*message.Message, now time.Time) {
	ds := make([]broker.Delivery, len(msgs))
	for i, m := range msgs {
		ds[i] = broker.Delivery{Seq: m.Broker.SequenceNumber, Token: m.Broker.LockToken}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.drop(k)
	if len(a.by) >= maxAttempts {
		a.dropOld(now)
	}
	if a.by == nil {
		a.by, a.of = map[attemptKey]attempt{}, map[message.UUID]attemptKey{}
	}
	a.by[k] = attempt{now, ds}
	for _, d := range ds {
		a.of[d.Token] = k
	}
}

// dropOld makes room: what is over goes, and some of the others if that is not enough.
func (a *attempts) dropOld(now time.Time) {
	for k, old := range a.by {
		if now.Sub(old.at) >= attemptWindow {
			a.drop(k)
		}
	}
	for k := range a.by { // not one by one, since to look for the old ones takes a while
		if len(a.by) <= maxAttempts*9/10 {
			return
		}
		a.drop(k)
	}
}

func (a *attempts) find(k attemptKey, now time.Time) []broker.Delivery {
	a.mu.Lock()
	defer a.mu.Unlock()
	found, ok := a.by[k]
	if ok && now.Sub(found.at) >= attemptWindow {
		a.drop(k)
		return nil
	}
	return found.deliveries
}

func (a *attempts) forget(k attemptKey) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.drop(k)
}

// spoil forgets the receives that gave a message which is deleted or changed now: they cannot be
// had again.
func (a *attempts) spoil(ds []broker.Delivery) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, d := range ds {
		if k, ok := a.of[d.Token]; ok {
			a.drop(k)
		}
	}
}

// drop forgets a receive, if there is such a one.
func (a *attempts) drop(k attemptKey) {
	for _, d := range a.by[k].deliveries {
		delete(a.of, d.Token)
	}
	delete(a.by, k)
}

// again returns what a receive gave before, hidden anew for as long as this one asks, or nil if
// that cannot be had again.
func (c *call) again(k attemptKey, o broker.ReceiveOptions) []*message.Message {
	ds := c.s.attempts.find(k, c.s.Now())
	if ds == nil {
		return nil
	}
	a := broker.Address{Name: c.entity}
	lock := c.info.LockDuration
	if o.Lock != nil {
		lock = *o.Lock
	}
	errs, err := c.s.Engine.Extend(a, lock, ds...)
	if err != nil {
		return nil
	}
	msgs := make([]*message.Message, 0, len(ds))
	for i, d := range ds {
		page, err := c.s.Engine.Peek(a, broker.PeekOptions{From: d.Seq, Max: 1})
		if errs[i] != nil || err != nil || len(page) == 0 || page[0].Broker.SequenceNumber != d.Seq {
			c.s.attempts.forget(k)
			return nil
		}
		page[0].Broker.LockToken = d.Token
		msgs = append(msgs, page[0])
	}
	return msgs
}
