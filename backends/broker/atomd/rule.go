package atomd

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"dlq/backends/broker"
)

// rule answers a request for one rule of a subscription.
func (c *call) rule(subscription, name string) error {
	if err := c.authorizeRules(subscription, map[string]string{
		http.MethodGet: "GetRule", http.MethodPut: "CreateOrUpdateRule", http.MethodDelete: "DeleteRule",
	}[c.r.Method]); err != nil {
		return err
	}
	rules, err := c.s.Engine.Rules(subscription)
	if err != nil {
		return err
	}
	var found *broker.Rule
	for i := range rules {
		if strings.EqualFold(rules[i].Name, name) {
			found = &rules[i]
		}
	}
	if found == nil && c.r.Method != http.MethodPut {
		return notFound(subscription + "/Rules/" + name)
	}
	switch c.r.Method {
	case http.MethodGet:
		return c.answerRule(http.StatusOK, subscription, *found)
	case http.MethodPut:
		return c.putRule(subscription, name, found)
	case http.MethodDelete:
		if err := c.s.Engine.RemoveRule(subscription, name); err != nil {
			return err
		}
		c.w.WriteHeader(http.StatusOK)
		return nil
	}
	return notAllowed(c.r.Method)
}

func (c *call) authorizeRules(subscription, operation string) error {
	ok, err := c.allowed(subscription)
	if err == nil && !ok {
		err = c.unauthorizedSubscription(subscription, operation)
	}
	return err
}

func (c *call) putRule(subscription, name string, found *broker.Rule) error {
	update := c.r.Header.Get("If-Match") != ""
	full := subscription + "/Rules/" + name
	switch {
	case update && found == nil:
		return notFound(full)
	case !update && found != nil:
		return problem{http.StatusConflict, fmt.Sprintf("SubCode=40900. Conflict. The messaging entity 'sb://%s/%s' already exists.", c.s.Namespace, full)}
	}
	d, err := c.readBody("RuleDescription")
	if err != nil {
		return err
	}
	rule, err := readRule(d)
	if err != nil {
		return err
	}
	rule.Name = name
	if !update {
		if err := c.roomForRule(subscription, rule); err != nil {
			return err
		}
	}
	if update {
		rule.Name = found.Name
		if err := c.s.Engine.ReplaceRule(subscription, rule); err != nil {
			return err
		}
	} else if err := c.s.Engine.AddRule(subscription, rule); err != nil {
		if errors.Is(err, broker.ErrExists) {
			return problem{http.StatusConflict, fmt.Sprintf("SubCode=40900. Conflict. The messaging entity 'sb://%s/%s' already exists.", c.s.Namespace, full)}
		}
		return err
	}
	rules, err := c.s.Engine.Rules(subscription)
	if err != nil {
		return err
	}
	status := http.StatusCreated
	if update {
		status = http.StatusOK
	}
	for _, one := range rules {
		if strings.EqualFold(one.Name, name) {
			return c.answerRule(status, subscription, one)
		}
	}
	return notFound(full)
}

// roomForRule asks the tier for room for one more rule in the topic of a subscription.
func (c *call) roomForRule(subscription string, rule broker.Rule) error {
	if c.s.Tier == nil {
		return nil
	}
	subscriptions, err := c.subscriptionsOf(subscription[:strings.LastIndex(strings.ToLower(subscription), "/subscriptions/")])
	if err != nil {
		return err
	}
	sql, correlation := c.filters(subscriptions)
	if err := c.s.Tier.RoomForRule(rule.Filter.Kind, sql, correlation); err != nil {
		return problem{http.StatusForbidden, "SubCode=40300. " + err.Error() + "."}
	}
	return nil
}

func (c *call) answerRule(status int, subscription string, rule broker.Rule) error {
	w := newWriter()
	c.ruleEntry(w, subscription, rule, true)
	c.answer(status, "entry", w)
	return nil
}

func (c *call) ruleEntry(w *writer, subscription string, rule broker.Rule, root bool) {
	c.openEntry(w, head{subscription + "/Rules/" + rule.Name, rule.Name, rule.Created, rule.Created}, root)
	w.open("RuleDescription", "xmlns", busSpace, "xmlns:i", instanceSpace)
	writeFilter(w, rule.Filter)
	writeAction(w, rule)
	w.time("CreatedAt", rule.Created)
	w.text("Name", rule.Name)
	w.close("RuleDescription")
	c.closeEntry(w)
}

// listRules answers with a feed of the rules of a subscription.
func (c *call) listRules(subscription string) error {
	if c.r.Method != http.MethodGet {
		return notAllowed(c.r.Method)
	}
	if err := c.authorizeRules(subscription, "EnumerateRules"); err != nil {
		return err
	}
	rules, err := c.s.Engine.Rules(subscription)
	if err != nil {
		return err
	}
	return feed(c, subscription+"/Rules", "Rules", rules, func(w *writer, rule broker.Rule) { c.ruleEntry(w, subscription, rule, false) })
}
