package broker

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"dlq/backends/broker/store"
)

// Sub names a queue inside an entity.
type Sub uint8

const (
	Main Sub = iota
	DeadLetter
	subs // how many there are
)

// Address names a queue or its dead-letter sub-queue. Names compare without case.
type Address struct {
	Name string
	Sub  Sub
}

const (
	defaultLockDuration     = time.Minute
	maxLockDuration         = 5 * time.Minute
	defaultMaxDeliveryCount = 10
	maxMaxDeliveryCount     = 1<<31 - 1
	maxMaxBodyBytes         = 100 << 20
	maxNameLength           = 260 // https://learn.microsoft.com/azure/service-bus-messaging/service-bus-quotas
)

// Defaults returns the properties that an entity of that kind has when it is created.
func Defaults(Kind, Dialect) Properties {
	return Properties{
		Dialect: ServiceBus, Status: Enabled, LockDuration: defaultLockDuration,
		MaxDeliveryCount: defaultMaxDeliveryCount, MaxMessageBytes: maxMaxBodyBytes, SubQueues: true,
	}
}

func (p Properties) validate() error {
	switch {
	case p.LockDuration < time.Millisecond || p.LockDuration > maxLockDuration:
		return fmt.Errorf("%w: lock duration %v is outside 1ms to %v (default %v)", ErrInvalid, p.LockDuration, maxLockDuration, defaultLockDuration)
	case p.MaxDeliveryCount < 1 || p.MaxDeliveryCount > maxMaxDeliveryCount:
		return fmt.Errorf("%w: max delivery count %d is outside 1 to %d (default %d)", ErrInvalid, p.MaxDeliveryCount, maxMaxDeliveryCount, defaultMaxDeliveryCount)
	case p.MaxMessageBytes < 1 || p.MaxMessageBytes > maxMaxBodyBytes:
		return fmt.Errorf("%w: max body size %d is outside 1 to %d bytes (default %d)", ErrInvalid, p.MaxMessageBytes, maxMaxBodyBytes, maxMaxBodyBytes)
	}
	return nil
}

// validateName applies the rules for the path of a queue: letters, digits, periods, hyphens,
// underscores and slashes, which separate segments that are not empty.
// Source: https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules
func validateName(name string) error {
	if name == "" || len(name) > maxNameLength {
		return fmt.Errorf("%w: a name has 1 to %d characters, this has %d", ErrInvalid, maxNameLength, utf8.RuneCountInString(name))
	}
	for _, r := range name {
		ok := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-/", r)
		if !ok {
			return fmt.Errorf("%w: %q in the name; use letters, digits and . _ - /", ErrInvalid, r)
		}
	}
	if slices.Contains(strings.Split(name, "/"), "") {
		return fmt.Errorf("%w: a slash in a name stands between two segments", ErrInvalid)
	}
	return nil
}

// CreateQueue makes a queue and returns when it is durable.
func (e *Engine) CreateQueue(name string, p Properties) error {
	if err := errors.Join(validateName(name), p.validate()); err != nil {
		return err
	}
	t, err := e.begin()
	if err != nil {
		return err
	}
	if _, ok := e.byName[fold(name)]; ok {
		t.end()
		return fmt.Errorf("%w: %s", ErrExists, name)
	}
	ent := newEntity(store.Entity{
		ID: e.nextEntity, Name: name, LockDuration: p.LockDuration, MaxDeliveryCount: uint32(p.MaxDeliveryCount),
		MaxBodyBytes: p.MaxMessageBytes, Created: t.now,
	}, 1)
	e.nextEntity++
	e.add(ent)
	t.batch.PutEntity(&ent.Entity)
	return t.commit()
}

// Info describes a queue at one moment.
type Info struct {
	Name string
	Properties
	// Active counts active messages, locked ones too; the others likewise.
	Active, Scheduled, Deferred, DeadLetter int64
	// OldestDeadLetter is when the dead letter with the lowest sequence number was enqueued;
	// zero if there is none.
	OldestDeadLetter time.Time
	AsOf             time.Time
}

// Queues returns every queue in the order of the names. The counts cost nothing, however
// deep the queues are.
func (e *Engine) Queues() ([]Info, error) {
	t, err := e.begin()
	if err != nil {
		return nil, err
	}
	infos := make([]Info, 0, len(e.byName))
	dead := make(map[string]store.Key, len(e.byName))
	for _, ent := range e.byName {
		infos = append(infos, ent.info(t.now))
		dead[ent.Name] = ent.subs[DeadLetter].key(ent.subs[DeadLetter].lowest())
	}
	view, done := e.view()
	t.end()
	defer done()
	slices.SortFunc(infos, func(a, b Info) int { return strings.Compare(fold(a.Name), fold(b.Name)) })
	for i := range infos {
		if infos[i].DeadLetter == 0 {
			continue
		}
		for m, err := range view.StatesFrom(dead[infos[i].Name]) {
			if errors.Is(err, store.ErrCorrupt) {
				continue
			}
			if err != nil {
				return nil, unavailable(err)
			}
			infos[i].OldestDeadLetter = m.Enqueued
			break
		}
	}
	return infos, nil
}

// Queue returns one queue, without the time of its oldest dead letter.
func (e *Engine) Queue(a Address) (Info, error) {
	t, q, err := e.on(a)
	if err != nil {
		return Info{}, err
	}
	defer t.end()
	return q.of.info(t.now), nil
}

// entity is a queue in memory.
type entity struct {
	store.Entity
	subs     [subs]*queue
	next     uint64 // the next sequence number
	reserved uint64 // the store knows that numbers below it may be in use
}

func newEntity(s store.Entity, next uint64) *entity {
	ent := &entity{Entity: s, next: next, reserved: next}
	for i := range ent.subs {
		ent.subs[i] = newQueue(ent, Sub(i))
	}
	return ent
}

func (ent *entity) info(now time.Time) Info {
	main, dead := ent.subs[Main], ent.subs[DeadLetter]
	return Info{
		Name: ent.Name,
		Properties: Properties{
			LockDuration: ent.LockDuration, MaxDeliveryCount: int(ent.MaxDeliveryCount), MaxMessageBytes: ent.MaxBodyBytes,
		},
		Active:    main.active(),
		Scheduled: int64(len(main.scheduled)),
		Deferred:  main.deferredCount(),
		// Everything in the sub-queue is a dead letter, whatever its state there.
		DeadLetter: dead.active() + dead.deferredCount(),
		AsOf:       now,
	}
}

// fold is how names compare. They are ASCII.
func fold(name string) string { return strings.ToLower(name) }
