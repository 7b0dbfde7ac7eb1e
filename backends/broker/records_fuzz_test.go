package broker

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"dlq/backends/broker/store"
	"dlq/backends/message"
)

// The fuzz targets of what the engine makes of stored records. Those of the properties of an
// entity are beside their table.

// asStored is a record as bytes; the order of its attributes means nothing.
func asStored(n store.Named) []byte {
	as := slices.Clone(n.Attributes)
	slices.SortStableFunc(as, func(a, b message.Attribute) int { return strings.Compare(a.Name, b.Name) })
	return message.AppendAttributes([]byte(n.Name+"\x00"), as)
}

// FuzzDecodeRule: a rule that can be run again is written so that it is the same rule.
func FuzzDecodeRule(f *testing.F) {
	for _, r := range ruleBook() {
		c, err := compileRule(r.Rule)
		if err != nil {
			f.Fatal(err)
		}
		c.Created = epoch
		f.Add(message.AppendAttributes(nil, c.stored(1).Attributes))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		attrs, err := message.DecodeAttributes(b)
		if err != nil {
			return
		}
		r, err := decodeRule(store.Named{Entity: 1, Attributes: attrs})
		if err != nil {
			return
		}
		stored := r.stored(1)
		again, err := decodeRule(stored)
		if err != nil {
			t.Fatalf("rule %+v is not read again: %v", r.Rule, err)
		}
		if !bytes.Equal(asStored(stored), asStored(again.stored(1))) {
			t.Fatalf("got %+v, want %+v", again.Rule, r.Rule)
		}
	})
}

// FuzzDecodeTask: a move task goes on after a restart as what it was.
func FuzzDecodeTask(f *testing.F) {
	s, err := store.OpenMemory()
	if err != nil {
		f.Fatal(err)
	}
	e, err := Open(Options{Store: s, Now: func() time.Time { return epoch }})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = e.Close() })
	if err := e.Create("dead", Queue, Defaults(Queue, SQS)); err != nil {
		f.Fatal(err)
	}
	ent := e.entity("dead")
	load := func(t *testing.T, n store.Named) *task {
		b := s.NewBatch()
		b.PutTask(n)
		if err := s.ApplyLazily(b); err != nil {
			t.Fatal(err)
		}
		e.tasks, e.timers = nil, timers{}
		if err := e.loadTasks(); err != nil {
			t.Fatal(err)
		}
		if len(e.tasks) != 1 {
			t.Fatalf("%d tasks were read", len(e.tasks))
		}
		return e.tasks[0]
	}
	x := &task{source: ent, through: 9, MoveTask: MoveTask{
		ID: "id", Source: "dead", Destination: "to", Rate: 5, Status: TaskRunning, Moved: 1, ToMove: 2, Started: epoch, Failure: "why",
	}}
	f.Add(message.AppendAttributes(nil, x.stored().Attributes))
	f.Add(message.AppendAttributes(nil, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		attrs, err := message.DecodeAttributes(b)
		if err != nil {
			return
		}
		first := load(t, store.Named{Entity: ent.id, Name: "id", Attributes: attrs}).stored()
		second := load(t, first)
		if !bytes.Equal(asStored(first), asStored(second.stored())) {
			t.Fatalf("got %+v, want %+v", second.MoveTask, first)
		}
		if running := second.Status == TaskRunning; (e.timers.first() != nil) != running {
			t.Fatalf("the task is %s, and its timer is %v", second.Status, e.timers.first())
		}
	})
}
