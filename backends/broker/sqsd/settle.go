package sqsd

import (
	"errors"
	"net/http"
	"time"

	"dlq/backends/broker"
)

func badHandle(handle string) *apiError {
	return plain(http.StatusNotFound, "ReceiptHandleIsInvalid", "The input receipt handle \"%s\" is not a valid receipt handle.", handle)
}

// delivery reads the receipt handle of an entry.
func (c *call) delivery(e *entry) (broker.Delivery, *apiError) {
	if e.receipt == nil {
		return broker.Delivery{}, missingParameter("ReceiptHandle")
	}
	d, ok := readHandle(c.entity, *e.receipt)
	if !ok {
		return d, badHandle(*e.receipt)
	}
	return d, nil
}

// deleteMessage deletes a message.
// Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_DeleteMessage.html
func (c *call) deleteMessage() error {
	errs, err := c.settleAll([]entry{c.in.entry}, c.delete)
	if err != nil {
		return err
	}
	return errs[0]
}

// deleteMessageBatch deletes up to ten messages.
func (c *call) deleteMessageBatch() error { return c.settleBatch(c.delete) }

// changeVisibility changes when a message is visible again; zero is now.
// Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ChangeMessageVisibility.html
func (c *call) changeVisibility() error {
	errs, err := c.settleAll([]entry{c.in.entry}, c.change)
	if err != nil {
		return err
	}
	return errs[0]
}

// changeVisibilityBatch does so for up to ten messages.
func (c *call) changeVisibilityBatch() error { return c.settleBatch(c.change) }

func (c *call) settleBatch(do func([]broker.Delivery, []*entry) ([]error, error)) error {
	if err := c.checkBatch(); err != nil {
		return err
	}
	errs, err := c.settleAll(c.in.entries, do)
	if err != nil {
		return err
	}
	c.succeeded(errs, func(int) {})
	c.failed(errs)
	return nil
}

// settleAll does something to the deliveries that entries name, and returns an error for each that
// failed.
func (c *call) settleAll(entries []entry, do func([]broker.Delivery, []*entry) ([]error, error)) ([]error, error) {
	errs := make([]error, len(entries))
	var ds []broker.Delivery
	var es []*entry
	var of []int
	for i := range entries {
		d, bad := c.delivery(&entries[i])
		if bad != nil {
			errs[i] = bad
			continue
		}
		ds, es, of = append(ds, d), append(es, &entries[i]), append(of, i)
	}
	if len(ds) == 0 {
		return errs, nil
	}
	if c.info.Groups {
		c.s.attempts.spoil(ds)
	}
	results, err := do(ds, es)
	if err != nil {
		return nil, err
	}
	for i, err := range results {
		errs[of[i]] = err
	}
	return errs, nil
}

// delete deletes messages. One that is gone is deleted; so, on a standard queue, is one that was
// received again, whose older handle does nothing.
func (c *call) delete(ds []broker.Delivery, entries []*entry) ([]error, error) {
	errs, err := c.s.Engine.SettleDelivery(broker.Address{Name: c.entity}, broker.Outcome{Action: broker.Complete}, ds...)
	if err != nil {
		return nil, err
	}
	for i := range errs {
		switch {
		case errors.Is(errs[i], broker.ErrNoMessage):
			errs[i] = nil
		case errors.Is(errs[i], broker.ErrLockLost) && c.info.StaleTokens:
			errs[i] = nil
		case errors.Is(errs[i], broker.ErrLockLost):
			errs[i] = invalidValue(*entries[i].receipt, "ReceiptHandle", "The receipt handle has expired.")
		}
	}
	return errs, nil
}

// change sets when messages are visible again.
func (c *call) change(ds []broker.Delivery, entries []*entry) ([]error, error) {
	errs := make([]error, len(ds))
	for i, e := range entries {
		switch {
		case e.visibility == nil:
			errs[i] = missingParameter("VisibilityTimeout")
			continue
		case !e.visibility.within(0, maxVisibility):
			errs[i] = invalidValue(e.visibility.text, "VisibilityTimeout", "VisibilityTimeout must be an integer between 0 and 43200")
			continue
		}
		if c.s.flavor.notInFlight {
			if bad := c.resting(ds[i]); bad != nil {
				errs[i] = bad
				continue
			}
		}
		result, err := c.s.Engine.Extend(broker.Address{Name: c.entity}, time.Duration(e.visibility.n)*time.Second, ds[i])
		if err != nil {
			return nil, err
		}
		errs[i] = c.unchanged(result[0], e)
	}
	return errs, nil
}

// resting is an error if nobody holds a message.
func (c *call) resting(d broker.Delivery) *apiError {
	page, err := c.s.Engine.Peek(broker.Address{Name: c.entity}, broker.PeekOptions{From: d.Seq, Max: 1, NoBody: true})
	if err == nil && len(page) > 0 && page[0].Broker.SequenceNumber == d.Seq && page[0].Broker.LockedUntil.IsZero() {
		return modeled("MessageNotInflight", "The specified message isn't in flight.")
	}
	return nil
}

// unchanged says why the visibility of a message was not changed.
func (c *call) unchanged(err error, e *entry) error {
	switch {
	case errors.Is(err, broker.ErrInvalid):
		return invalidValue(e.visibility.text, "VisibilityTimeout", "Total VisibilityTimeout for the message is beyond the limit [43200 seconds]")
	case errors.Is(err, broker.ErrLockLost) && c.s.flavor.notInFlight:
		return modeled("MessageNotInflight", "The specified message isn't in flight.")
	case errors.Is(err, broker.ErrNoMessage) && c.s.flavor.notInFlight:
		return invalidParameter("No such message.")
	case errors.Is(err, broker.ErrLockLost) && c.info.StaleTokens:
		return nil // it was received again; an older handle does nothing
	case errors.Is(err, broker.ErrNoMessage), errors.Is(err, broker.ErrLockLost):
		return invalidValue(*e.receipt, "ReceiptHandle", "Message does not exist or is not available for visibility timeout change.")
	}
	return err
}
