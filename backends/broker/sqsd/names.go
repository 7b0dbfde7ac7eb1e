package sqsd

import (
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"net/url"
	"slices"
	"strings"

	"dlq/backends/broker"
	"dlq/backends/message"
)

// queueID is what names a queue: the same name may be there in every account and region.
type queueID struct{ region, account, name string }

// entityOf is the name of a queue in the engine. Those of the flavor's own account and region, which
// most people use alone, have the queue's name; the others say where they belong.
func (s *Server) entityOf(q queueID) string {
	if q.region == s.flavor.region && q.account == s.flavor.account {
		return q.name
	}
	return q.region + "/" + q.account + "/" + q.name
}

// idOf is the queue that an entity of the engine is.
func (s *Server) idOf(entity string) queueID {
	if parts := strings.Split(entity, "/"); len(parts) == 3 {
		return queueID{parts[0], parts[1], parts[2]}
	}
	return queueID{s.flavor.region, s.flavor.account, entity}
}

// arn is the name of a queue in policies.
func (s *Server) arn(q queueID) string {
	return strings.Join([]string{s.flavor.arnPrefix, q.region, q.account, q.name}, ":")
}

// parseARN reads the name of a queue, in the form of either flavor.
func parseARN(arn string) (queueID, bool) {
	parts := strings.SplitN(arn, ":", 7)
	if len(parts) != 6 {
		return queueID{}, false
	}
	service := strings.Join(parts[:3], ":")
	known := service == yandex.arnPrefix || parts[0] == "arn" && strings.HasPrefix(parts[1], "aws") && parts[2] == "sqs"
	return queueID{parts[3], parts[4], parts[5]}, known && parts[5] != ""
}

// url is the URL of a queue for the client of a request, which reached this server by the host it
// names.
func (c *call) url(q queueID, info broker.Info) string {
	scheme := "http://"
	if c.r.TLS != nil {
		scheme = "https://"
	}
	return scheme + c.r.Host + "/" + c.s.flavor.path(q, info)
}

const resourcePrefix = "dj6"

// newResource is the part of a queue's URL on YMQ that is another one when the queue is made again.
func newResource() string {
	id := message.RandomUUID()
	return resourcePrefix + strings.ToLower(base32.HexEncoding.EncodeToString(id[:])[:17])
}

// resourceID is that part. A queue that was made by another way than YMQ's has one of its name.
func resourceID(q queueID, info broker.Info) string {
	if id := info.Extra[extraResource]; id != "" {
		return id
	}
	sum := sha256.Sum256([]byte(q.region + "/" + q.account + "/" + q.name))
	return resourcePrefix + strings.ToLower(base32.HexEncoding.EncodeToString(sum[:])[:17])
}

// maxURL is longer than the URL of any queue.
const maxURL = 2 << 10

// location finds the queue that a URL, a path or a name stands for. Scheme, host and port do not
// count: the client may reach the server by another name than the one that asked for the URL.
func (c *call) location(ref string) (q queueID, ok bool) {
	if len(ref) > maxURL {
		return q, false
	}
	path := ref
	if u, err := url.Parse(ref); err == nil && u.Path != "" {
		path = u.Path
	}
	segments := strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
	q = queueID{region: c.region, account: c.account}
	n := len(segments)
	switch {
	case n == 0:
		return q, false
	case n == 1, n == 2 && segments[0] == "queue": // a bare name, and ElasticMQ's form
	case n == 4 && segments[0] == "queue": // LocalStack's form
		q.region, q.account = segments[1], segments[2]
	case c.s.Flavor == YMQ && n >= 3:
		q.account = segments[n-3]
	case c.s.Flavor == YMQ:
	default:
		q.account = segments[n-2]
	}
	q.name = segments[n-1]
	return q, true
}

// resolve finds the queue that the request is about.
func (c *call) resolve() error {
	ref := str(c.in.queueURL)
	if ref == "" && !c.json {
		ref = strings.Trim(c.r.URL.Path, "/")
		if strings.Contains(ref, "/") && c.action.scope == serviceScope { // it is posted to a queue
			return unknownAction(c.name)
		}
	}
	switch c.action.scope {
	case queueScope:
	case anyScope:
		c.entity = c.s.entityOf(c.named())
		return nil
	default:
		return nil
	}
	if ref == "" && !c.json && c.in.queueURL == nil {
		return missingParameter("QueueUrl")
	}
	q, ok := c.location(ref)
	if !ok {
		return noQueue()
	}
	if err := c.find(q); err != nil {
		return err
	}
	if !c.made(ref) {
		return noQueue()
	}
	return nil
}

// find looks a queue up.
func (c *call) find(q queueID) error {
	info, err := c.lookUp(q)
	if errors.Is(err, broker.ErrNoEntity) && c.accessKey == "" {
		info, err = c.elsewhere(q)
	}
	if err != nil {
		return err
	}
	c.queue, c.entity, c.info = c.s.idOf(info.Name), info.Name, info
	return nil
}

// named is the queue of QueueName.
func (c *call) named() queueID {
	q := queueID{c.region, c.account, str(c.in.queueName)}
	if owner := str(c.in.owner); owner != "" {
		q.account = owner
	}
	return q
}

// made reports whether the queue is the one that a URL of YMQ is of, and not one that was made
// later under its name.
func (c *call) made(ref string) bool {
	segments := strings.Split(strings.Trim(ref, "/"), "/")
	n := len(segments)
	if c.s.Flavor != YMQ || n < 3 || !strings.HasPrefix(segments[n-2], resourcePrefix) {
		return true
	}
	return segments[n-2] == resourceID(c.queue, c.info)
}

// lookUp returns a queue of SQS. Names compare with case, as those of the engine's other entities
// do not.
func (c *call) lookUp(q queueID) (broker.Info, error) {
	name := c.s.entityOf(q)
	info, err := c.s.Engine.Entity(name)
	if strings.Contains(q.name, "/") { // it would be in another region
		err = broker.ErrNoEntity
	}
	if err == nil && (info.Dialect != broker.SQS || info.Name != name) {
		err = broker.ErrNoEntity
	}
	return info, err
}

// elsewhere finds the one queue of a name in any region, for a request that is not signed and so
// says none.
func (c *call) elsewhere(q queueID) (broker.Info, error) {
	all, err := c.s.Engine.Entities()
	if err != nil {
		return broker.Info{}, err
	}
	all = slices.DeleteFunc(all, func(info broker.Info) bool {
		id := c.s.idOf(info.Name)
		return info.Dialect != broker.SQS || id.name != q.name || id.account != q.account
	})
	if len(all) != 1 {
		return broker.Info{}, broker.ErrNoEntity
	}
	return all[0], nil
}

// queues returns the queues of the caller's account and region, in the order of their names.
func (c *call) queues() ([]broker.Info, error) {
	all, err := c.s.Engine.Entities()
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(info broker.Info) bool {
		id := c.s.idOf(info.Name)
		return info.Dialect != broker.SQS || id.region != c.region || id.account != c.account
	})
	slices.SortFunc(all, func(a, b broker.Info) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}
