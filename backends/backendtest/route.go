package backendtest

import (
	"context"
	"slices"
	"strings"
	"time"

	"dlq/backends"
	"dlq/backends/message"
)

func routeCases() []testCase {
	return []testCase{
		{"route/queue", routeQueue},
		{"route/topic", routeTopic},
		{"route/unrouted", routeUnrouted},
		{"route/duplicate", routeDuplicate},
		{"context/route", contextRoute},
	}
}

// wantRoute checks who would get a message.
func (f *fixture) wantRoute(to backends.EntityID, m *message.Message, want ...backends.EntityID) {
	f.Helper()
	got, err := capability[backends.Router](f).Route(f.ctx, to, m)
	if err != nil {
		f.Fatalf("route to %v: %v", to, err)
	}
	order := func(a, b backends.EntityID) int { return strings.Compare(a.String(), b.String()) }
	slices.SortFunc(got, order)
	slices.SortFunc(want, order)
	if !slices.Equal(got, want) {
		f.Errorf("%s sent to %v would rest in %v, want %v", describe(m), to, got, want)
	}
}

// routeQueue: a queue that passes nothing on holds what it is sent; and asking sends nothing.
func routeQueue(f *fixture) {
	r := capability[backends.Router](f)
	id := f.queue()
	m := richMessage()
	f.wantRoute(id, m, id)
	if d := message.Diff(richMessage(), m); d != nil {
		f.Errorf("routing has changed the message in %v", d)
	}
	f.holds(id)
	_, err := r.Route(f.ctx, missing, text("a"))
	f.wantCode("route to nothing", err, backends.NotFound)
}

// routeTopic holds Route against what Send then does.
func routeTopic(f *fixture) {
	capability[backends.Router](f)
	a := f.admin()
	topic, _ := a.topic("news")
	all, red, marked := backends.EntityID{Name: "news/Subscriptions/all"}, backends.EntityID{Name: "news/Subscriptions/red"}, backends.EntityID{Name: "news/Subscriptions/marked"}
	a.create(backends.NewEntity{ID: all, Kind: backends.Subscription})
	filter := backends.Rule{Name: "red", Filter: "colour = 'red'"}
	a.create(backends.NewEntity{ID: red, Kind: backends.Subscription, Rules: []backends.Rule{filter, {Name: "same", Filter: "colour = 'red'"}}})
	a.create(backends.NewEntity{ID: marked, Kind: backends.Subscription, Rules: []backends.Rule{filter, {Name: "marked", Filter: "colour = 'red'", Action: "SET mark = 'x'"}}})
	for colour, want := range map[string][]backends.EntityID{
		"red":   {all, red, marked, marked},
		"green": {all},
	} {
		f.wantRoute(topic, coloured(colour), want...)
		f.send(topic, coloured(colour))
		var got []backends.EntityID
		for _, id := range []backends.EntityID{all, red, marked} {
			for range f.drain(id) {
				got = append(got, id)
			}
		}
		slices.SortFunc(want, func(a, b backends.EntityID) int { return strings.Compare(a.Name, b.Name) })
		slices.SortFunc(got, func(a, b backends.EntityID) int { return strings.Compare(a.Name, b.Name) })
		if !slices.Equal(got, want) {
			f.Errorf("%s was sent and rests in %v, want %v", colour, got, want)
		}
	}
}

// routeUnrouted: what nobody would get is not moved, unless that is what one wants.
func routeUnrouted(f *fixture) {
	mover := capability[backends.Mover](f)
	a := f.admin()
	topic, _ := a.topic("news")
	red := backends.EntityID{Name: "news/Subscriptions/red"}
	a.create(backends.NewEntity{ID: red, Kind: backends.Subscription, Rules: []backends.Rule{{Name: "red", Filter: "colour = 'red'"}}})
	f.wantRoute(topic, coloured("green"))

	from := f.queue()
	dlq, letter := f.deadLetter(from, coloured("green"))
	seq := letter.Broker.SequenceNumber
	for _, keep := range []bool{false, true} {
		err := mover.Move(f.ctx, dlq, []backends.Move{{Seq: seq, To: topic, As: coloured("green"), Keep: keep}})
		f.wantItems("move of what no rule lets through", err, map[int]backends.Code{0: backends.Unrouted})
	}
	s := f.lease(dlq, backends.LeaseOptions{})
	kept := s.next()
	s.end("it is there once")
	s.release()
	if d := message.Diff(letter, kept); d != nil {
		f.Errorf("what could not be moved has changed in %v", d)
	}
	f.move(dlq, backends.Move{Seq: seq, To: topic, As: coloured("green"), AllowUnrouted: true})
	f.holds(dlq)
	f.holds(red)
}

// routeDuplicate: a send of an id that the queue has seen is accepted and dropped, so a move refuses it.
func routeDuplicate(f *fixture) {
	mover, router := capability[backends.Mover](f), capability[backends.Router](f)
	to := f.h.Queue(f, QueueOptions{LockDuration: time.Minute, MaxDeliveryCount: 5, DuplicateWindow: 10 * time.Minute})
	d := f.entity(to).Deduplication
	if d.Window == 0 {
		f.Skip("the queue detects no duplicates")
	}
	from := f.queue()
	if plain := f.entity(from).Deduplication; plain.Window != 0 {
		f.Skip("all queues detect duplicates")
	}
	f.send(to, text("a"))
	f.holds(to, "a")
	f.send(to, text("a"))
	f.holds(to)

	dlq, letter := f.deadLetter(from, text("a"))
	_, err := router.Route(f.ctx, to, text("a"))
	f.wantCode("route of a duplicate", err, backends.Duplicate)
	f.wantRoute(to, text("b"), to)
	again := backends.Move{Seq: letter.Broker.SequenceNumber, To: to, As: text("a")}
	for _, allow := range []bool{false, true} {
		again.AllowUnrouted = allow
		f.wantItems("move of a duplicate", mover.Move(f.ctx, dlq, []backends.Move{again}), map[int]backends.Code{0: backends.Duplicate})
	}
	again.As = text("b")
	f.move(dlq, again)
	f.holds(dlq)
	f.holds(to, "b")

	f.h.Advance(f, d.Window+time.Second)
	f.wantRoute(to, text("a"), to)
	f.send(to, text("a"))
	f.holds(to, "a")
}

func contextRoute(f *fixture) {
	r := capability[backends.Router](f)
	id := f.queue()
	f.canceled("route", func(ctx context.Context) error { _, err := r.Route(ctx, id, text("a")); return err })
}
