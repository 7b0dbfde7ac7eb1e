package sqsd

import (
	"net/http"
	"slices"
)

// maxBatch is how many entries a batch has at most.
const maxBatch = 10

// checkBatch checks what makes a batch fail whole.
// Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html
func (c *call) checkBatch() error {
	n := len(c.in.entries)
	switch {
	case n == 0:
		return modeled("EmptyBatchRequest", "There should be at least one %sRequestEntry in the request.", c.name)
	case n > maxBatch:
		return modeled("TooManyEntriesInBatchRequest", "Maximum number of entries per request are %d. You have sent %d.", maxBatch, n)
	}
	for _, e := range c.in.entries {
		if !queueName.MatchString(e.id) { // the same characters and length
			return modeled("InvalidBatchEntryId", "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long.")
		}
	}
	for i, e := range c.in.entries {
		if slices.ContainsFunc(c.in.entries[:i], func(other entry) bool { return other.id == e.id }) {
			return modeled("BatchEntryIdsNotDistinct", "Id %s repeated.", e.id)
		}
	}
	return nil
}

// failed writes the entries of a batch that failed; errs has one for each entry, nil for those that
// did not.
func (c *call) failed(errs []error) {
	var which []int
	for i, err := range errs {
		if err != nil {
			which = append(which, i)
		}
	}
	c.out.list("Failed", "BatchResultErrorEntry", len(which), func(i int) {
		e := c.s.flavor.say(apiErrorOf(errs[which[i]]))
		id := c.in.entries[which[i]].id
		if !c.s.flavor.senderFault && c.out.xml {
			c.out.str("Code", e.short())
			c.out.str("Id", id)
			c.out.str("Message", e.text)
			return
		}
		c.out.str("Id", id)
		c.out.flag("SenderFault", !e.fault())
		c.out.str("Code", e.short())
		c.out.str("Message", e.text)
	})
}

// succeeded writes the others.
func (c *call) succeeded(errs []error, write func(i int)) {
	var which []int
	for i, err := range errs {
		if err == nil {
			which = append(which, i)
		}
	}
	c.out.list("Successful", c.name+"ResultEntry", len(which), func(i int) {
		c.out.str("Id", c.in.entries[which[i]].id)
		write(which[i])
	})
}

// asInvalidParameter makes an error one of a parameter's value.
func asInvalidParameter(e *apiError) *apiError {
	out := *e
	out.shape, out.coral, out.code, out.status = "InvalidParameterValueException", true, "InvalidParameterValue", http.StatusBadRequest
	return &out
}
