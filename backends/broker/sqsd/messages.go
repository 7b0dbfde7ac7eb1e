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

// maxShown bounds an answer.
const maxShown = 10_000

// showMessages answers as ReceiveMessage does, and changes nothing. The queue is that of the
// parameter QueueUrl, or of the path behind: REGION/ACCOUNT/NAME.
func (c *call) showMessages() error {
	if _, err := c.authenticate(nil); err != nil {
		return err
	}
	c.name, c.action = "ReceiveMessage", &action{right: Listen}
	q := c.r.URL.Query()
	c.asJSON = strings.Contains(c.r.Header.Get("Accept"), "json")
	c.out.xml = !c.asJSON
	ref := q.Get("QueueUrl")
	if rest := strings.Trim(strings.TrimPrefix(c.r.URL.Path, messagesPath), "/"); rest != "" {
		ref = "queue/" + rest
	}
	id, ok := c.location(ref)
	if !ok {
		return missingParameter("QueueUrl")
	}
	if err := c.find(id); err != nil {
		return err
	}
	if err := c.permit(); err != nil {
		return err
	}
	page, err := c.s.Engine.Peek(broker.Address{Name: c.entity}, broker.PeekOptions{Max: maxShown})
	if err != nil {
		return err
	}
	hidden, delayed := q.Get("ShowInvisible") == "true", q.Get("ShowDelayed") == "true"
	msgs := make([]*message.Message, 0, len(page))
	for _, m := range page {
		if m.Broker.State == message.Scheduled && !delayed || !m.Broker.LockedUntil.IsZero() && !hidden {
			continue
		}
		msgs = append(msgs, m)
	}
	c.in.systemNames, c.in.messageNames = []string{"All"}, []string{"All"}
	c.received(msgs)
	return nil
}

// showsMessages reports whether a request is for that page.
func showsMessages(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, messagesPath)
}
