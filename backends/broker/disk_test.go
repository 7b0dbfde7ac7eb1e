package broker

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dlq/backends/broker/store"
	"dlq/backends/broker/store/storetest"
	"dlq/backends/message"
)

// A disk that is nearly full refuses what would fill it and says so; receiving and settling
// go on in the room that is kept for them, nothing is lost, and sends work again as soon as
// there is room, without a restart.
func TestFullDisk(t *testing.T) {
	const disk = store.Reserve + 48<<20
	quota := storetest.NewQuota(vfs.NewMem(), disk)
	s, err := store.Open(quota, "data")
	if err != nil {
		t.Fatal(err)
	}
	e, err := Open(Options{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close() }()
	a := Address{Name: "orders"}
	if err := e.Create(a.Name, Queue, Defaults(Queue, ServiceBus)); err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	send := func() error {
		body := make([]byte, 256<<10)
		for i := range body {
			body[i] = byte(rnd.Uint32()) // or the tables would be small
		}
		_, err := e.Send(a, []*message.Message{{Body: message.DataBody(body)}})
		return err
	}
	sent := 0
	for ; err == nil; sent++ {
		if sent > 2*disk/(256<<10) {
			t.Fatal("the disk is never full")
		}
		err = send()
	}
	sent--
	if !errors.Is(err, ErrFull) {
		t.Fatalf("a send to a full disk: %v", err)
	}
	if err := e.ValidateSend(a, &message.Message{}); !errors.Is(err, ErrFull) {
		t.Errorf("validating it: %v", err)
	}
	for n := range sent / 2 {
		m, err := one(e.Receive(a, ReceiveOptions{}))
		if err != nil || m == nil {
			t.Fatalf("receive %d of %d: %v, %v", n, sent, m, err)
		}
		action := []Action{Complete, Bury}[n%2]
		if errs, err := e.Settle(a, Outcome{Action: action}, m.Broker.LockToken); err != nil || errs[0] != nil {
			t.Fatalf("settle %d: %v, %v", n, errs, err)
		}
	}
	quota.Resize(2 * disk)
	if err := send(); err != nil {
		t.Errorf("with room again: %v", err)
	}
	info, err := e.Entity(a.Name)
	if want := int64(sent - sent/2 + 1); err != nil || info.Active != want || info.DeadLetter != int64(sent/2/2) {
		t.Errorf("%d active, %d dead letters of %d sent; %v", info.Active, info.DeadLetter, sent+1, err)
	}
}
