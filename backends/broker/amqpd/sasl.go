package amqpd

import (
	"bytes"
	"errors"
	"fmt"

	"dlq/backends/amqp"
	"dlq/backends/broker/sas"
	"dlq/backends/message"
)

// mechanisms are how a peer may say who it is. Only PLAIN says it; the others leave that
// to the tokens that are put afterwards. MSSBCBS is how .NET and Java announce that.
// EXTERNAL comes last: a client that can choose it does so only with a certificate.
var mechanisms = []message.Symbol{"MSSBCBS", "PLAIN", "ANONYMOUS", "EXTERNAL"}

// authenticate exchanges protocol headers, with or without SASL (part 5, 5.3).
func (c *conn) authenticate(r *frameReader) error {
	header, err := r.header()
	if err != nil {
		return err
	}
	if header == amqp.SASLHeader {
		if err := c.sasl(r); err != nil {
			return err
		}
		if header, err = r.header(); err != nil {
			return err
		}
	}
	if header != amqp.ProtocolHeader {
		_, _ = c.nc.Write([]byte(amqp.SASLHeader)) // what it is to say instead
		return fmt.Errorf("unknown protocol header %q", header)
	}
	_, err = c.nc.Write([]byte(amqp.ProtocolHeader))
	return err
}

func (c *conn) sasl(r *frameReader) error {
	out, err := amqp.AppendFrame([]byte(amqp.SASLHeader), amqp.FrameSASL, 0, &amqp.SASLMechanisms{Mechanisms: mechanisms}, nil)
	if err != nil {
		return err
	}
	if _, err := c.nc.Write(out); err != nil {
		return err
	}
	h, body, err := r.next(func() {})
	if err != nil {
		return err
	}
	p, _, err := amqp.DecodePerformative(body)
	if err != nil {
		return err
	}
	init, ok := p.(*amqp.SASLInit)
	if !ok || h.Type != amqp.FrameSASL {
		return errors.New("the peer chose no SASL mechanism")
	}
	refused := c.identify(init)
	outcome := amqp.SASLOutcome{}
	if refused != nil {
		outcome.Code = 1
	}
	if out, err = amqp.AppendFrame(nil, amqp.FrameSASL, 0, &outcome, nil); err != nil {
		return err
	}
	_, err = c.nc.Write(out)
	return errors.Join(refused, err)
}

// identify takes the peer's word for who it is, or not.
func (c *conn) identify(init *amqp.SASLInit) error {
	switch init.Mechanism {
	case "MSSBCBS", "ANONYMOUS", "EXTERNAL":
		return nil
	case "PLAIN":
		fields := bytes.SplitN(init.InitialResponse, []byte{0}, 3)
		if len(fields) != 3 {
			return errors.New("the response of PLAIN has the form NUL name NUL password")
		}
		if c.srv.gate == nil {
			return nil
		}
		claim, err := c.srv.gate.Plain(string(fields[1]), string(fields[2]))
		if err != nil {
			return fmt.Errorf("the name or password of PLAIN is wrong: %w", err)
		}
		c.grant(claim)
		return nil
	}
	return fmt.Errorf("unknown SASL mechanism %q", init.Mechanism)
}

// grant remembers what a token allows. Source:
// https://learn.microsoft.com/azure/service-bus-messaging/service-bus-amqp-protocol-guide
func (c *conn) grant(claim sas.Claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.claims == nil {
		c.claims = map[claimKey]sas.Claim{}
	}
	const most = 4096 // tokens that a peer may hold
	key := claimKey{claim.Resource, claim.KeyName}
	if _, known := c.claims[key]; !known && len(c.claims) >= most {
		for other := range c.claims {
			delete(c.claims, other)
			break
		}
	}
	c.claims[key] = claim
}

// claimKey tells the tokens of a peer apart: a newer one with the same key replaces it.
type claimKey struct{ resource, key string }

// may returns an error if no claim gives the peer a right on an entity.
func (c *conn) may(entity string, right sas.Rights) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mayLocked(entity, right)
}

func (c *conn) mayLocked(entity string, right sas.Rights) error {
	if c.srv.unguarded() {
		return nil
	}
	now := c.srv.now()
	for _, claim := range c.claims {
		if claim.Allows(entity, right) && (claim.Expires.IsZero() || now.Before(claim.Expires)) {
			return nil
		}
	}
	return c.srv.unauthorized(entity, right)
}

// checkClaims detaches the links that no claim allows any more.
func (c *conn) checkClaims() {
	if c.srv.unguarded() {
		return
	}
	for _, s := range c.sessions {
		for _, l := range s.links {
			e := l.common()
			if e.node != entityNode || e.refused {
				continue
			}
			err := c.mayLocked(path(e.addr), e.right)
			if in, ok := l.(*intake); ok && in.via != nil && err == nil {
				err = c.mayLocked(path(*in.via), e.right)
			}
			if err != nil {
				e.detach(c.srv.failed(err, path(e.addr)))
			}
		}
	}
	c.flushLocked()
}
