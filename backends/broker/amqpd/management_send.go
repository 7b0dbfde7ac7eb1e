package amqpd

import (
	"fmt"

	"dlq/backends/broker"
	"dlq/backends/message"
)

func (r *request) schedule() (message.Map, error) {
	info, err := r.s.entity(r.a)
	if err == nil {
		err = sendable(info, r.a)
	}
	if err != nil {
		return nil, err
	}
	all, err := r.messages(info)
	if err != nil {
		return nil, err
	}
	if r.tx != nil {
		errs, err := r.tx.Send(r.a, nil, all)
		if err = firstError(errs, err); err != nil {
			return nil, err
		}
		return numbers(make([]int64, len(all))), nil // they get their numbers at the commit
	}
	sent, err := r.s.engine.Send(r.a, all)
	errs, seqs := make([]error, len(sent)), make([]int64, len(sent))
	for i := range sent {
		errs[i], seqs[i] = sent[i].Err, sent[i].Seq
	}
	return numbers(seqs), firstError(errs, err)
}

// messages reads the messages that are to be scheduled.
func (r *request) messages(info broker.Info) ([]*message.Message, error) {
	entries, err := r.body.items("messages")
	if err != nil {
		return nil, err
	}
	var all []*message.Message
	for _, entry := range entries {
		fields, _ := entry.(message.Map)
		encoded, ok := argumentsOf(fields)["message"].(message.Binary)
		if !ok {
			return nil, argumentError("an entry of messages has no message")
		}
		if info.MaxMessageBytes > 0 && int64(len(encoded)) > info.MaxMessageBytes {
			return nil, &tooLarge{size: int64(len(encoded)), limit: info.MaxMessageBytes}
		}
		msgs, err := decodeSent(0, encoded)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errMalformed, err)
		}
		all = append(all, msgs...)
	}
	return all, nil
}

func numbers(seqs []int64) message.Map {
	a := message.Array{Elem: message.KindLong}
	for _, seq := range seqs {
		a.Items = append(a.Items, message.Long(seq))
	}
	return message.Map{{Key: message.String("sequence-numbers"), Value: a}}
}

func (r *request) cancelScheduled() (message.Map, error) {
	seqs, err := r.body.longs("sequence-numbers")
	if err != nil {
		return nil, err
	}
	return message.Map{}, r.s.engine.CancelScheduled(r.a, seqs...)
}

func (r *request) batchDelete() (message.Map, error) {
	count, ok := r.body.integer("message-count")
	if !ok || count < 1 {
		return nil, argumentError("message-count has to be 1 or more")
	}
	o := broker.DeleteBatchOptions{Max: int(min(count, int64(r.s.batchDeleteMax))), Before: r.s.now()}
	var err error
	if o.Session, err = r.body.text("session-id"); err != nil {
		return nil, err
	}
	if at, ok, err := r.body.time("enqueued-time-utc"); err != nil {
		return nil, err
	} else if ok {
		o.Before = at
	}
	if o.Before.IsZero() { // nothing is as old; to the engine it would be no bound at all
		return nil, nil
	}
	n, err := r.s.engine.DeleteBatch(r.a, o)
	if err != nil || n == 0 {
		return nil, err
	}
	return message.Map{{Key: message.String("message-count"), Value: message.Int(n)}}, nil
}
