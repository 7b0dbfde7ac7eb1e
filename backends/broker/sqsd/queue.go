package sqsd

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"dlq/backends/broker"
)

var queueName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)

const fifoSuffix = ".fifo"

// createQueue makes a queue. Asking again for one that is there is no error, unless it is asked
// for with another attribute than the queue has now.
// Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_CreateQueue.html
func (c *call) createQueue() error {
	name := str(c.in.queueName)
	if c.in.queueName == nil {
		return missingParameter("QueueName")
	}
	fifo, err := c.kindOf(name)
	if err != nil {
		return err
	}
	c.queue = queueID{c.region, c.account, name}
	c.entity = c.s.entityOf(c.queue)
	p, err := c.s.flavor.defaults(fifo)
	if err != nil {
		return err
	}
	p.Extra = map[string]string{}
	if c.s.Flavor == YMQ {
		p.Extra[extraResource] = newResource()
	}
	x := setting{c: c, p: &p, fifo: fifo, creating: true}
	if _, err := c.lookUp(c.queue); err == nil { // then what nobody sets is passed over
		x.exists = true
	}
	if err := x.setAll(c.in.attributes); err != nil {
		return err
	}
	if err := addTags(&p, c.in.tags); err != nil {
		return err
	}
	if wait := c.s.Limits.AfterDelete; wait > 0 && c.s.deleted.recent(c.entity, c.s.Now(), wait) {
		return modeled("QueueDeletedRecently", "You must wait %d seconds after deleting a queue before you can create another with the same name.", int(wait.Seconds()))
	}
	err = c.s.Engine.Create(c.entity, broker.Queue, p)
	if errors.Is(err, broker.ErrExists) {
		err = c.alreadyThere()
	} else if err == nil {
		c.info, err = c.lookUp(c.queue)
	}
	if err != nil {
		return err
	}
	c.out.str("QueueUrl", c.url(c.queue, c.info))
	return nil
}

// kindOf checks the name of a new queue, and reports whether it is to be a FIFO queue.
func (c *call) kindOf(name string) (fifo bool, err error) {
	stem, suffixed := strings.CutSuffix(name, fifoSuffix)
	fifo = attributeIs(c.in.attributes, "FifoQueue", "true")
	switch {
	case fifo != suffixed || fifo && (len(name) > 80 || !queueName.MatchString(stem)):
		return false, invalidParameter("The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end with .fifo suffix and be 1 to 80 in length.")
	case !fifo && !queueName.MatchString(name):
		return false, invalidParameter("Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length")
	}
	return fifo, nil
}

func attributeIs(list []pair, name, value string) bool {
	for _, a := range list {
		if a.name == name {
			return strings.EqualFold(a.value, value)
		}
	}
	return false
}

// alreadyThere compares what is asked for with the queue that has the name.
func (c *call) alreadyThere() error {
	info, err := c.lookUp(c.queue)
	if errors.Is(err, broker.ErrNoEntity) {
		return nameTaken("An entity that is no queue of SQS, or one whose name differs in its case, has the name %s.", c.queue.name)
	}
	if err != nil {
		return err
	}
	c.info = info
	for _, a := range c.in.attributes {
		if spec := attributeNamed(a.name); spec != nil && spec.set != nil && !c.sameValue(spec, a.value) {
			return nameTaken("A queue already exists with the same name and a different value for attribute %s", a.name)
		}
	}
	return nil
}

func nameTaken(format string, args ...any) *apiError {
	e := plain(http.StatusBadRequest, "QueueNameExists", format, args...)
	e.code = "QueueAlreadyExists"
	return e
}

// deleteQueue deletes a queue with its messages. Receives that wait for it end.
// Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_DeleteQueue.html
func (c *call) deleteQueue() error {
	if err := c.s.Engine.Delete(c.entity); err != nil {
		return err
	}
	c.s.purges.forget(c.entity)
	c.s.quotas.forget(c.entity)
	if wait := c.s.Limits.AfterDelete; wait > 0 {
		c.s.deleted.add(c.entity, c.s.Now(), wait)
	}
	return nil
}

// purgeQueue removes every message, those in flight too, and forgets the ids by which a FIFO queue
// detects duplicates.
// Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_PurgeQueue.html
func (c *call) purgeQueue() error {
	if !c.s.purges.add(c.entity, c.s.Now(), time.Minute) {
		e := plain(http.StatusForbidden, "PurgeQueueInProgress", "Only one PurgeQueue operation on %s is allowed every 60 seconds.", c.queue.name)
		e.code = simpleQueue + e.code
		return e
	}
	_, err := c.s.Engine.Purge(c.r.Context(), broker.Address{Name: c.entity}, broker.PurgeOptions{InFlight: true, ForgetDuplicates: true})
	if err != nil {
		c.s.purges.forget(c.entity)
	}
	return err
}

// getQueueURL says where a queue is.
func (c *call) getQueueURL() error {
	if c.in.queueName == nil {
		return invalidParameter("Value for parameter QueueName is invalid. Reason: Must specify a queue name.")
	}
	if err := c.find(c.named()); err != nil {
		return err
	}
	c.out.str("QueueUrl", c.url(c.queue, c.info))
	return nil
}

// listQueues lists the queues of the account and region.
// Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ListQueues.html
func (c *call) listQueues() error {
	prefix := str(c.in.prefix)
	return c.list("QueueUrls", func(info broker.Info) bool { return strings.HasPrefix(c.s.idOf(info.Name).name, prefix) })
}

// listSources lists the queues whose redrive policy names the queue.
// Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ListDeadLetterSourceQueues.html
func (c *call) listSources() error {
	return c.list("queueUrls", func(info broker.Info) bool { return info.Redrive.Target == c.entity })
}

// maxListed is how many queues an answer has at most.
const maxListed = 1000

// list answers with the URLs of the queues that are wanted. There are pages only for who asks for
// them by MaxResults.
func (c *call) list(member string, want func(broker.Info) bool) error {
	most := int64(maxListed)
	paged := c.in.maxResults != nil && c.s.flavor.pages
	if paged {
		if !c.in.maxResults.within(1, maxListed) {
			return invalidValue(c.in.maxResults.text, "MaxResults", fmt.Sprintf("MaxResults must be an integer between 1 and %d.", maxListed))
		}
		most = c.in.maxResults.n
	}
	after, err := readToken(str(c.in.nextToken))
	if err != nil {
		return err
	}
	all, err := c.queues()
	if err != nil {
		return err
	}
	var urls []string
	last := ""
	for _, info := range all {
		id := c.s.idOf(info.Name)
		if id.name <= after || !want(info) {
			continue
		}
		if int64(len(urls)) == most {
			if paged {
				c.out.texts(member, "QueueUrl", urls)
				c.out.str("NextToken", token(last))
				return nil
			}
			break
		}
		urls, last = append(urls, c.url(id, info)), id.name
	}
	c.out.texts(member, "QueueUrl", urls)
	return nil
}
