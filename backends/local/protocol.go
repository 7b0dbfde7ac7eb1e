package local

import (
	"context"
	"errors"
	"fmt"
	"io"

	"dlq/backends"
	"dlq/backends/message"
)

// The protocol between the owner of a data directory and the others is a call at a time on
// a connection: a request, and a reply or several. Calls at the same time have connections of
// their own. Who closes his connection cancels his call, or lets go of his lease.

// protocolVersion is raised when a request, a reply or the binary form of a message
// changes. Both ends must have the same.
const protocolVersion = 1

// magic begins a connection: on this socket nobody else has business.
const magic = "dlq local"

// hello is what both ends tell about themselves.
type hello struct {
	Magic    string
	Protocol int
	Build    string
	Owner    owner // empty from a client
}

func (h *hello) code(c *codec) {
	c.text(&h.Magic)
	number(c, &h.Protocol)
	c.text(&h.Build)
	number(c, &h.Owner.PID)
	c.text(&h.Owner.Command)
	c.instant(&h.Owner.Since)
}

// operation is what a request asks for.
type operation uint8

const (
	opEntities operation = iota + 1
	opSend
	opLease
	opLeaseDeferred
	opNext
	opSettle
	opRelease
	opPeek
	opSettleDirect
	opMove
	opPurge
	opCreateQueue
	opValidateSend
	opRoute
	opCreateEntity
	opDescribeEntity
	opChangeEntity
	opDeleteEntity
	opAddRule
	opRemoveRule
)

// operations say what each is called in errors, and whether it changes anything: then its
// outcome is unknown when the answer is lost.
func (o operation) about() (name string, changes bool) {
	all := [...]struct {
		name    string
		changes bool
	}{
		opEntities: {"list", false}, opSend: {"send to", true},
		opLease: {"receive from", false}, opLeaseDeferred: {"receive from", false}, opNext: {"receive from", false},
		opSettle: {"settle in", true}, opRelease: {"release", false},
		opPeek: {"peek", false}, opSettleDirect: {"settle in", true}, opMove: {"move from", true}, opPurge: {"purge", true},
		opCreateQueue: {"create queue", true}, opValidateSend: {"send to", false}, opRoute: {"route to", false},
		opCreateEntity: {"create", true}, opDescribeEntity: {"describe", false}, opChangeEntity: {"change", true},
		opDeleteEntity: {"delete", true}, opAddRule: {"add a rule to", true}, opRemoveRule: {"remove a rule from", true},
	}
	if int(o) >= len(all) {
		return "", false
	}
	return all[o].name, all[o].changes
}

// request is a call of any method: what the method does not take is empty, and travels as a
// byte.
type request struct {
	Op       operation
	Entity   backends.EntityID
	Lease    uint64
	Batch    uint64 // of opNext, from 1: the owner keeps the last, should its answer be lost
	Max      int
	Session  *string
	From     int64
	NoBody   bool
	Seqs     []int64
	Outcome  backends.Outcome
	Tokens   []message.UUID
	Messages []*message.Message
	Moves    []backends.Move
	Query    backends.EntityQuery
	Kind     backends.EntityKind
	Settings []backends.Setting
	Rules    []backends.Rule
	Name     string
}

func (r *request) code(c *codec) {
	number(c, &r.Op)
	c.entity(&r.Entity)
	number(c, &r.Lease)
	number(c, &r.Batch)
	number(c, &r.Max)
	optional(c, &r.Session, c.text)
	number(c, &r.From)
	c.flag(&r.NoBody)
	list(c, &r.Seqs, func(n *int64) { number(c, n) })
	number(c, &r.Outcome.Action)
	c.text(&r.Outcome.Reason)
	c.text(&r.Outcome.Description)
	c.attributes(&r.Outcome.Set)
	list(c, &r.Tokens, c.uuid)
	list(c, &r.Messages, c.message)
	list(c, &r.Moves, func(m *backends.Move) {
		number(c, &m.Seq)
		c.entity(&m.To)
		c.message(&m.As)
		c.flag(&m.Keep)
		c.flag(&m.AllowUnrouted)
	})
	c.text(&r.Query.Prefix)
	list(c, &r.Query.Names, c.text)
	c.flag(&r.Query.NoCounts)
	c.text((*string)(&r.Kind))
	list(c, &r.Settings, func(s *backends.Setting) {
		c.text(&s.Name)
		c.text(&s.Value)
	})
	list(c, &r.Rules, c.rule)
	c.text(&r.Name)
}

func (c *codec) rule(r *backends.Rule) {
	c.text(&r.Name)
	c.text(&r.Filter)
	c.attributes(&r.Correlation)
	c.text(&r.Action)
}

// reply is the answer to any call, or a part of it.
type reply struct {
	More        bool // another one follows
	Err         error
	Lease       uint64
	Count       int64
	Messages    []*message.Message
	Entities    []backends.Entity
	IDs         []backends.EntityID
	Description backends.EntityDescription
}

func (r *reply) code(c *codec) {
	c.flag(&r.More)
	c.failure(&r.Err, false)
	number(c, &r.Lease)
	number(c, &r.Count)
	list(c, &r.Messages, c.message)
	list(c, &r.Entities, c.listed)
	list(c, &r.IDs, c.entity)
	d := &r.Description
	c.entity(&d.ID)
	c.text((*string)(&d.Kind))
	list(c, &d.Properties, func(p *backends.Property) {
		c.text(&p.Name)
		c.text(&p.Value)
		c.text(&p.Default)
		c.text(&p.Range)
		c.flag(&p.Immutable)
	})
	list(c, &d.Rules, c.rule)
	c.instant(&d.Created)
	c.instant(&d.Modified)
}

// listed takes an entity of a list.
func (c *codec) listed(e *backends.Entity) {
	c.entity(&e.ID)
	c.text((*string)(&e.Kind))
	for _, n := range [...]*int64{
		&e.Counts.Active, &e.Counts.DeadLetter, &e.Counts.TransferDeadLetter, &e.Counts.Scheduled,
		&e.Counts.Deferred, &e.Counts.Delayed, &e.Counts.InFlight,
	} {
		number(c, n)
	}
	c.flag(&e.Counts.Summed)
	c.text(&e.Counts.Source)
	c.instant(&e.Counts.AsOf)
	c.entity(&e.DeadLetters)
	list(c, &e.Sources, c.entity)
	c.instant(&e.Oldest)
	number(c, &e.Limits.MaxBodyBytes)
	number(c, &e.Limits.LockDuration)
	number(c, &e.Limits.MaxDeliveryCount)
	c.flag(&e.RequiresSession)
	number(c, &e.Deduplication.Window)
	c.text(&e.Deduplication.Attribute)
}

// The kinds of errors that travel.
const (
	noError     uint8 = iota
	codedError        // *backends.Error
	batchError        // *backends.BatchError
	endOfSweep        // io.EOF
	canceledErr       // of the context of the call: by the owner, who stops, since a client who cancels does not listen
	otherError        // any other, as text
)

// errStopping is what a call says that was canceled by the owner.
var errStopping = errors.New("its owner stopped in the middle of it")

// failure takes an error: codes and indices stay, causes become text. item says that it
// belongs to one message of several.
func (c *codec) failure(p *error, item bool) {
	kind := kindOf(*p)
	number(c, &kind)
	switch kind {
	case noError:
	case codedError:
		var e *backends.Error
		if c.reading {
			e = &backends.Error{}
			*p = e
		} else {
			e, _ = errors.AsType[*backends.Error](*p)
		}
		c.codedError(e)
	case batchError:
		if item {
			c.fail("an error about several messages within another")
			return
		}
		var b *backends.BatchError
		if c.reading {
			b = &backends.BatchError{}
			*p = b
		} else {
			b, _ = errors.AsType[*backends.BatchError](*p)
		}
		c.batchError(b)
	case endOfSweep:
		*p = io.EOF
	case canceledErr:
		*p = errStopping
	case otherError:
		var text string
		if !c.reading {
			text = (*p).Error()
		}
		c.text(&text)
		*p = errors.New(text)
	default:
		c.fail("an error of kind %d", kind)
	}
}

func kindOf(err error) uint8 {
	if err == nil {
		return noError
	}
	if _, batch := errors.AsType[*backends.BatchError](err); batch {
		return batchError
	}
	if _, coded := errors.AsType[*backends.Error](err); coded {
		return codedError
	}
	switch {
	case errors.Is(err, io.EOF):
		return endOfSweep
	case errors.Is(err, context.Canceled), errors.Is(err, errStopping):
		return canceledErr
	}
	return otherError
}

func (c *codec) codedError(e *backends.Error) {
	c.text(&e.Op)
	c.entity(&e.Entity)
	number(c, &e.Code)
	var text *string
	if e.Err != nil {
		text = new(e.Err.Error())
	}
	optional(c, &text, c.text)
	switch {
	case !c.reading || text == nil:
	case e.Code == backends.Unsupported:
		e.Err = shortened{errors.ErrUnsupported, *text}
	default:
		e.Err = errors.New(*text)
	}
}

func (c *codec) batchError(b *backends.BatchError) {
	list(c, &b.Failed, func(f *backends.ItemError) {
		number(c, &f.Index)
		c.failure(&f.Err, true)
		if c.reading && c.err == nil && f.Err == nil {
			c.fail("a message has failed without an error")
		}
	})
	last := -1
	for _, f := range b.Failed {
		if f.Index <= last {
			c.fail("message %d after message %d", f.Index, last)
			return
		}
		last = f.Index
	}
	if len(b.Failed) == 0 {
		c.fail("no message has failed")
	}
}

// coded is what travels in a frame.
type coded interface{ code(c *codec) }

func encode(v coded) ([]byte, error) {
	c := &codec{}
	v.code(c)
	return c.buf, c.err
}

func decode(b []byte, v coded) error {
	c := &codec{buf: b, reading: true}
	v.code(c)
	if err := c.done(); err != nil {
		return fmt.Errorf("malformed frame: %w", err)
	}
	return nil
}
