package local_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"dlq/backends"
	"dlq/backends/broker/amqpd"
	"dlq/backends/local"
	"dlq/backends/message"
	"dlq/resubmit"
)

const besideMessages = 1500

var (
	besideSource = backends.EntityID{Name: "orders", Sub: backends.DeadLetterQueue}
	besideTarget = backends.EntityID{Name: "orders-retry"}
	complete     = backends.Outcome{Action: backends.Complete}
)

// TestBesideEachOther: two UIs, one of them the owner, and a client of the Azure SDK remove dead
// letters while a job resubmits all there are. At the end every message is in one place, and everybody's account of
// what he did agrees with that.
func TestBesideEachOther(t *testing.T) {
	for _, core := range []bool{false, true} {
		name := "atomic moves"
		if core {
			name = "core interface"
		}
		t.Run(name, func(t *testing.T) { beside(t, core) })
	}
}

// coreOnly shows nothing but the core interface, so that a job sends and completes.
type coreOnly struct{ backends.Backend }

func beside(t *testing.T, core bool) {
	dir := t.TempDir()
	owner, err := local.Open(t.Context(), local.Options{Dir: dir, Command: "first UI", Stay: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = owner.Close() }()
	kill(t, owner)
	second, third := connect(t, dir), connect(t, dir)

	journals, err := resubmit.OpenJournals(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	env := resubmit.Env{Backend: third, Journals: journals, Conn: "local:test"}
	if core {
		env.Backend = coreOnly{third}
	}
	spec := resubmit.Spec{Kind: resubmit.Resubmit, From: besideSource, To: &besideTarget, Selection: resubmit.Selection{All: true}}
	plan, err := resubmit.NewPlan(t.Context(), env, spec)
	if err != nil {
		t.Fatal(err)
	}

	var removed [3]map[string]bool
	var hands sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	hands.Go(func() { removed[0] = removeDirectly(ctx, t, owner) })
	hands.Go(func() { removed[1] = removeUnderLease(ctx, t, second) })
	hands.Go(func() { removed[2] = removeOverAMQP(ctx, t, owner) })
	job, err := resubmit.Run(t.Context(), env, plan, nil)
	stop()
	hands.Wait()
	if err != nil {
		t.Fatal(err)
	}
	account(t, owner, job, removed)
}

// kill makes dead letters.
func kill(t *testing.T, b *local.Backend) {
	t.Helper()
	var msgs []*message.Message
	var seqs []int64
	for i := range besideMessages {
		msgs = append(msgs, &message.Message{ID: message.String(strconv.Itoa(i)), Body: message.DataBody([]byte("body"))})
		seqs = append(seqs, int64(i)+1)
	}
	main := besideSource.MainQueue()
	err := errors.Join(b.CreateQueue(t.Context(), main.Name), b.CreateQueue(t.Context(), besideTarget.Name),
		b.Send(t.Context(), main, msgs), b.SettleDirect(t.Context(), main, backends.Outcome{Action: backends.DeadLetter}, seqs...))
	if err != nil {
		t.Fatal(err)
	}
}

func connect(t *testing.T, dir string) backends.Backend {
	t.Helper()
	b, err := local.Connect(t.Context(), local.Options{Dir: dir, Command: "test", Stay: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	if _, owns := b.(*local.Backend); owns {
		t.Fatal("there are two owners")
	}
	return b
}

// removeDirectly browses from the end and completes every fourth message by its number, as a UI
// does with what is marked in it.
func removeDirectly(ctx context.Context, t *testing.T, b *local.Backend) map[string]bool {
	removed := map[string]bool{}
	for n := int64(besideMessages); n > 0 && ctx.Err() == nil; n -= 4 {
		for m, err := range b.Peek(t.Context(), besideSource, backends.PeekOptions{From: n, Max: 1}) {
			if err != nil {
				t.Error(err)
				return removed
			}
			err := b.SettleDirect(t.Context(), besideSource, complete, m.Broker.SequenceNumber)
			switch {
			case err == nil:
				removed[message.FormatValue(m.ID)] = true
			case !backends.IsCode(err, backends.NotFound) && !backends.IsCode(err, backends.Locked):
				t.Error(err)
			}
		}
	}
	return removed
}

// removeUnderLease takes twenty at a time through the socket, completes half of them, and lets
// the others go.
func removeUnderLease(ctx context.Context, t *testing.T, b backends.Backend) map[string]bool {
	removed := map[string]bool{}
	for ctx.Err() == nil {
		l, err := b.Lease(t.Context(), besideSource, backends.LeaseOptions{Max: 20})
		if err != nil {
			t.Error(err)
			return removed
		}
		for i := 0; ; i++ {
			m, err := l.Next(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Error(err)
				return removed
			}
			if i%2 > 0 {
				continue
			}
			if err := l.Settle(t.Context(), complete, m); err != nil {
				t.Error(err)
				return removed
			}
			removed[message.FormatValue(m.ID)] = true
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
	return removed
}

// account finds every message in exactly one place, and compares that with the report.
func account(t *testing.T, b *local.Backend, r resubmit.Report, removed [3]map[string]bool) {
	t.Helper()
	left, arrived := idsIn(t, b, besideSource), idsIn(t, b, besideTarget)
	for i := range besideMessages {
		id := strconv.Itoa(i)
		places := left[id] + arrived[id]
		for _, r := range removed {
			if r[id] {
				places++
			}
		}
		if places != 1 {
			t.Errorf("message %s: %d at the source, %d at the destination, removed %v, %v and %v",
				id, left[id], arrived[id], removed[0][id], removed[1][id], removed[2][id])
		}
	}
	others := len(r.Skipped) + len(r.Failed) + len(r.Uncertain)
	// What another held when it was to be moved, and has removed since, is not where the journal says.
	unexplained := int(r.Lost)
	for _, item := range r.LostItems {
		if removed[0][item.ID] || removed[1][item.ID] || removed[2][item.ID] {
			unexplained--
		}
	}
	if int(r.Done) != len(arrived) || int(r.Done)+others+int(r.Left+r.Lost) != besideMessages || unexplained != 0 {
		t.Errorf("the report says %d done, %d left, %d lost, %d skipped, %d failed, %d uncertain of %d; %d arrived",
			r.Done, r.Left, r.Lost, len(r.Skipped), len(r.Failed), len(r.Uncertain), besideMessages, len(arrived))
	}
	if len(removed[0])+len(removed[1])+len(removed[2]) == 0 || len(arrived) == 0 {
		t.Errorf("nothing came of somebody: removed %d, %d and %d, moved %d", len(removed[0]), len(removed[1]), len(removed[2]), len(arrived))
	}
	t.Logf("removed %d, %d and %d, moved %d, left %d", len(removed[0]), len(removed[1]), len(removed[2]), len(arrived), len(left))
}

// removeOverAMQP receives with the Azure SDK for Go, completes two of three, and lets go of the
// others by closing.
func removeOverAMQP(ctx context.Context, t *testing.T, b *local.Backend) map[string]bool {
	removed := map[string]bool{}
	server := amqpd.New(amqpd.Options{Engine: b.Engine()})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Error(err)
		return removed
	}
	defer l.Close()
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go server.ServeConn(nc)
		}
	}()
	client, err := azservicebus.NewClientFromConnectionString("Endpoint=sb://"+l.Addr().String()+
		";SharedAccessKeyName=a;SharedAccessKey=b;UseDevelopmentEmulator=true", nil)
	if err != nil {
		t.Error(err)
		return removed
	}
	defer client.Close(context.Background())
	receiver, err := client.NewReceiverForQueue(besideSource.Name, &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
	if err != nil {
		t.Error(err)
		return removed
	}
	for ctx.Err() == nil {
		msgs, err := receiver.ReceiveMessages(ctx, 10, nil)
		if err != nil {
			break // the job has ended, or nothing came until then
		}
		for i, m := range msgs {
			if i%3 == 2 {
				err = receiver.AbandonMessage(context.Background(), m, nil)
			} else if err = receiver.CompleteMessage(context.Background(), m, nil); err == nil {
				removed[m.MessageID] = true
			}
			if err != nil {
				t.Error(err)
			}
		}
	}
	return removed
}

func idsIn(t *testing.T, b *local.Backend, id backends.EntityID) map[string]int {
	t.Helper()
	ids := map[string]int{}
	for m, err := range b.Peek(t.Context(), id, backends.PeekOptions{NoBody: true}) {
		if err != nil {
			t.Fatal(err)
		}
		ids[message.FormatValue(m.ID)]++
	}
	return ids
}
