package atomd

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"

	"dlq/backends/broker"
)

// entity answers a request for one queue, topic or subscription. kind "" is a queue or topic.
func (c *call) entity(kind broker.Kind, name string) error {
	info, err := c.s.Engine.Entity(name)
	missing := errors.Is(err, broker.ErrNoEntity)
	if err != nil && !missing {
		return err
	}
	if !missing && (info.Dialect != broker.ServiceBus || (kind == broker.Subscription) != (info.Kind == broker.Subscription)) {
		missing = true
	}
	if err := c.authorize(kind, name, missing); err != nil {
		return err
	}
	switch c.r.Method {
	case http.MethodGet, http.MethodHead:
		if missing {
			return notFound(name)
		}
		return c.describe(http.StatusOK, info.Name)
	case http.MethodPut:
		return c.put(kind, name, info, missing)
	case http.MethodDelete:
		if missing {
			return notFound(name)
		}
		if err := c.s.Engine.Delete(name); err != nil {
			return err
		}
		c.w.WriteHeader(http.StatusOK)
		return nil
	}
	return notAllowed(c.r.Method)
}

func notFound(name string) error {
	return problem{http.StatusNotFound, fmt.Sprintf("SubCode=40400. Not Found. The messaging entity '%s' could not be found.", name)}
}

func notAllowed(method string) error {
	return problem{http.StatusMethodNotAllowed, "The method " + method + " is not used here."}
}

// authorize refuses a request without the right, in the words of the service.
func (c *call) authorize(kind broker.Kind, name string, missing bool) error {
	ok, err := c.allowed(name)
	if ok || err != nil {
		return err
	}
	if kind == broker.Subscription {
		return c.unauthorizedSubscription(name, map[string]string{
			http.MethodGet: "GetSubscription", http.MethodPut: "CreateOrUpdateSubscription", http.MethodDelete: "DeleteSubscription",
		}[c.r.Method])
	}
	switch c.r.Method {
	case http.MethodPut:
		return problem{http.StatusUnauthorized, "Authorization failed for specified action: Manage,EntityWrite."}
	case http.MethodDelete:
		return problem{http.StatusUnauthorized, "Authorization failed for specified action: Manage,EntityDelete."}
	}
	if missing {
		return notFound(name)
	}
	return problem{http.StatusUnauthorized, "Manage,EntityRead claims required for this operation."}
}

func (c *call) unauthorizedSubscription(name, operation string) error {
	return problem{http.StatusUnauthorized, fmt.Sprintf(
		"401 SubCode=40100: Unauthorized : Unauthorized access for '%s' operation on endpoint 'sb://%s/%s'.", operation, c.s.Namespace, name)}
}

// describe answers with the entry of an entity.
func (c *call) describe(status int, name string) error {
	info, err := c.s.Engine.Entity(name)
	if err != nil {
		return err
	}
	w := newWriter()
	c.openEntry(w, c.entityHead(info), true)
	c.description(w, info)
	c.closeEntry(w)
	c.answer(status, "entry", w)
	return nil
}

// put creates an entity, or changes one if the request says that it is there.
func (c *call) put(kind broker.Kind, name string, info broker.Info, missing bool) error {
	update := c.r.Header.Get("If-Match") != ""
	switch {
	case update && missing:
		return notFound(name)
	case !update && !missing:
		if kind == broker.Subscription {
			return problem{http.StatusConflict, fmt.Sprintf("The messaging entity 'sb://%s/%s' already exists.", c.s.Namespace, info.Name)}
		}
		return broker.ErrExists
	}
	d, kind, err := c.readEntity(kind)
	if err != nil {
		return err
	}
	if update {
		if kind != info.Kind {
			return notFound(name)
		}
		if err := c.change(info, d); err != nil {
			return err
		}
		return c.describe(http.StatusOK, info.Name)
	}
	if err := c.create(kind, name, d); err != nil {
		return err
	}
	return c.describe(http.StatusCreated, name)
}

// reachable refuses a destination that is not there, in the words of the service, or that the
// request may not send to, unless the entity forwards to it already.
func (c *call) reachable(p, old *broker.Properties) error {
	for _, to := range [...]struct{ now, before, header string }{
		{p.ForwardTo, old.ForwardTo, "ServiceBusSupplementaryAuthorization"},
		{p.ForwardDeadLettersTo, old.ForwardDeadLettersTo, "ServiceBusDlqSupplementaryAuthorization"},
	} {
		if to.now == "" || strings.EqualFold(to.now, to.before) {
			continue
		}
		if err := c.maySend(to.now, to.header); err != nil {
			return err
		}
		if info, err := c.s.Engine.Entity(to.now); errors.Is(err, broker.ErrNoEntity) || err == nil && info.Kind == broker.Subscription {
			return problem{http.StatusBadRequest, "SubCode=40400. The auto forwarding destination entity does not exist."}
		}
	}
	return nil
}

// readEntity reads the description in the body, which says what kind of entity is meant.
func (c *call) readEntity(kind broker.Kind) (*element, broker.Kind, error) {
	if kind == broker.Subscription {
		d, err := c.readBody("SubscriptionDescription")
		return d, kind, err
	}
	root, err := c.readBody("content")
	if err != nil {
		return nil, "", err
	}
	if d := root.find("TopicDescription"); d != nil {
		return d, broker.Topic, nil
	}
	if d := root.find("QueueDescription"); d != nil {
		return d, broker.Queue, nil
	}
	return nil, "", badRequest("The body has neither a QueueDescription nor a TopicDescription.")
}

// change sets what a description says, in one commit.
func (c *call) change(info broker.Info, d *element) error {
	p := info.Properties // the engine cannot be asked for other entities during a change
	p.Extra = maps.Clone(p.Extra)
	if err := c.apply(&p, info.Kind, info.Name, d, false); err != nil {
		return err
	}
	if err := c.reachable(&p, &info.Properties); err != nil {
		return err
	}
	return c.s.Engine.Change(info.Name, func(p *broker.Properties) error { return c.apply(p, info.Kind, info.Name, d, false) })
}

func (c *call) create(kind broker.Kind, name string, d *element) error {
	if err := checkName(kind, name); err != nil {
		return err
	}
	p := broker.Defaults(kind, broker.ServiceBus)
	if c.s.Tier != nil {
		p = c.s.Tier.Defaults(kind)
		all, err := c.s.Engine.Entities()
		if err != nil {
			return err
		}
		if err := c.s.Tier.Room(kind, name, all); err != nil {
			return problem{http.StatusForbidden, "SubCode=40300. " + err.Error() + "."}
		}
	}
	if err := c.apply(&p, kind, name, d, true); err != nil {
		return err
	}
	if err := c.reachable(&p, &broker.Properties{}); err != nil {
		return err
	}
	var rules []broker.Rule
	if first := d.child("DefaultRuleDescription"); first != nil {
		rule, err := readRule(first)
		if err != nil {
			return err
		}
		if rule.Name == "" {
			rule.Name = broker.DefaultRule
		}
		rules = append(rules, rule)
	}
	return c.s.Engine.Create(name, kind, p, rules...)
}

// checkName refuses what the service does not take, in its words.
func checkName(kind broker.Kind, name string) error {
	longest := 260
	if kind == broker.Subscription {
		name = name[strings.LastIndexByte(name, '/')+1:]
		longest = 50
	}
	if len(name) > longest {
		return badRequest("The entity path/name '%s' exceeds the %d character limit.", name, longest)
	}
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune(".-_", r):
		case r == '/' && kind != broker.Subscription:
		default:
			return badRequest("'%s' contains character(s) that is not allowed by Service Bus. Entity segments can contain only letters, numbers, periods(.), hyphens(-), and underscores(_).", name)
		}
	}
	return nil
}
