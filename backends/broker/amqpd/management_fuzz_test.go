package amqpd

import (
	"context"
	"testing"
	"time"

	"dlq/backends/amqp"
	"dlq/backends/broker"
	"dlq/backends/message"
)

// fuzzed are the operations in the order by which the fuzzer picks them.
var fuzzed = []string{
	"peek-message", "renew-lock", "renew-session-lock", "get-session-state", "set-session-state", "get-message-sessions",
	"receive-by-sequence-number", "update-disposition", "schedule-message", "cancel-scheduled-message", "batch-delete-messages",
	"add-rule", "remove-rule", "enumerate-rules", "brew-coffee",
}

// FuzzManage throws bodies at $management: no operation may panic, and whatever comes is
// answered with a reply as peers read it. The second byte of where picks an entity; a body that
// is no value goes in as it is.
func FuzzManage(f *testing.F) {
	token, session := message.UUID{15: 1}, message.String("a")
	later := message.TimestampOf(start.Add(time.Hour))
	bodies := map[string][]message.Map{
		"peek-message":               {fields("from-sequence-number", message.Long(0), "message-count", message.Int(10)), fields("message-count", message.Int(1), "session-id", session, "omit-message-body", message.Bool(true))},
		"renew-lock":                 {fields("lock-tokens", uuids(token))},
		"renew-session-lock":         {fields("session-id", session)},
		"get-session-state":          {fields("session-id", session)},
		"set-session-state":          {fields("session-id", session, "session-state", message.Binary("x"))},
		"get-message-sessions":       {fields("last-updated-time", message.Timestamp(253402300800000), "skip", message.Int(0), "top", message.Int(100))},
		"batch-delete-messages":      {fields("message-count", message.Int(2), "enqueued-time-utc", later, "session-id", session)},
		"schedule-message":           {fields("messages", message.List{scheduling(f, said("m"), later.Time())})},
		"remove-rule":                {fields("rule-name", message.String("$Default"))},
		"enumerate-rules":            {fields("top", message.Int(10), "skip", message.Int(0))},
		"brew-coffee":                {fields("milk", message.Bool(true))},
		"update-disposition":         {fields("lock-tokens", uuids(token), "disposition-status", message.String("suspended"), "deadletter-reason", message.String("r"), "properties-to-modify", fields("n", message.Int(1)))},
		"cancel-scheduled-message":   {fields("sequence-numbers", longs(3))},
		"receive-by-sequence-number": {fields("sequence-numbers", longs(1), "receiver-settle-mode", message.Uint(1), "session-id", session)},
		"add-rule": {
			fields("rule-name", message.String("r"), "rule-description", fields("sql-filter", fields("expression", message.String("n = @p"), "parameters", fields("@p", message.Int(1))), "sql-rule-action", fields("expression", message.String("SET a = 1")))),
			fields("rule-name", message.String("r"), "rule-description", fields("correlation-filter", fields("label", message.String("l"), "properties", fields("n", message.Int(1))))),
		},
	}
	for i, operation := range fuzzed {
		for _, body := range bodies[operation] {
			b, err := amqp.AppendValue(nil, body)
			if err != nil {
				f.Fatal(err)
			}
			for entity := range byte(4) {
				f.Add(byte(i), entity, b)
			}
		}
		f.Add(byte(i), byte(0), []byte{0x45})
		f.Add(byte(i), byte(0), []byte("no value"))
	}
	f.Fuzz(func(t *testing.T, operation, where byte, body []byte) {
		d := newDesk(t)
		d.send(orders, said("deferred"))
		d.deferred(orders, message.UUID{})
		d.send(orders, said("locked"), &message.Message{ScheduledEnqueueTime: new(later.Time())})
		d.receive(orders, broker.ReceiveOptions{})
		d.send(visits, saidIn("a", "free"))
		d.accept(visits, "a", "link")
		a := []broker.Address{orders, visits, letters, {Name: "orders", Sub: broker.DeadLetter}, {Name: "news"}}[where%5]

		req := d.request("com.microsoft:"+fuzzed[int(operation)%len(fuzzed)], nil)
		req.Body = message.Body{Kind: message.ValueBody, Sections: [][]byte{body}}
		var tx *broker.Transaction
		if where >= 128 {
			tx = d.engine.Begin()
		}
		r := d.reply(d.server.manage(context.Background(), d, a, tx, req))
		if tx != nil {
			_ = tx.Commit() // whatever came of it
		}
		if r.status >= 500 && r.status != 501 {
			t.Errorf("the server takes it for its own failure: %d %s %q", r.status, r.condition, r.text)
		}
	})
}
