package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"dlq/backends"
	"dlq/backends/broker"
	"dlq/backends/broker/store"
	"dlq/backends/message"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Options say which broker to open. The zero value is an empty one in memory.
type Options struct {
	// Dir holds the data. It is made if it is missing (0700). "": memory, gone at Close.
	Dir string
	// FS is where Dir is. nil: the operating system's file system, where the directory is
	// guarded against a second owner.
	FS store.FS
	// Now is the clock of the broker. nil: time.Now.
	Now func() time.Time
	// Command is what another process is told when it wants the directory.
	Command string
	// Stay says that Dir is to be owned for long: meanwhile others work with it through this
	// process, by [Connect]. It means nothing without Dir.
	Stay bool
}

// Backend is a broker in this process. It has every optional interface.
type Backend struct {
	engine  *broker.Engine
	now     func() time.Time
	release func() error // gives the directory back
	others  *server      // nil: nobody works through this process

	mu     sync.Mutex
	leases map[*lease]struct{}
	closed bool
}

var (
	_ backends.Backend          = (*Backend)(nil)
	_ backends.Peeker           = (*Backend)(nil)
	_ backends.DirectSettler    = (*Backend)(nil)
	_ backends.DeferredReceiver = (*Backend)(nil)
	_ backends.Mover            = (*Backend)(nil)
	_ backends.Purger           = (*Backend)(nil)
	_ backends.QueueCreator     = (*Backend)(nil)
	_ backends.SendValidator    = (*Backend)(nil)
	_ backends.Router           = (*Backend)(nil)
)

// Open opens a broker. A directory that another process owns is [backends.Locked] after a
// wait of two seconds.
func Open(ctx context.Context, o Options) (*Backend, error) {
	switch {
	case o.FS != nil:
		return openStore(o.FS, o.Dir, o.Now, func() error { return nil })
	case o.Dir == "":
		return openStore(vfs.NewMem(), "memory", o.Now, func() error { return nil })
	}
	release, err := own(ctx, o.Dir, o.Command, nil)
	if err != nil {
		return nil, err
	}
	return openOwned(o, release)
}

// openOwned opens what is in a directory that this process owns.
func openOwned(o Options, release func() error) (*Backend, error) {
	b, err := openStore(vfs.Default, o.Dir, o.Now, release)
	if err != nil || !o.Stay {
		return b, err
	}
	if err := b.listen(o); err != nil {
		return nil, errors.Join(openError(backends.Unavailable, err), b.Close())
	}
	return b, nil
}

// listen lets others work through this process.
func (b *Backend) listen(o Options) error {
	dir, err := filepath.Abs(o.Dir) // for those who are elsewhere
	if err != nil {
		return err
	}
	l, remove, err := listen(dir)
	if err != nil {
		return err
	}
	self := owner{PID: os.Getpid(), Command: o.Command, Since: time.Now().UTC(), Socket: l.Addr().String()}
	b.others = serve(b, l, remove, self)
	return writeOwner(dir, self)
}

// openStore opens a broker. Close, and an error, call release.
func openStore(fs store.FS, dir string, now func() time.Time, release func() error) (*Backend, error) {
	b := &Backend{leases: map[*lease]struct{}{}, release: release, now: now}
	if now == nil {
		b.now = time.Now
	}
	s, err := store.Open(fs, filepath.Join(dir, storeDir))
	if err == nil {
		b.engine, err = broker.Open(broker.Options{Store: s, Now: now})
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}
	if err != nil {
		return nil, errors.Join(openError(backends.Unavailable, err), b.release())
	}
	return b, nil
}

// Engine is the engine behind the backend, for those who serve it to others. It is closed
// with the backend.
func (b *Backend) Engine() *broker.Engine { return b.engine }

// Close ends what others do through this process, releases the leases, syncs, and gives the
// directory back.
func (b *Backend) Close() error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil
	}
	b.closed = true
	open := make([]*lease, 0, len(b.leases))
	for l := range b.leases {
		open = append(open, l)
	}
	b.mu.Unlock()
	var err error
	if b.others != nil {
		err = b.others.close()
	}
	for _, l := range open {
		err = errors.Join(err, l.Release(context.Background()))
	}
	return errors.Join(err, b.engine.Close(), b.release())
}

// Entities lists the queues. The counts are exact.
func (b *Backend) Entities(ctx context.Context, q backends.EntityQuery) iter.Seq2[backends.Entity, error] {
	return func(yield func(backends.Entity, error) bool) {
		list, err := b.entities(ctx, q)
		for _, e := range list {
			if err := ctx.Err(); err != nil {
				yield(backends.Entity{}, err)
				return
			}
			if !yield(e, nil) {
				return
			}
		}
		if err != nil {
			yield(backends.Entity{}, err)
		}
	}
}

func (b *Backend) entities(ctx context.Context, q backends.EntityQuery) ([]backends.Entity, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	infos, err := b.engine.Entities()
	if err != nil {
		return nil, wrap("list", backends.EntityID{}, err)
	}
	slices.SortStableFunc(infos, func(a, b broker.Info) int { return strings.Compare(path(a.Name), path(b.Name)) })
	wanted := make(map[string]bool, len(q.Names))
	var missing error
	for _, n := range q.Names {
		info, err := b.engine.Entity(n)
		if err != nil {
			if missing == nil {
				missing = wrap("list", backends.EntityID{Name: n}, err)
			}
			continue
		}
		wanted[info.Name] = true
	}
	var out []backends.Entity
	for _, info := range infos {
		if len(q.Names) > 0 && !wanted[info.Name] || !strings.HasPrefix(strings.ToLower(info.Name), strings.ToLower(q.Prefix)) {
			continue
		}
		out = append(out, entity(info, q.NoCounts))
	}
	return out, missing
}

// path is a name by which a topic is followed by its subscriptions, and not by what shares
// the first letters of its name.
func path(name string) string { return strings.ReplaceAll(strings.ToLower(name), "/", "\x00") }

func entity(info broker.Info, noCounts bool) backends.Entity {
	id := backends.EntityID{Name: info.Name}
	e := backends.Entity{
		ID: id, Kind: backends.EntityKind(info.Kind), Oldest: info.OldestDeadLetter,
		Counts: backends.Counts{
			Active: info.Active, DeadLetter: info.DeadLetter, TransferDeadLetter: info.TransferDeadLetter,
			Scheduled: info.Scheduled, Deferred: info.Deferred, Delayed: info.Delayed, InFlight: info.InFlight,
			Source: "exact", AsOf: info.AsOf,
		},
		Limits: backends.Limits{
			MaxBodyBytes: info.MaxMessageBytes, LockDuration: info.LockDuration, MaxDeliveryCount: cmp.Or(info.MaxDeliveryCount, info.Redrive.MaxReceives),
		},
		RequiresSession: info.RequiresSession || info.Groups,
	}
	if info.DetectDuplicates {
		e.Deduplication.Window = info.DuplicateWindow
	}
	if info.DetectDuplicates && info.DeduplicationID {
		e.Deduplication.Attribute = broker.DeduplicationIDAttribute
	}
	switch {
	case info.SubQueues && info.Kind != broker.Topic:
		e.DeadLetters = id.DeadLetters()
	case info.Redrive.Target != "":
		e.DeadLetters = backends.EntityID{Name: info.Redrive.Target}
	}
	for _, name := range info.Sources {
		e.Sources = append(e.Sources, backends.EntityID{Name: name})
	}
	if info.Summed {
		e.Counts.Summed, e.Counts.Source = true, "sum of its subscriptions"
	}
	if noCounts {
		e.Counts = backends.Counts{
			Active: -1, DeadLetter: -1, TransferDeadLetter: -1, Scheduled: -1, Deferred: -1, Delayed: -1, InFlight: -1,
			Source: "not asked for",
		}
		e.Oldest = time.Time{}
	}
	return e
}

// CreateQueue makes a queue with the defaults of Service Bus. What could be meant for a
// subscription that is not there is refused.
func (b *Backend) CreateQueue(ctx context.Context, name string) error {
	_, kind, err := b.resolveNew(backends.NewEntity{ID: backends.EntityID{Name: name}})
	if err == nil && kind == broker.Subscription {
		err = fmt.Errorf("%w: it has the name of a subscription", broker.ErrInvalid)
	}
	if err != nil {
		return wrap("create queue", backends.EntityID{Name: name}, err)
	}
	return b.CreateQueueWith(ctx, name, broker.Defaults(broker.Queue, broker.ServiceBus))
}

// CreateQueueWith makes a queue with these properties.
func (b *Backend) CreateQueueWith(ctx context.Context, name string, p broker.Properties) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return wrap("create queue", backends.EntityID{Name: name}, b.engine.Create(name, broker.Queue, p))
}

// Send stores the messages in one commit. For a queue of SQS they have to be messages of SQS.
func (b *Backend) Send(ctx context.Context, id backends.EntityID, msgs []*message.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := b.checkAll(id, msgs); err != nil {
		return err
	}
	return b.send(ctx, id, msgs)
}

// send stores what the engine takes.
func (b *Backend) send(ctx context.Context, id backends.EntityID, msgs []*message.Message) error {
	a, err := address(ctx, "send to", id)
	if err != nil {
		return err
	}
	sent, err := b.engine.Send(a, msgs)
	errs := make([]error, len(sent))
	for i, s := range sent {
		errs[i] = s.Err
	}
	return wrapAll("send to", id, errs, err)
}

// ValidateSend says what Send would say.
func (b *Backend) ValidateSend(ctx context.Context, id backends.EntityID, m *message.Message) error {
	if err := b.validateSend(ctx, id, m); err != nil || m == nil {
		return err
	}
	return backends.ItemErrors(b.checkAll(id, []*message.Message{m}), 1)[0]
}

// validateSend says what the engine would say.
func (b *Backend) validateSend(ctx context.Context, id backends.EntityID, m *message.Message) error {
	a, err := address(ctx, "send to", id)
	if err != nil {
		return err
	}
	return wrap("send to", id, b.engine.ValidateSend(a, m))
}

// address translates an entity's name, and is where a call that is cancelled ends: the
// engine's commands are short and are not interrupted.
func address(ctx context.Context, op string, id backends.EntityID) (broker.Address, error) {
	if err := ctx.Err(); err != nil {
		return broker.Address{}, err
	}
	switch id.Sub {
	case backends.Main:
		return broker.Address{Name: id.Name}, nil
	case backends.DeadLetterQueue:
		return broker.Address{Name: id.Name, Sub: broker.DeadLetter}, nil
	case backends.TransferDeadLetterQueue:
		return broker.Address{Name: id.Name, Sub: broker.TransferDeadLetter}, nil
	}
	return broker.Address{}, &backends.Error{Op: op, Entity: id, Code: backends.NotFound}
}

// codeOf pairs the engine's errors with those of the interface.
func codeOf(err error) backends.Code {
	for _, c := range [...]struct {
		err  error
		code backends.Code
	}{
		{broker.ErrNoEntity, backends.NotFound},
		{broker.ErrNoMessage, backends.NotFound},
		{broker.ErrNoSession, backends.NotFound},
		{broker.ErrExists, backends.AlreadyExists},
		{broker.ErrInvalid, backends.Invalid},
		{broker.ErrDuplicate, backends.Duplicate},
		{broker.ErrUnrouted, backends.Unrouted},
		{broker.ErrFilter, backends.Invalid},
		{broker.ErrDisabled, backends.Denied},
		{broker.ErrQuota, backends.TooLarge},
		{broker.ErrFull, backends.Unavailable},
		{broker.ErrInFlight, backends.Throttled},
		{broker.ErrUnsupported, backends.Unsupported},
		{broker.ErrNotSent, backends.NotTried},
		{broker.ErrTooLarge, backends.TooLarge},
		{broker.ErrLockLost, backends.LockLost},
		{broker.ErrSessionLockLost, backends.LockLost},
		{broker.ErrLocked, backends.Locked},
		{broker.ErrUncertain, backends.Unknown},
	} {
		if errors.Is(err, c.err) {
			return c.code
		}
	}
	return backends.Unavailable
}

func wrap(op string, id backends.EntityID, err error) error {
	if err == nil {
		return nil
	}
	code := codeOf(err)
	if code == backends.Unsupported {
		err = fmt.Errorf("%w: %w", err, errors.ErrUnsupported)
	}
	return &backends.Error{Op: op, Entity: id, Code: code, Err: shorter(err)}
}

// shorter leaves out of an error's text what the code says already.
func shorter(err error) error {
	for _, said := range [...]error{broker.ErrInvalid, broker.ErrExists} {
		if rest, ok := strings.CutPrefix(err.Error(), said.Error()+": "); ok {
			return shortened{err, rest}
		}
	}
	return err
}

// shortened is an error with another text.
type shortened struct {
	error
	text string
}

func (s shortened) Error() string { return s.text }
func (s shortened) Unwrap() error { return s.error }

// wrapAll is wrap for a call about several messages.
func wrapAll(op string, id backends.EntityID, errs []error, err error) error {
	if err != nil {
		return wrap(op, id, err)
	}
	for i := range errs {
		errs[i] = wrap(op, id, errs[i])
	}
	return backends.Batch(errs)
}
