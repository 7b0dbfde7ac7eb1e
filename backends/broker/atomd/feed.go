package atomd

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"dlq/backends/broker"
)

// pageSize is how many entries a page of a feed has, at most and usually.
const pageSize = 100

// page reads which part of a feed is asked for.
func (c *call) page() (skip, top int, err error) {
	query := c.r.URL.Query()
	number := func(name string, absent int) int {
		text := query.Get(name)
		if text == "" {
			return absent
		}
		n, atoiErr := strconv.Atoi(text)
		if atoiErr != nil || n < 0 {
			err = badRequest("%s '%s' is no number from 0 on.", name, text)
		}
		return n
	}
	skip, top = number("$skip", 0), number("$top", pageSize)
	return skip, min(top, pageSize), err
}

// list answers with a feed of queues or topics.
func (c *call) list(kind broker.Kind) error {
	if c.r.Method != http.MethodGet {
		return notAllowed(c.r.Method)
	}
	ok, err := c.allowed("")
	if err != nil {
		return err
	}
	if !ok {
		return problem{http.StatusUnauthorized, "Manage,EntityRead claims required for this operation."}
	}
	all, err := c.s.Engine.Entities()
	if err != nil {
		return err
	}
	var wanted []broker.Info
	for _, info := range all {
		if info.Kind == kind && info.Dialect == broker.ServiceBus {
			wanted = append(wanted, info)
		}
	}
	path := "$Resources/" + kindNames[kind] + "s"
	return feed(c, path, kindNames[kind]+"s", wanted, c.infoEntry)
}

func (c *call) infoEntry(w *writer, info broker.Info) {
	c.openEntry(w, c.entityHead(info), false)
	c.description(w, info)
	c.closeEntry(w)
}

// listSubscriptions answers with a feed of the subscriptions of a topic.
func (c *call) listSubscriptions(topic string) error {
	if c.r.Method != http.MethodGet {
		return notAllowed(c.r.Method)
	}
	ok, err := c.allowed(topic)
	if err != nil {
		return err
	}
	if !ok {
		return c.unauthorizedSubscription(topic, "EnumerateSubscriptions")
	}
	info, err := c.s.Engine.Entity(topic)
	if err != nil && !errors.Is(err, broker.ErrNoEntity) {
		return err
	}
	if err != nil || info.Kind != broker.Topic {
		return notFound(topic)
	}
	subscriptions, err := c.subscriptionsOf(info.Name)
	if err != nil {
		return err
	}
	return feed(c, info.Name+"/Subscriptions", "Subscriptions", subscriptions, c.infoEntry)
}

// subscriptionsOf lists the subscriptions of a topic, as they are when the request first asks
// for those of any.
func (c *call) subscriptionsOf(topic string) ([]broker.Info, error) {
	if c.subscriptions == nil {
		all, err := c.s.Engine.Entities()
		if err != nil {
			return nil, err
		}
		c.subscriptions = map[string][]broker.Info{}
		for _, info := range all {
			if cut := strings.LastIndex(strings.ToLower(info.Name), "/subscriptions/"); info.Kind == broker.Subscription && cut >= 0 {
				key := strings.ToLower(info.Name[:cut])
				c.subscriptions[key] = append(c.subscriptions[key], info)
			}
		}
	}
	return c.subscriptions[strings.ToLower(topic)], nil
}

// feed answers with one page of items. A link to the next page is there only if there is
// one, and behind the link to this page: a client looks for it among several links.
func feed[T any](c *call, path, title string, items []T, entry func(*writer, T)) error {
	skip, top, err := c.page()
	if err != nil {
		return err
	}
	items = items[min(skip, len(items)):]
	more := top > 0 && len(items) > top
	items = items[:min(top, len(items))]
	w := newWriter()
	w.open("feed", "xmlns", atomSpace)
	w.text("title", title, "type", "text")
	w.text("id", c.url(path, pageQuery(skip, top)))
	w.text("updated", c.s.Now().UTC().Format("2006-01-02T15:04:05Z"))
	w.text("link", "", "rel", "self", "href", c.url(path, pageQuery(skip, top)))
	if more {
		w.text("link", "", "rel", "next", "href", c.url(path, pageQuery(skip+top, top)))
	}
	for _, item := range items {
		entry(w, item)
	}
	w.close("feed")
	c.answer(http.StatusOK, "feed", w)
	return nil
}

func pageQuery(skip, top int) string { return fmt.Sprintf("$skip=%d&$top=%d", skip, top) }
