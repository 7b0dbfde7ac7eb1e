package amqpd

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"dlq/backends/amqp"
	"dlq/backends/broker"
	"dlq/backends/broker/sas"
	"dlq/backends/message"
)

// guardedBench is a server that looks at tokens.
func guardedBench(t *testing.T, change func(*Options)) *bench {
	t.Helper()
	return newBench(t, func(o *Options) {
		o.Gate = &sas.Gate{Mode: sas.Require, Keyring: sas.NewKeyring()}
		if change != nil {
			change(o)
		}
	})
}

// Queues are made on request only for those who may use them.
func TestNoQueueWithoutClaim(t *testing.T) {
	b := guardedBench(t, func(o *Options) { o.CreateOnAttach = true })
	for _, address := range []string{"new", "new/$management"} {
		for _, role := range []bool{amqp.RoleSender, amqp.RoleReceiver} {
			p := b.begin()
			p.send(0, &amqp.Attach{
				Name: "l", Role: role, Source: &amqp.Source{Address: message.String(address)}, Target: &amqp.Target{Address: message.String(address)},
			}, nil)
			want[*amqp.Attach](p)
			p.wantError(want[*amqp.Detach](p).Error, "amqp:unauthorized-access")
			if _, err := b.engine.Entity("new"); !errors.Is(err, broker.ErrNoEntity) {
				t.Fatalf("%s: a queue was made (%v)", address, err)
			}
		}
	}
}

// A link that sends by way of another entity needs both claims for as long as it lives.
func TestClaimOnTheWay(t *testing.T) {
	var now atomic.Int64
	now.Store(time.Now().Unix())
	b := guardedBench(t, func(o *Options) { o.Now = func() time.Time { return time.Unix(now.Load(), 0) } })
	b.create("way", broker.Queue, nil)
	b.create("goal", broker.Queue, nil)
	p := b.begin()
	b.server.mu.Lock()
	var c *conn
	for c = range b.server.conns {
	}
	b.server.mu.Unlock()
	grant := func(resource string, d time.Duration) {
		c.grant(sas.Claim{KeyName: "k", Resource: resource, Rights: sas.Send, Expires: time.Unix(now.Load(), 0).Add(d)})
	}
	grant("way", time.Minute)
	grant("goal", time.Hour)
	p.send(0, &amqp.Attach{
		Name: "s", Source: &amqp.Source{}, Target: &amqp.Target{Address: message.String("way")},
		Properties: message.Map{{Key: message.Symbol("com.microsoft:transfer-destination-address"), Value: message.String("goal")}},
	}, nil)
	if a := want[*amqp.Attach](p); a.Target == nil {
		t.Fatal("the link was refused")
	}
	now.Add(120)
	c.mu.Lock()
	c.checkClaims()
	c.mu.Unlock()
	p.wantError(want[*amqp.Detach](p).Error, "amqp:unauthorized-access")
}
