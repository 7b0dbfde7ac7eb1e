package sqsd

import (
	"net/http"
	"strings"

	"dlq/backends/broker"
	"dlq/backends/message"
)

// messagesPath is where LocalStack shows the messages of a queue without receiving them, which
// tests of its users rely on.
// Source: https://docs.localstack.cloud/aws/services/sqs/
const messagesPath = "/_aws/sqs/messages"

// The bounds of an answer.
const (
	maxShown      = 10_000
	maxShownBytes = 64 << 20 // of bodies, about
)

// The attributes that only such an answer has.
const (
	isVisible = "IsVisible"
	isDelayed = "IsDelayed"
)

// showsMessages reports whether a request is for that page.
func showsMessages(r *http.Request) bool {
	rest, ok := strings.CutPrefix(r.URL.Path, messagesPath)
	return ok && (rest == "" || rest[0] == '/')
}

// showMessages answers as ReceiveMessage does, and changes nothing. It is asked by a GET, or by an SDK
// that has the page for its endpoint and calls ReceiveMessage. The queue is that of QueueUrl, or of
// the path behind: REGION/ACCOUNT/NAME.
func (c *call) showMessages() error {
	body, err := c.read()
	if err != nil {
		return err
	}
	if _, err := c.authenticate(body); err != nil {
		return err
	}
	if err := c.shown(body); err != nil {
		return err
	}
	if err := c.permit(); err != nil {
		return err
	}
	all, err := c.present()
	if err != nil {
		return err
	}
	q := c.r.URL.Query()
	hidden, delayed := q.Get("ShowInvisible") == "true", q.Get("ShowDelayed") == "true"
	msgs := make([]*message.Message, 0, len(all))
	for _, m := range all {
		waits, held := m.Broker.State == message.Scheduled, !m.Broker.LockedUntil.IsZero()
		if waits && !delayed || held && !hidden {
			continue
		}
		m.System = append(m.System,
			message.Attribute{Name: isVisible, Value: truth(!held && !waits)}, message.Attribute{Name: isDelayed, Value: truth(waits)})
		msgs = append(msgs, m)
	}
	c.in.systemNames, c.in.messageNames = []string{"All"}, []string{"All"}
	c.received(msgs)
	return nil
}

// present returns the messages of the queue, whatever their state.
func (c *call) present() (all []*message.Message, err error) {
	from, size := int64(1), 0
	for len(all) < maxShown && size < maxShownBytes {
		page, err := c.s.Engine.Peek(broker.Address{Name: c.entity}, broker.PeekOptions{From: from, Max: maxShown - len(all)})
		if err != nil || len(page) == 0 {
			return all, err
		}
		for _, m := range page {
			size += m.Body.Len()
		}
		all, from = append(all, page...), page[len(page)-1].Broker.SequenceNumber+1
	}
	return all, nil
}

func truth(v bool) message.String {
	if v {
		return "true"
	}
	return "false"
}

// shown finds the queue and says how the answer is to be written.
func (c *call) shown(body []byte) error {
	if c.r.Method == http.MethodPost {
		f, err := c.identify(body)
		if err != nil {
			return err
		}
		if c.name != "ReceiveMessage" {
			return plain(http.StatusBadRequest, "InvalidRequest", "This endpoint only accepts ReceiveMessage calls")
		}
		if err := c.parse(f, body); err != nil {
			return err
		}
	} else {
		c.name, c.action = "ReceiveMessage", actions["ReceiveMessage"]
		c.json = false
		c.asJSON = strings.Contains(c.r.Header.Get("Accept"), "json")
		c.out.xml, c.out.listed = !c.asJSON, c.asJSON
		if ref := c.r.URL.Query().Get("QueueUrl"); ref != "" {
			c.in.queueURL = &ref
		}
	}
	ref := str(c.in.queueURL)
	if rest := strings.Trim(strings.TrimPrefix(c.r.URL.Path, messagesPath), "/"); rest != "" {
		ref = "queue/" + rest
	}
	q, ok := c.location(ref)
	if !ok {
		return noQueue()
	}
	return c.find(q)
}
