package atomd

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"dlq/backends/broker"
	"dlq/backends/broker/sas"
	"dlq/backends/message"
)

// Options configure the management API.
type Options struct {
	Engine    *broker.Engine
	Gate      *sas.Gate        // nil: everybody may do everything
	Namespace string           // "": dlq
	SKU       string           // Basic, Standard or Premium; "": Standard
	Now       func() time.Time // nil: time.Now
	Tier      Tier             // nil: no limits but the engine's
	// Fault is asked before each request: a status that is not 0 takes the place of its answer,
	// which comes after that long. nil: none.
	Fault func(entity string) (status int, after time.Duration)
}

// Tier is what the namespace allows.
type Tier interface {
	Defaults(kind broker.Kind) broker.Properties
	Check(kind broker.Kind, p *broker.Properties) error          // wraps broker.ErrInvalid
	Room(kind broker.Kind, name string, all []broker.Info) error // for one more
	// RoomForRule refuses one more rule in a topic that has so many with an SQL filter, true and
	// false ones too, and with a correlation filter.
	RoomForRule(filter broker.FilterKind, sql, correlation int64) error
}

// server is the handler.
type server struct {
	Options
}

// New returns the handler of all paths. It is safe for concurrent use.
func New(o Options) http.Handler {
	s := &server{o}
	if s.Namespace == "" {
		s.Namespace = "dlq"
	}
	if s.SKU == "" {
		s.SKU = "Standard"
	}
	if s.Now == nil {
		s.Now = time.Now
	}
	return s
}

// call is one request.
type call struct {
	s    *server
	w    http.ResponseWriter
	r    *http.Request
	base string // scheme and host as the client knows them
	api  string // api-version

	subscriptions map[string][]broker.Info // by their topics in lower case, see subscriptionsOf; nil: not yet
}

// ServeHTTP answers one request. Paths compare without case.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	c := &call{s: s, w: w, r: r, base: scheme + "://" + r.Host, api: r.URL.Query().Get("api-version")}
	segments := segmentsOf(r.URL)
	if len(segments) == 1 && strings.EqualFold(segments[0], "health") && r.Method == http.MethodGet && !r.URL.Query().Has("api-version") {
		c.health() // an SDK that means an entity of that name says its version
		return
	}
	if err := c.fault(segments); err != nil {
		c.fail(err)
		return
	}
	if r.Header.Get("Content-Encoding") != "" {
		c.fail(problem{http.StatusUnsupportedMediaType, "A body with a Content-Encoding is not taken here; send it as it is."})
		return
	}
	if err := c.route(segments); err != nil {
		c.fail(err)
	}
}

// segmentsOf splits a path, which may have empty segments and an encoded slash inside a
// name.
func segmentsOf(u *url.URL) []string {
	var segments []string
	for _, s := range strings.Split(u.Path, "/") {
		if s != "" {
			segments = append(segments, s)
		}
	}
	return segments
}

func (c *call) fault(segments []string) error {
	if c.s.Fault == nil {
		return nil
	}
	status, after := c.s.Fault(strings.Join(segments, "/"))
	if after > 0 {
		timer := time.NewTimer(after)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-c.r.Context().Done():
		}
	}
	if status == 0 {
		return nil
	}
	return problem{status, "The fault option asked for this answer. Try again."}
}

// route finds out what a path names.
func (c *call) route(segments []string) error {
	n := len(segments)
	last := func(i int) string { // the i-th from the end, in lower case
		if i > n {
			return ""
		}
		return strings.ToLower(segments[n-i])
	}
	name := func(from, to int) string { return strings.Join(segments[from:to], "/") }
	switch {
	case n == 1 && last(1) == "$namespaceinfo":
		return c.namespaceInfo()
	case n == 2 && last(2) == "$resources" && (last(1) == "queues" || last(1) == "topics"):
		kind := broker.Queue
		if last(1) == "topics" {
			kind = broker.Topic
		}
		return c.list(kind)
	case n >= 2 && last(1) == "subscriptions":
		return c.listSubscriptions(name(0, n-1))
	case n >= 4 && last(1) == "rules" && last(3) == "subscriptions":
		if c.r.Method == http.MethodPut { // of a client that names the rule in the body alone
			return c.rule(subscriptionName(name(0, n-3), segments[n-2]), broker.DefaultRule)
		}
		return c.listRules(subscriptionName(name(0, n-3), segments[n-2]))
	case n >= 5 && last(2) == "rules" && last(4) == "subscriptions":
		return c.rule(subscriptionName(name(0, n-4), segments[n-3]), segments[n-1])
	case n >= 3 && last(2) == "subscriptions":
		return c.entity(broker.Subscription, subscriptionName(name(0, n-2), segments[n-1]))
	case n >= 1 && !strings.HasPrefix(segments[0], "$"):
		return c.entity("", name(0, n))
	}
	return problem{http.StatusNotFound, "There is nothing at this path."}
}

func subscriptionName(topic, name string) string { return topic + "/Subscriptions/" + name }

func (c *call) health() {
	c.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = c.w.Write([]byte("healthy\n")) // a client that has gone reads nothing
}

// problem is an answer that says what is wrong.
type problem struct {
	status int
	detail string
}

func (p problem) Error() string { return p.detail }

// problemOf says what a client is told about an error.
func problemOf(err error) problem {
	var p problem
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(err, broker.ErrNoEntity):
		return problem{http.StatusNotFound, "SubCode=40400. Not Found. The requested resource does not exist: " + err.Error() + "."}
	case errors.Is(err, broker.ErrExists):
		return problem{http.StatusConflict, "SubCode=40900. Conflict. You're requesting an operation that isn't allowed in the resource's current state. To know more visit https://aka.ms/sbResourceMgrExceptions."}
	case errors.Is(err, broker.ErrInvalid), errors.Is(err, broker.ErrUnsupported):
		return problem{http.StatusBadRequest, "SubCode=40000. Bad Request. " + err.Error() + "."}
	case errors.Is(err, broker.ErrQuota):
		return problem{http.StatusForbidden, "SubCode=40300. " + err.Error() + "."}
	case errors.Is(err, broker.ErrFull):
		return problem{http.StatusInsufficientStorage, "SubCode=50700. " + err.Error() + "."}
	case errors.Is(err, broker.ErrUnavailable):
		return problem{http.StatusServiceUnavailable, "SubCode=50300. " + err.Error() + "."}
	}
	return problem{http.StatusInternalServerError, "SubCode=50000. " + err.Error() + "."}
}

// fail answers with an error.
func (c *call) fail(err error) {
	p := problemOf(err)
	detail := fmt.Sprintf("%s TrackingId:%s_G0, SystemTracker:%s:%s, Timestamp:%s", p.detail, message.RandomUUID(), c.s.Namespace,
		strings.Trim(c.r.URL.Path, "/"), c.s.Now().UTC().Format(time.DateOnly+"T"+time.TimeOnly))
	w := newWriter()
	w.open("Error")
	w.text("Code", fmt.Sprint(p.status))
	w.text("Detail", detail)
	w.close("Error")
	c.w.Header().Set("Content-Type", "application/xml; charset=utf-8")
	if p.status == http.StatusUnauthorized {
		c.w.Header().Set("WWW-Authenticate", "SharedAccessSignature")
	}
	c.w.WriteHeader(p.status)
	_, _ = c.w.Write(w.bytes())
}

// answer sends an entry or a feed.
func (c *call) answer(status int, kind string, w *writer) {
	c.w.Header().Set("Content-Type", "application/atom+xml;type="+kind+";charset=utf-8")
	c.w.WriteHeader(status)
	_, _ = c.w.Write(w.bytes())
}

// claim returns the claim that a request brings in a header.
func (c *call) claim(name string) (sas.Claim, error) {
	header := c.r.Header.Get(name)
	if header == "" {
		return sas.Claim{}, problem{http.StatusUnauthorized, "MissingToken: The authorization header was not found."}
	}
	kind := sas.KindSAS
	if scheme, rest, _ := strings.Cut(header, " "); !strings.EqualFold(scheme, "SharedAccessSignature") {
		kind = sas.KindJWT // the Azure SDK for Go sends it without a scheme
		if strings.EqualFold(scheme, "Bearer") {
			header = rest
		}
	}
	claim, err := c.s.Gate.Token(kind, header)
	var expired *sas.ExpiredError
	switch {
	case errors.As(err, &expired):
		return claim, problem{http.StatusUnauthorized, fmt.Sprintf("ExpiredToken: The token is expired. Expiration time: %s, Current time: %s.",
			expired.Expires.UTC().Format(time.RFC1123), expired.Now.UTC().Format(time.RFC1123))}
	case err != nil:
		return claim, problem{http.StatusUnauthorized, "InvalidSignature: The token has an invalid signature: " + err.Error() + "."}
	}
	return claim, nil
}

// allowed reports whether the request may manage an entity; "" is the namespace. The error
// is for a token that is none.
func (c *call) allowed(entity string) (bool, error) {
	if c.s.Gate.Open() {
		return true, nil
	}
	claim, err := c.claim("Authorization")
	if err != nil {
		return false, err
	}
	// The JavaScript SDK signs the whole URL of the request, which is below the entity.
	path := strings.ToLower(strings.Trim(c.r.URL.Path, "/"))
	return claim.Allows(entity, sas.Manage) || claim.Allows(path, sas.Manage), nil
}

// maySend refuses a request that may not send to an entity, so that nobody forwards messages to
// where they may not. Clients bring the claim in a header of its own, unless that to manage
// reaches as far.
func (c *call) maySend(entity, header string) error {
	if c.s.Gate.Open() {
		return nil
	}
	for _, name := range [...]string{"Authorization", header} {
		if c.r.Header.Get(name) == "" {
			continue
		}
		claim, err := c.claim(name)
		if err != nil {
			return err
		}
		if claim.Allows(entity, sas.Send) {
			return nil
		}
	}
	return problem{http.StatusUnauthorized, fmt.Sprintf(
		"Unauthorized access. 'Send' claim(s) are required to perform this operation. Resource: 'sb://%s/%s'.", c.s.Namespace, entity)}
}
