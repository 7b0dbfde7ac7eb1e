package amqpd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/cockroachdb/pebble/v2/vfs"

	"dlq/backends/broker"
	"dlq/backends/broker/store"
)

// bench is a server on a socket of this machine.
type bench struct {
	testing.TB
	engine *broker.Engine
	server *Server
	addr   string
}

func newBench(t testing.TB, change func(*Options)) *bench {
	t.Helper()
	s, err := store.Open(vfs.NewMem(), "data")
	if err != nil {
		t.Fatal(err)
	}
	engine, err := broker.Open(broker.Options{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan struct{})
	go func() {
		_ = engine.Run(ctx)
		close(ran)
	}()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Engine: engine, Log: t.Logf}
	if change != nil {
		change(&o)
	}
	b := &bench{TB: t, engine: engine, server: New(o), addr: l.Addr().String()}
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go b.server.ServeConn(nc)
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := b.server.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		stop()
		<-ran
		_ = engine.Close()
	})
	return b
}

func (b *bench) create(name string, kind broker.Kind, change func(*broker.Properties), rules ...broker.Rule) {
	b.Helper()
	p := broker.Defaults(kind, broker.ServiceBus)
	if change != nil {
		change(&p)
	}
	if err := b.engine.Create(name, kind, p, rules...); err != nil {
		b.Fatal(err)
	}
}

// azure returns a client of the Azure SDK for Go.
func (b *bench) azure() *azservicebus.Client {
	b.Helper()
	client, err := azservicebus.NewClientFromConnectionString("Endpoint=sb://"+b.addr+
		";SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;", nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = client.Close(context.Background()) })
	return client
}

func TestAzureSendReceive(t *testing.T) {
	b := newBench(t, nil)
	b.create("orders", broker.Queue, nil)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	client := b.azure()
	sender, err := client.NewSender("orders", nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		err := sender.SendMessage(ctx, &azservicebus.Message{
			MessageID: to.Ptr(fmt.Sprint("m", i)), Body: []byte("hello"), ApplicationProperties: map[string]any{"n": int64(i)},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
	}
	receiver, err := client.NewReceiverForQueue("orders", nil)
	if err != nil {
		t.Fatal(err)
	}
	peeked, err := receiver.PeekMessages(ctx, 10, nil)
	if err != nil || len(peeked) != 3 {
		t.Fatalf("peeked %d messages: %v", len(peeked), err)
	}
	msgs, err := receiver.ReceiveMessages(ctx, 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range msgs {
		if m.MessageID != fmt.Sprint("m", i) || string(m.Body) != "hello" || m.ApplicationProperties["n"] != int64(i) {
			t.Errorf("message %d came as %+v", i, m)
		}
		if err := receiver.DeadLetterMessage(ctx, m, &azservicebus.DeadLetterOptions{
			Reason: to.Ptr("because"), ErrorDescription: to.Ptr("it was time"),
		}); err != nil {
			t.Fatal(err)
		}
	}
	dead, err := client.NewReceiverForQueue("orders", &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
	if err != nil {
		t.Fatal(err)
	}
	msgs, err = dead.ReceiveMessages(ctx, 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range msgs {
		if *m.DeadLetterReason != "because" {
			t.Errorf("the reason came as %v", *m.DeadLetterReason)
		}
		if err := dead.CompleteMessage(ctx, m, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAzureMissingEntity(t *testing.T) {
	b := newBench(t, nil)
	client := b.azure()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	sender, err := client.NewSender("missing", nil)
	if err != nil {
		t.Fatal(err)
	}
	err = sender.SendMessage(ctx, &azservicebus.Message{}, nil)
	var known *azservicebus.Error
	if !errors.As(err, &known) || known.Code != azservicebus.CodeNotFound || !strings.Contains(err.Error(), "could not be found") {
		t.Errorf("sending to an entity that is missing ended with %v", err)
	}
}

// TestAzureWhenMemoryIsShort: what is sent is stored, and what is received settled.
func TestAzureWhenMemoryIsShort(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Short = func() bool { return true } })
	b.create("orders", broker.Queue, nil)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	client := b.azure()
	sender, err := client.NewSender("orders", nil)
	if err != nil {
		t.Fatal(err)
	}
	const many = 20
	sent := make(chan error, many)
	for range many {
		go func() {
			sent <- sender.SendMessage(ctx, &azservicebus.Message{Body: make([]byte, 100_000)}, nil)
		}()
	}
	for range many {
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
	}
	receiver, err := client.NewReceiverForQueue("orders", nil)
	if err != nil {
		t.Fatal(err)
	}
	for got := 0; got < many; {
		msgs, err := receiver.ReceiveMessages(ctx, many, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range msgs {
			if err := receiver.CompleteMessage(ctx, m, nil); err != nil {
				t.Fatal(err)
			}
		}
		got += len(msgs)
	}
}
