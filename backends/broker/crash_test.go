package broker

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dlq/backends/broker/store"
	"dlq/backends/message"
)

// The crash test runs a load on a file system that can be copied as a loss of power would
// leave it, with any part of what was not synced, and opens copy after copy. What was
// acknowledged before the copy began must be true in it; what was begun after it ended must
// not show; and every message is in exactly one place.

// fate is what the load knows of one message. The times are ticks of one counter; zero is
// not yet.
type fate struct {
	sendBegan, sendAcked, goneBegan, goneAcked atomic.Int64
	body                                       string
}

type ledger struct {
	tick  atomic.Int64
	mu    sync.Mutex
	fates map[string]*fate
}

func (l *ledger) begin(id, body string) *fate {
	f := &fate{body: body}
	f.sendBegan.Store(l.tick.Add(1))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fates[id] = f
	return f
}

// load is one client: it owns a queue, one of them with sessions, and moves messages into the
// next client's, and it publishes to a topic whose subscriptions it empties.
type load struct {
	l          *ledger
	e          *Engine
	rnd        *rand.Rand
	queue, to  string
	made       int
	dead       []string // in its dead-letter sub-queue
	seqs       map[string]int64
	unexpected func(string, error)
}

func (c *load) newMessage() (string, *message.Message) {
	c.made++
	id := fmt.Sprintf("%s-%d", c.queue, c.made)
	return id, &message.Message{
		ID: message.String(id), SessionID: new(fmt.Sprint("s", c.rnd.IntN(3))), Body: message.DataBody(bytes.Repeat([]byte(id), 1+c.rnd.IntN(30))),
	}
}

// The copies of a published message have fates of their own, under the names that key gives.
const crashTopic = "news"

var crashSubscriptions = [...]string{crashTopic + "/Subscriptions/x", crashTopic + "/Subscriptions/y"}

func key(id, entity string) string {
	if strings.HasPrefix(entity, crashTopic) {
		return id + "@" + entity
	}
	return id
}

func (c *load) step() {
	const depth = 6 // about which a queue stays
	info, err := c.e.Entity(c.queue)
	if err != nil {
		c.unexpected("queue", err)
	}
	switch n := c.rnd.IntN(13); {
	case n < 4 && info.Active < depth:
		c.send()
	case n < 6 || info.Active > depth:
		c.receiveAnd(c.queue, Complete)
	case n < 8:
		c.receiveAnd(c.queue, Bury)
	case n < 10 && len(c.dead) > 2:
		c.redrive()
	case n < 11:
		c.publish()
	default:
		c.receiveAnd(crashSubscriptions[n-11], Complete)
		c.receiveAnd(crashSubscriptions[n-11], Complete)
	}
}

// publish sends to the topic: both subscriptions get a copy in one commit.
func (c *load) publish() {
	id, m := c.newMessage()
	body := string(m.Body.Bytes())
	x, y := c.l.begin(key(id, crashSubscriptions[0]), body), c.l.begin(key(id, crashSubscriptions[1]), body)
	c.sent(c.e.Send(Address{Name: crashTopic}, []*message.Message{m}))
	acked := c.l.tick.Add(1)
	x.sendAcked.Store(acked)
	y.sendAcked.Store(acked)
}

func (c *load) sent(sent []Sent, err error) {
	for _, s := range sent {
		if s.Err != nil {
			c.unexpected("send", s.Err)
		}
	}
	if err != nil {
		c.unexpected("send", err)
	}
}

func (c *load) send() {
	id, m := c.newMessage()
	if c.rnd.IntN(4) == 0 {
		m.ScheduledEnqueueTime = new(time.Now().Add(time.Duration(c.rnd.IntN(5)) * time.Millisecond))
	}
	f := c.l.begin(id, string(m.Body.Bytes()))
	c.sent(c.e.Send(Address{Name: c.queue}, []*message.Message{m}))
	f.sendAcked.Store(c.l.tick.Add(1))
}

// receiveAnd settles the first message, which others may have moved here.
func (c *load) receiveAnd(entity string, action Action) {
	a := Address{Name: entity}
	var o ReceiveOptions
	if entity == crashSessions {
		s, err := c.e.AcceptSession(a, nil)
		if errors.Is(err, ErrNoSession) {
			return
		}
		if err != nil {
			c.unexpected("accept a session", err)
		}
		o.Session = s.Token
		defer func() {
			if err := c.e.ReleaseSession(a, s.Token); err != nil {
				c.unexpected("release a session", err)
			}
		}()
	}
	got, err := c.e.Receive(a, o)
	if err != nil {
		c.unexpected("receive", err)
	}
	if len(got) == 0 {
		return
	}
	id := message.FormatValue(got[0].ID)
	f := c.l.fate(key(id, entity))
	if action == Complete {
		f.goneBegan.Store(c.l.tick.Add(1))
	}
	errs, err := c.e.Settle(a, Outcome{Action: action, Reason: "r"}, got[0].Broker.LockToken)
	c.check("settle", errs, err)
	if action == Complete {
		f.goneAcked.Store(c.l.tick.Add(1))
	} else {
		c.dead = append(c.dead, id)
		c.seqs[id] = got[0].Broker.SequenceNumber
	}
}

func (l *ledger) fate(key string) *fate {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fates[key]
}

// redrive moves a dead letter to the next queue under a new id, by a move or by a transaction:
// the old one is gone and the new one there in the same commit.
func (c *load) redrive() {
	old := c.dead[0]
	c.dead = c.dead[1:]
	was := c.l.fate(old)
	id, m := c.newMessage()
	m.Body = message.DataBody([]byte(was.body)) // unchanged: a move reuses the stored body
	f := c.l.begin(id, was.body)
	was.goneBegan.Store(c.l.tick.Add(1))
	from, to := Address{c.queue, DeadLetter}, Address{Name: c.to}
	if c.rnd.IntN(2) == 0 {
		errs, err := c.e.Move(from, []Move{{Seq: c.seqs[old], To: to, As: m}})
		c.check("move", errs, err)
	} else {
		c.exchange(from, to, c.seqs[old], m)
	}
	was.goneAcked.Store(c.l.tick.Add(1))
	f.sendAcked.Store(c.l.tick.Add(1))
}

// exchange completes one message and sends another in a transaction.
func (c *load) exchange(from, to Address, seq int64, m *message.Message) {
	got, err := c.e.Receive(from, ReceiveOptions{After: seq - 1})
	if err != nil || len(got) != 1 || got[0].Broker.SequenceNumber != seq {
		c.unexpected("receive a dead letter", fmt.Errorf("%d messages instead of number %d; %w", len(got), seq, err))
		return
	}
	x := c.e.Begin()
	errs, err := x.Send(to, nil, []*message.Message{m})
	c.check("stage a send", errs, err)
	errs, err = x.Settle(from, Outcome{Action: Complete}, got[0].Broker.LockToken)
	c.check("stage a settlement", errs, err)
	if err := x.Commit(); err != nil {
		c.unexpected("commit", err)
	}
}

func (c *load) check(what string, errs []error, err error) {
	for _, e := range append(errs, err) {
		if e != nil {
			c.unexpected(what, e)
		}
	}
}

// TestCrashImagesUnderLoad opens 5,000 crash images (25,000 with DLQ_FULL=1, 200 with -short)
// that were taken while clients were at work, each with a random part of the unsynced writes.
func TestCrashImagesUnderLoad(t *testing.T) {
	images := size(200, 5_000, 25_000)
	const perEngine = 40 // then a new one, so that opening stays cheap
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d; concurrency makes a run not repeat exactly", seed)
	seen := 0
	for n := 0; n < images; n += perEngine {
		seen += crashRun(t, rand.New(rand.NewPCG(seed, uint64(n))), perEngine)
		if t.Failed() {
			t.FailNow()
		}
	}
	if seen == 0 {
		t.Error("no image held a message: the test has shown nothing")
	}
	t.Logf("%d images, %d messages in them", images, seen)
}

const crashSessions = "c"

func crashRun(t *testing.T, rnd *rand.Rand, images int) (seen int) {
	fs := vfs.NewCrashableMem()
	s, err := store.Open(fs, "data")
	if err != nil {
		t.Fatal(err)
	}
	e, err := Open(Options{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	l := &ledger{fates: map[string]*fate{}}
	queues := []string{"a", "b", crashSessions}
	for _, name := range slices.Concat(queues, []string{crashTopic}, crashSubscriptions[:]) {
		kind := Queue
		switch {
		case name == crashTopic:
			kind = Topic
		case strings.HasPrefix(name, crashTopic):
			kind = Subscription
		}
		p := Defaults(kind, ServiceBus)
		p.RequiresSession = name == crashSessions
		if err := e.Create(name, kind, p); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	const perImage = 6 // steps; the load and the copies run side by side
	steps := make(chan struct{}, images*perImage)
	for i, q := range queues {
		c := &load{
			l: l, e: e, rnd: rand.New(rand.NewPCG(rnd.Uint64(), 0)), queue: q, to: queues[(i+1)%len(queues)],
			seqs:       map[string]int64{},
			unexpected: func(what string, err error) { t.Errorf("%s: %v", what, err) },
		}
		wg.Go(func() {
			for range steps {
				c.step()
			}
		})
	}
	for range images {
		for range perImage {
			steps <- struct{}{}
		}
		began := l.tick.Add(1)
		image := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rnd.IntN(101), RNG: rnd})
		ended := l.tick.Add(1)
		seen += checkImage(t, image, l, began, ended)
		if t.Failed() {
			break
		}
	}
	close(steps)
	wg.Wait()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	return seen
}

// checkImage opens one crash image and holds it against the ledger.
func checkImage(t *testing.T, image *vfs.MemFS, l *ledger, began, ended int64) int {
	s, err := store.Open(image, "data")
	if err != nil {
		t.Errorf("open an image: %v", err)
		return 0
	}
	now := time.Now() // stands still, so that nothing comes due between two looks
	e, err := Open(Options{Store: s, Now: func() time.Time { return now }})
	if err != nil {
		t.Errorf("open an image: %v", err)
		return 0
	}
	defer func() { _ = e.Close() }()
	found := map[string]string{}
	infos, err := e.Entities()
	if err != nil || len(infos) != 6 {
		t.Errorf("an image holds %d entities, want 6; %v", len(infos), err)
	}
	for _, info := range infos {
		if info.Kind == Topic {
			continue
		}
		for sub, count := range map[Sub]int64{Main: info.Active + info.Scheduled + info.Deferred, DeadLetter: info.DeadLetter} {
			page, err := peekAll(e, Address{info.Name, sub})
			if err != nil || int64(len(page)) != count {
				t.Errorf("%s/%d holds %d messages and reports %d; %v", info.Name, sub, len(page), count, err)
			}
			for _, m := range page {
				id := key(message.FormatValue(m.ID), info.Name)
				if where, twice := found[id]; twice {
					t.Errorf("message %s is in %s and in %s/%d", id, where, info.Name, sub)
				}
				found[id] = fmt.Sprintf("%s/%d", info.Name, sub)
				l.checkFound(t, id, m, began, ended)
			}
		}
	}
	l.checkMissing(t, found, began, ended)
	l.checkCopies(t, found, ended)
	return len(found)
}

// checkCopies: a message that was published is in both subscriptions, unless it was settled
// in one, or in none.
func (l *ledger) checkCopies(t *testing.T, found map[string]string, ended int64) {
	for k := range found {
		id, at, copied := strings.Cut(k, "@")
		if !copied {
			continue
		}
		other := crashSubscriptions[0]
		if at == other {
			other = crashSubscriptions[1]
		}
		if _, ok := found[key(id, other)]; ok {
			continue
		}
		if f := l.fate(key(id, other)); f != nil && (f.goneBegan.Load() == 0 || f.goneBegan.Load() > ended) {
			t.Errorf("message %s was published to %s and not to %s", id, at, other)
		}
	}
}

func peekAll(e *Engine, a Address) (all []*message.Message, err error) {
	for from := int64(0); ; {
		page, err := e.Peek(a, PeekOptions{From: from, Max: 1000})
		if err != nil || len(page) == 0 {
			return all, err
		}
		all = append(all, page...)
		from = all[len(all)-1].Broker.SequenceNumber + 1
	}
}

func (l *ledger) checkFound(t *testing.T, id string, m *message.Message, began, ended int64) {
	l.mu.Lock()
	f := l.fates[id]
	l.mu.Unlock()
	switch {
	case f == nil:
		t.Errorf("message %s is in an image and was never sent", id)
	case f.sendBegan.Load() > ended:
		t.Errorf("message %s is in an image from before it was sent", id)
	case f.goneAcked.Load() != 0 && f.goneAcked.Load() < began:
		t.Errorf("message %s is in an image, and its end was acknowledged before", id)
	case string(m.Body.Bytes()) != f.body:
		t.Errorf("message %s has another body than was sent", id)
	}
}

func (l *ledger) checkMissing(t *testing.T, found map[string]string, began, ended int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, f := range l.fates {
		acked, ending := f.sendAcked.Load(), f.goneBegan.Load()
		if _, ok := found[id]; !ok && acked != 0 && acked < began && (ending == 0 || ending > ended) {
			t.Errorf("message %s was acknowledged and is lost", id)
		}
		if gone := f.goneAcked.Load(); gone != 0 && gone < began {
			delete(l.fates, id) // told: it shows in no later image, or checkFound says so
		}
	}
}
