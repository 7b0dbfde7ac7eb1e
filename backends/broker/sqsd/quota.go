package sqsd

import (
	"sync"

	"golang.org/x/time/rate"
)

// quotas bound how often an action is called on a queue, as the services do for some of theirs. A
// client that is throttled is to try again later, and tests whether it does.
// Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
// and https://yandex.cloud/docs/message-queue/concepts/limits
type quotas struct {
	mu sync.Mutex
	by map[quotaKey]*rate.Limiter
}

// quotaKey is what has a quota of its own: the calls of a kind on a queue.
type quotaKey struct {
	entity string
	op     FaultOp
}

// quota is an error if the call is one too many for its second.
func (c *call) quota() error {
	perSecond := c.s.Limits.Calls
	if c.info.Groups {
		perSecond = c.s.Limits.FIFOCalls
	}
	if perSecond == 0 || c.action.scope != queueScope || c.action.op == OpManage {
		return nil
	}
	if !c.s.quotas.limiter(quotaKey{c.entity, c.action.op}, perSecond).AllowN(c.s.Now(), 1) {
		return throttled()
	}
	return nil
}

func (q *quotas) limiter(k quotaKey, perSecond int) *rate.Limiter {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.by[k]
	if l == nil {
		if q.by == nil {
			q.by = map[quotaKey]*rate.Limiter{}
		}
		l = rate.NewLimiter(rate.Limit(perSecond), perSecond)
		q.by[k] = l
	}
	return l
}

// forget forgets a queue that was deleted.
func (q *quotas) forget(entity string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for k := range q.by {
		if k.entity == entity {
			delete(q.by, k)
		}
	}
}
