package broker

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"dlq/backends/broker/store"
)

// Sub names a queue inside an entity.
type Sub uint8

const (
	Main Sub = iota
	DeadLetter
	TransferDeadLetter // what could not be forwarded
	subs               // how many there are
)

// Address names a queue or one of its sub-queues. A subscription is named by
// "topic/Subscriptions/name". Names compare without case, unless the entity says otherwise.
type Address struct {
	Name string
	Sub  Sub
}

// entity is a queue, topic or subscription in memory. A topic's main queue holds scheduled
// messages alone.
type entity struct {
	id                          uint32
	name                        string
	kind                        Kind
	p                           Properties
	created, modified, accessed time.Time

	subs     [subs]*queue
	next     uint64 // the next sequence number
	reserved uint64 // the store knows that numbers below it may be in use
	size     int64  // bytes of all messages; of a topic, with its subscriptions

	topic         *entity   // of a subscription
	subscriptions []*entity // of a topic, in the order of their names
	rules         []*rule   // of a subscription, in the order of their names
	idle          *timer    // deletes it unless it is used
	sightings     int       // ids noted since old ones were forgotten
	watches       map[*watch]struct{}
}

func newEntity(id uint32, name string, kind Kind, p Properties, next uint64) *entity {
	ent := &entity{id: id, name: name, kind: kind, p: p, next: next, reserved: next}
	for i := range ent.subs {
		ent.subs[i] = newQueue(ent, Sub(i))
	}
	return ent
}

// atLeast keeps sequence numbers from being given again.
func (ent *entity) atLeast(next uint64) {
	ent.next = max(ent.next, next)
	ent.reserved = max(ent.reserved, ent.next)
}

// grow counts bytes that came or went.
func (ent *entity) grow(n int64) {
	ent.size += n
	if ent.topic != nil {
		ent.topic.size += n
	}
}

// own is the size without subscriptions.
func (ent *entity) own() int64 {
	size := ent.size
	for _, sub := range ent.subscriptions {
		size -= sub.size
	}
	return size
}

func (ent *entity) stored() *store.Entity {
	return &store.Entity{
		ID: ent.id, Kind: string(ent.kind), Name: ent.name,
		Created: ent.created, Modified: ent.modified, Properties: ent.p.attributes(),
	}
}

// fold is how names compare. They are ASCII.
func fold(name string) string { return strings.ToLower(name) }

func (e *Engine) add(ent *entity) {
	e.byName[fold(ent.name)] = append(e.byName[fold(ent.name)], ent)
	e.byID[ent.id] = ent
	e.lastEntity = max(e.lastEntity, ent.id)
}

// entity returns the entity of a name; nil: there is none.
func (e *Engine) entity(name string) *entity {
	same := e.byName[fold(name)]
	for _, ent := range same {
		if ent.name == name {
			return ent
		}
	}
	for _, ent := range same {
		if !ent.p.CaseSensitive {
			return ent
		}
	}
	// "topic/name" is short for a subscription.
	if i := strings.LastIndexByte(name, '/'); i > 0 && !strings.Contains(fold(name), fold(subscriptionSegment)) {
		return e.entity(name[:i] + subscriptionSegment + name[i+1:])
	}
	return nil
}

// find returns the queue that an address names. Where the dead-letter queue is not a
// sub-queue, it is the queue that the redrive policy names, or the very queue that others'
// policies name.
func (e *Engine) find(a Address) (*queue, error) {
	ent := e.entity(a.Name)
	switch {
	case ent == nil || a.Sub >= subs:
		return nil, fmt.Errorf("%w: %s", ErrNoEntity, a.Name)
	case a.Sub == Main || ent.p.SubQueues && ent.kind != Topic:
		return ent.subs[a.Sub], nil
	case a.Sub == DeadLetter && ent.p.Redrive.Target != "":
		if target := e.deadLetters(ent); target != nil {
			return target.subs[Main], nil
		}
		return nil, fmt.Errorf("%w: %s, which the redrive policy of %s names", ErrNoEntity, ent.p.Redrive.Target, ent.name)
	case a.Sub == DeadLetter && len(e.sources()[ent]) > 0:
		return ent.subs[Main], nil
	}
	return nil, fmt.Errorf("%w: %s has no dead-letter queue of this kind", ErrNoEntity, a.Name)
}

// join makes a subscription known to its topic.
func (e *Engine) join(sub *entity) error {
	topic, _, _ := cutSubscription(sub.name)
	sub.topic = e.entity(topic)
	if sub.topic == nil || sub.topic.kind != Topic {
		return fmt.Errorf("%w: there is no topic %s", ErrNoEntity, topic)
	}
	at, _ := slices.BinarySearchFunc(sub.topic.subscriptions, sub, func(a, b *entity) int {
		return strings.Compare(fold(a.name), fold(b.name))
	})
	sub.topic.subscriptions = slices.Insert(sub.topic.subscriptions, at, sub)
	return nil
}

// Exists returns nil if there is a queue at the address, else [ErrNoEntity].
func (e *Engine) Exists(a Address) error {
	t, _, err := e.on(a)
	if err == nil {
		t.end()
	}
	return err
}

// Info describes an entity at one moment.
type Info struct {
	Name string
	Kind Kind
	Properties
	Created, Modified, Accessed time.Time

	// Active counts active messages, locked ones too, and those that are kept back in their
	// place are Delayed; a topic's counts but Scheduled are the sums over its subscriptions.
	Active, Scheduled, Deferred, DeadLetter, TransferDeadLetter, Delayed, InFlight int64
	Size                                                                           int64 // bytes
	Summed                                                                         bool  // the counts are sums
	// OldestDeadLetter is when the dead letter with the lowest sequence number was enqueued;
	// zero if there is none.
	OldestDeadLetter time.Time
	// Sources are the queues whose redrive policy names this one.
	Sources []string
	AsOf    time.Time
}

func (ent *entity) info(now time.Time) Info {
	i := Info{
		Name: ent.name, Kind: ent.kind, Properties: ent.p.clone(), Created: ent.created, Modified: ent.modified, Accessed: ent.accessed,
		Size: ent.size, AsOf: now,
	}
	ent.count(&i)
	i.Summed = ent.kind == Topic
	for _, sub := range ent.subscriptions {
		scheduled := i.Scheduled
		sub.count(&i)
		i.Scheduled = scheduled
	}
	return i
}

// count adds what the entity itself holds. It costs the same however deep it is.
func (ent *entity) count(i *Info) {
	main := ent.subs[Main]
	i.Active += main.active()
	i.Deferred += main.deferredCount()
	i.InFlight += int64(len(main.locked))
	if ent.p.DelayKeepsPlace {
		i.Delayed += int64(len(main.scheduled))
	} else {
		i.Scheduled += int64(len(main.scheduled))
	}
	// Everything in a sub-queue is a dead letter, whatever its state there.
	i.DeadLetter += ent.subs[DeadLetter].all()
	i.TransferDeadLetter += ent.subs[TransferDeadLetter].all()
}

// Entity returns one entity, without the time of its oldest dead letter.
func (e *Engine) Entity(name string) (Info, error) {
	t, ent, err := e.onEntity(name)
	if err != nil {
		return Info{}, err
	}
	defer t.end()
	i := ent.info(t.now)
	i.Sources = e.sources()[ent]
	return i, nil
}

// sources tells whose redrive policies name each queue.
func (e *Engine) sources() map[*entity][]string {
	out := map[*entity][]string{}
	for _, ent := range e.byID {
		if target := e.deadLetters(ent); target != nil {
			out[target] = append(out[target], ent.name)
		}
	}
	for _, names := range out {
		slices.Sort(names)
	}
	return out
}

// Entities returns every entity in the order of the names. The counts cost nothing, however
// deep the entities are.
func (e *Engine) Entities() ([]Info, error) {
	t, err := e.begin()
	if err != nil {
		return nil, err
	}
	infos := make([]Info, 0, len(e.byID))
	dead := make(map[string]store.Key, len(e.byID))
	sources := e.sources()
	for _, ent := range e.byID {
		i := ent.info(t.now)
		i.Sources = sources[ent]
		infos = append(infos, i)
		dead[ent.name] = ent.subs[DeadLetter].key(ent.subs[DeadLetter].lowest())
		if redriven := len(i.Sources) > 0; redriven { // what lies in it are dead letters
			dead[ent.name] = ent.subs[Main].key(ent.subs[Main].lowest())
		}
	}
	view, done := e.view()
	t.end()
	defer done()
	slices.SortFunc(infos, func(a, b Info) int { return strings.Compare(fold(a.Name)+a.Name, fold(b.Name)+b.Name) })
	for n := range infos {
		i := &infos[n]
		if i.Summed || i.DeadLetter == 0 && len(i.Sources) == 0 {
			continue
		}
		if i.OldestDeadLetter, err = firstEnqueued(view, dead[i.Name]); err != nil {
			return nil, err
		}
	}
	return infos, nil
}

// firstEnqueued returns when the first message from a key on was enqueued that can be read.
func firstEnqueued(view store.Snapshot, from store.Key) (time.Time, error) {
	for m, err := range view.StatesFrom(from) {
		if isDamage(err) {
			continue
		}
		return m.Enqueued, unavailable(err)
	}
	return time.Time{}, nil
}
