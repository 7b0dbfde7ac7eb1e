package namespace

import (
	"errors"
	"strings"
	"testing"

	"dlq/backends/broker"
)

// TestDefaultsAreAllowed: what an entity gets of which nothing is said is within the limits, and
// the engine takes it.
func TestDefaultsAreAllowed(t *testing.T) {
	for _, tr := range Tiers() {
		e := engine(t)
		for _, kind := range []broker.Kind{broker.Queue, broker.Topic, broker.Subscription} {
			if tr.queuesOnly && kind != broker.Queue {
				continue
			}
			p := tr.Defaults(kind)
			if err := tr.Check(kind, &p); err != nil {
				t.Errorf("%s: %v", tr.Name, err)
			}
			name := map[broker.Kind]string{broker.Queue: "q", broker.Topic: "t", broker.Subscription: "t/Subscriptions/s"}[kind]
			if err := e.Create(name, kind, p); err != nil {
				t.Errorf("%s: %v", tr.Name, err)
			}
		}
	}
}

func TestPartitionedEntitiesAreSixteenTimesAsLarge(t *testing.T) {
	tr := tier(t, "standard")
	p := tr.Defaults(broker.Queue)
	p.MaxSize *= 16
	if err := tr.Check(broker.Queue, &p); !errors.Is(err, broker.ErrInvalid) {
		t.Errorf("16 GB are allowed: %v", err)
	}
	p.Partitioning = true
	if err := tr.Check(broker.Queue, &p); err != nil {
		t.Error(err)
	}
}

func TestRoom(t *testing.T) {
	tr := Tier{Name: "small", Entities: 2, Subscriptions: 1}
	all := []broker.Info{{Name: "q", Kind: broker.Queue}, {Name: "t", Kind: broker.Topic}, {Name: "t/Subscriptions/s", Kind: broker.Subscription}}
	for _, c := range []struct {
		kind broker.Kind
		name string
		all  []broker.Info
		ok   bool
	}{
		{broker.Queue, "r", all, false},
		{broker.Queue, "r", all[1:], true},
		{broker.Subscription, "T/Subscriptions/x", all, false},
		{broker.Subscription, "u/Subscriptions/x", all, true},
	} {
		err := tr.Room(c.kind, c.name, c.all)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrQuota) {
			t.Errorf("room for %s: %v", c.name, err)
		}
	}
}

func TestTierNamed(t *testing.T) {
	if tr, err := TierNamed("Premium"); err != nil || tr.Name != "premium" {
		t.Error(tr.Name, err)
	}
	if _, err := TierNamed("gold"); err == nil || !strings.Contains(err.Error(), "none, basic, standard, premium, emulator") {
		t.Error(err)
	}
}

// TestLimitsNameTheSame: every tier says something about everything.
func TestLimitsNameTheSame(t *testing.T) {
	none := Tiers()[0]
	first := none.Limits()
	for _, tr := range Tiers() {
		for i, l := range tr.Limits() {
			if l.Name != first[i].Name || l.Value == "" {
				t.Errorf("%s: %+v", tr.Name, l)
			}
		}
	}
}

// TestRoomForRules counts what is SQL and what is not.
func TestRoomForRules(t *testing.T) {
	tier, err := TierNamed("standard")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		filter           broker.FilterKind
		sql, correlation int64
		full             bool
	}{
		{broker.SQLFilter, 1999, 100_000, false},
		{broker.SQLFilter, 2000, 0, true},
		{broker.TrueFilter, 2000, 0, true},
		{"", 2000, 0, true},
		{broker.CorrelationFilter, 2000, 99_999, false},
		{broker.CorrelationFilter, 0, 100_000, true},
	} {
		if err := tier.RoomForRule(tt.filter, tt.sql, tt.correlation); errors.Is(err, ErrQuota) != tt.full {
			t.Errorf("%q beside %d and %d: %v", tt.filter, tt.sql, tt.correlation, err)
		}
	}
	if none, _ := TierNamed("none"); none.RoomForRule(broker.SQLFilter, 1e9, 1e9) != nil {
		t.Error("without limits there is none for rules")
	}
}
