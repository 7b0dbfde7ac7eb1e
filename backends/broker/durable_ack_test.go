package broker

import (
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"dlq/backends/broker/store"
	"dlq/backends/message"
)

// A duplicate of a message, and a second delete of one, are answered when the first is durable: if
// that is lost, nobody was told otherwise.
// Source: reliability.md §2, I1.
func TestRepetitionsWaitForTheFirst(t *testing.T) {
	for _, name := range []string{"send", "delete"} {
		armed := false
		reached, release := make(chan struct{}), make(chan struct{})
		fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
			if armed && (op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo) {
				select {
				case <-reached:
				default:
					close(reached)
				}
				<-release
				return errors.New("injected")
			}
			return nil
		}))
		s, err := store.Open(fs, "data")
		if err != nil {
			t.Fatal(err)
		}
		e, err := Open(Options{Store: s})
		if err != nil {
			t.Fatal(err)
		}
		p := Defaults(Queue, SQS)
		p.setFIFO(true)
		p.ContentDeduplication = true
		q := Address{Name: "q.fifo"}
		if err := e.Create(q.Name, Queue, p); err != nil {
			t.Fatal(err)
		}
		group := "g"
		do := func() error {
			_, err := refusals(e.Send(q, []*message.Message{{ID: message.String("a"), SessionID: &group, Body: message.DataBody([]byte("x"))}}))
			return err
		}
		if name == "delete" {
			if err := do(); err != nil {
				t.Fatal(err)
			}
			msgs, err := e.Receive(q, ReceiveOptions{})
			if err != nil || len(msgs) != 1 {
				t.Fatal(msgs, err)
			}
			do = func() error {
				_, err := e.SettleDelivery(q, Outcome{Action: Complete}, receipt(msgs[0]))
				return err
			}
		}
		armed = true
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- do() }()
		<-reached
		go func() { second <- do() }()
		select {
		case err := <-second:
			t.Errorf("%s: the second was answered before the first was durable: %v", name, err)
			second <- err
		case <-time.After(50 * time.Millisecond): // it waits, as it should
		}
		close(release)
		if err := <-first; !errors.Is(err, ErrUncertain) {
			t.Errorf("%s: the first: %v", name, err)
		}
		if err := <-second; err == nil {
			t.Errorf("%s: the second was told that it is done", name)
		}
		_ = e.Close() // says what failed
	}
}
