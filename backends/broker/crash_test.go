package broker

import (
	"bytes"
	"fmt"
	"math/rand/v2"
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

// load is one client: it owns a queue and moves messages into the next client's.
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
	return id, &message.Message{ID: message.String(id), Body: message.DataBody(bytes.Repeat([]byte(id), 1+c.rnd.IntN(30)))}
}

func (c *load) step() {
	const depth = 6 // about which a queue stays
	info, err := c.e.Entity(c.queue)
	if err != nil {
		c.unexpected("queue", err)
	}
	switch n := c.rnd.IntN(10); {
	case n < 4 && info.Active < depth:
		c.send()
	case n < 6 || info.Active > depth:
		c.receiveAnd(Complete)
	case n < 8:
		c.receiveAnd(Bury)
	case len(c.dead) > 2:
		c.redrive()
	}
}

func (c *load) send() {
	id, m := c.newMessage()
	f := c.l.begin(id, string(m.Body.Bytes()))
	errs, err := refusals(c.e.Send(Address{Name: c.queue}, []*message.Message{m}))
	c.check("send", errs, err)
	f.sendAcked.Store(c.l.tick.Add(1))
}

// receiveAnd settles the first message, which others may have moved here.
func (c *load) receiveAnd(action Action) {
	a := Address{Name: c.queue}
	m, err := one(c.e.Receive(a, ReceiveOptions{}))
	if err != nil {
		c.unexpected("receive", err)
	}
	if m == nil {
		return
	}
	id := message.FormatValue(m.ID)
	c.l.mu.Lock()
	f := c.l.fates[id]
	c.l.mu.Unlock()
	if action == Complete {
		f.goneBegan.Store(c.l.tick.Add(1))
	}
	errs, err := c.e.Settle(a, Outcome{Action: action, Reason: "r"}, m.Broker.LockToken)
	c.check("settle", errs, err)
	if action == Complete {
		f.goneAcked.Store(c.l.tick.Add(1))
	} else {
		c.dead = append(c.dead, id)
		c.seqs[id] = m.Broker.SequenceNumber
	}
}

// redrive moves a dead letter to the next queue under a new id: the old one is gone and the
// new one there in the same commit.
func (c *load) redrive() {
	old := c.dead[0]
	c.dead = c.dead[1:]
	c.l.mu.Lock()
	was := c.l.fates[old]
	c.l.mu.Unlock()
	id, m := c.newMessage()
	m.Body = message.DataBody([]byte(was.body)) // unchanged: the stored body is reused
	f := c.l.begin(id, was.body)
	was.goneBegan.Store(c.l.tick.Add(1))
	errs, err := c.e.Move(Address{c.queue, DeadLetter}, []Move{{Seq: c.seqs[old], To: Address{Name: c.to}, As: m}})
	c.check("move", errs, err)
	was.goneAcked.Store(c.l.tick.Add(1))
	f.sendAcked.Store(c.l.tick.Add(1))
}

func (c *load) check(what string, errs []error, err error) {
	for _, e := range append(errs, err) {
		if e != nil {
			c.unexpected(what, e)
		}
	}
}

// TestCrashImages opens 20,000 crash images (100,000 with DLQ_FULL=1, 1,000 with -short), each with a random
// part of the unsynced writes.
func TestCrashImages(t *testing.T) {
	images := size(1_000, 20_000, 100_000)
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
	queues := []string{"a", "b", "c"}
	for _, q := range queues {
		if err := e.Create(q, Queue, Defaults(Queue, ServiceBus)); err != nil {
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
	e, err := Open(Options{Store: s})
	if err != nil {
		t.Errorf("open an image: %v", err)
		return 0
	}
	defer func() { _ = e.Close() }()
	found := map[string]string{}
	infos, err := e.Entities()
	if err != nil || len(infos) != 3 {
		t.Errorf("an image holds %d queues, want 3; %v", len(infos), err)
	}
	for _, info := range infos {
		for sub, count := range map[Sub]int64{Main: info.Active + info.Scheduled + info.Deferred, DeadLetter: info.DeadLetter} {
			page, err := peekAll(e, Address{info.Name, sub})
			if err != nil || int64(len(page)) != count {
				t.Errorf("%s/%d holds %d messages and reports %d; %v", info.Name, sub, len(page), count, err)
			}
			for _, m := range page {
				id := message.FormatValue(m.ID)
				if where, twice := found[id]; twice {
					t.Errorf("message %s is in %s and in %s/%d", id, where, info.Name, sub)
				}
				found[id] = fmt.Sprintf("%s/%d", info.Name, sub)
				l.checkFound(t, id, m, began, ended)
			}
		}
	}
	l.checkMissing(t, found, began, ended)
	return len(found)
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
