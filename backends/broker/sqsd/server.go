package sqsd

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"dlq/backends/broker"
	"dlq/backends/broker/sigv4"
	"dlq/backends/message"
)

// Right is what an action needs.
type Right uint8

// The rights.
const (
	Send   Right = iota // to put messages into a queue
	Listen              // to receive and settle them, and to look at a queue
	Manage              // everything else

	anyRight // one of them, whichever
)

// Options configure a server.
type Options struct {
	Engine *broker.Engine
	Flavor Flavor

	// Verifier checks signatures. nil: they are not looked at, and say only region and account.
	Verifier *sigv4.Verifier
	// Unsigned takes calls without a signature.
	Unsigned bool
	// Allowed reports whether a key has a right at an entity of the engine, "" for all; nil:
	// every key has all rights.
	Allowed func(accessKey, entity string, r Right) bool
	// Account is the account that a key belongs to; nil or "": the flavor's own.
	Account func(accessKey string) string

	Now    func() time.Time // nil: time.Now
	Limits Limits
	// Fault is asked what is to go wrong with a request; nil: nothing.
	Fault func(op FaultOp, entity string) (Fault, bool)
	// Short reports that memory is short: what is sent is refused then, for clients to try again.
	Short func() bool
	Log   func(format string, args ...any)
}

// Server is the handler. Its methods may be called concurrently.
type Server struct {
	Options
	flavor *flavor

	purges   timedSet // by entity: when it was purged
	deleted  timedSet // by entity: when it was deleted
	quotas   quotas
	attempts attempts
	waiting  waiting
	stopping context.Context // of the server, ends the waiting receives
	stop     context.CancelFunc
}

// New returns a server of an engine.
func New(o Options) *Server {
	s := &Server{Options: o, flavor: o.Flavor.spec()}
	s.Limits = o.Limits.orDefault()
	if s.Now == nil {
		s.Now = time.Now
	}
	if s.Log == nil {
		s.Log = func(string, ...any) {}
	}
	s.stopping, s.stop = context.WithCancel(context.Background())
	return s
}

// Close ends the receives that wait: they answer at once, with nothing. What comes later does not wait.
func (s *Server) Close() { s.stop() }

// call is one request on its way.
type call struct {
	s      *Server
	r      *http.Request
	name   string // of the action
	action *action
	json   bool // the protocol of the request; X-Amz-Target decides first, wherever it was posted to
	asJSON bool // a Query answer in JSON, which a client may ask for

	region, account string
	accessKey       string // "": unsigned

	in     input
	queue  queueID
	entity string // the queue's name in the engine
	info   broker.Info
	fault  Fault
	out    encoder
}

// ServeHTTP answers a request on any path.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{s: s, r: r}
	id := message.RandomUUID().String() // for people who look for it in a log
	err := c.serve()
	if errors.Is(err, http.ErrAbortHandler) {
		panic(http.ErrAbortHandler) // which is how a handler of net/http breaks the connection
	}
	c.answer(w, id, err)
}

// serve does what the request asks for, and leaves the answer in c.out.
func (c *call) serve() error {
	c.json = c.r.Header.Get("X-Amz-Target") != "" || isJSON(c.r)
	c.out.xml = !c.json
	if showsMessages(c.r) {
		return c.showMessages()
	}
	body, err := c.read()
	if err != nil {
		return err
	}
	f, err := c.identify(body)
	if err != nil {
		return err
	}
	signed, err := c.authenticate(body)
	if err != nil {
		return err
	}
	if c.r.Method != http.MethodPost && c.action.changes && !signed {
		return denied("AccessDeniedException", "AccessDenied", "A %s that changes something has to be signed; send a POST.", c.r.Method)
	}
	if err := c.parse(f, body); err != nil {
		return err
	}
	if err := c.resolve(); err != nil {
		return err
	}
	if err := c.permit(); err != nil {
		return err
	}
	if err := c.quota(); err != nil {
		return err
	}
	if err := c.strike(); err != nil {
		return err
	}
	return c.action.run(c)
}

// permit is an error if the caller lacks the right.
func (c *call) permit() error {
	if c.s.Allowed == nil || c.accessKey == "" || c.may(c.action.right) {
		return nil
	}
	return denied("AccessDeniedException", "AccessDenied", "The key %s is not allowed to perform sqs:%s here.", c.accessKey, c.name)
}

func (c *call) may(r Right) bool {
	if r == anyRight {
		return c.may(Send) || c.may(Listen) || c.may(Manage)
	}
	return c.s.Allowed(c.accessKey, c.entity, r)
}

// read reads the body.
func (c *call) read() ([]byte, error) {
	if c.r.Header.Get("Content-Encoding") != "" {
		return nil, &apiError{
			status: http.StatusUnsupportedMediaType, shape: "UnsupportedMediaTypeException", coral: true, code: "UnsupportedMediaType",
			text: "A body with a Content-Encoding is not taken; send it as it is.",
		}
	}
	// Whoever announces much gets memory as it comes, and none while it is short: to receive and to
	// settle takes little.
	const atOnce = 64 << 10
	limit := c.s.Limits.BodyBytes
	tooMuch := tooLong(limit)
	if c.s.Short != nil && c.s.Short() && limit > atOnce {
		limit, tooMuch = atOnce, throttled()
	}
	if c.r.ContentLength == 0 {
		return nil, nil
	}
	if c.r.ContentLength > limit {
		return nil, tooMuch
	}
	body := make([]byte, 0, max(min(c.r.ContentLength, atOnce), 512))
	in := io.LimitReader(c.r.Body, limit+1)
	for {
		n, err := in.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case int64(len(body)) > limit:
			return nil, tooMuch
		case err == io.EOF:
			return body, nil
		case err != nil:
			return nil, malformed("The body could not be read: %v.", err)
		case int64(len(body)) == c.r.ContentLength:
			return body, nil
		case len(body) == cap(body):
			body = append(body, 0)[:len(body)]
		}
	}
}

func tooLong(limit int64) *apiError {
	return &apiError{
		status: http.StatusRequestEntityTooLarge, shape: "RequestEntityTooLargeException", coral: true, code: "RequestEntityTooLarge",
		text: "A request has at most " + itoa(limit) + " bytes.",
	}
}

// identify tells the action.
func (c *call) identify(body []byte) (f *form, err error) {
	if c.json {
		target := c.r.Header.Get("X-Amz-Target")
		_, c.name, _ = strings.Cut(target, ".")
		return nil, c.choose(strings.HasPrefix(target, "AmazonSQS."))
	}
	encoded := c.r.URL.RawQuery
	if isForm(c.r) {
		encoded = string(body)
		if c.r.URL.RawQuery != "" {
			encoded += "&" + c.r.URL.RawQuery
		}
	}
	f, bad := parseForm(encoded, c.s.Limits.FormKeys)
	if bad != nil {
		return nil, bad
	}
	name := f.text("Action")
	if name == nil {
		if c.r.Method != http.MethodPost {
			return nil, errNoAction
		}
		return nil, &apiError{
			status: http.StatusBadRequest, shape: "MissingAction", coral: true, code: "MissingAction",
			text: "The request must contain the parameter Action.",
		}
	}
	c.name = *name
	c.asJSON = strings.Contains(c.r.Header.Get("Accept"), "application/json")
	c.out.xml, c.out.listed = !c.asJSON, c.asJSON
	return f, c.choose(true)
}

// errNoAction is the answer to a GET that asks for nothing.
var errNoAction = errors.New("no action")

func (c *call) choose(known bool) error {
	a := actions[c.name]
	if !known || a == nil || !c.s.flavor.has(c.name) {
		return unknownAction(c.name)
	}
	c.action = a
	return nil
}

func isJSON(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-amz-json-")
}

func isForm(r *http.Request) bool {
	kind := r.Header.Get("Content-Type")
	return r.Method == http.MethodPost && (kind == "" || strings.HasPrefix(strings.ToLower(kind), "application/x-www-form-urlencoded"))
}

// parse reads the parameters.
func (c *call) parse(f *form, body []byte) error {
	if c.json {
		if bad := parseJSON(body, &c.in); bad != nil {
			return bad
		}
		return nil
	}
	c.in.query(f, c.name)
	return nil
}

// answer writes the answer.
func (c *call) answer(w http.ResponseWriter, id string, err error) {
	h := w.Header()
	h.Set("X-Amzn-Requestid", id)
	status := http.StatusOK
	var body []byte
	switch {
	case errors.Is(err, errNoAction):
		status = http.StatusNotFound
		h.Set("Content-Type", "text/xml")
		body = []byte("<UnknownOperationException/>\n")
	case err != nil:
		e := c.s.flavor.say(apiErrorOf(err))
		status = e.status
		if e.fault() {
			c.s.Log("sqs: %s: %s", c.name, e.text)
		}
		body = c.failure(h, id, e)
	case c.json:
		h.Set("Content-Type", contentJSON)
		body = c.success()
	default:
		h.Set("Content-Type", contentXML)
		if c.asJSON {
			h.Set("Content-Type", "application/json")
		}
		body = c.wrapped(id)
	}
	h.Set("Content-Length", itoa(int64(len(body))))
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that has gone needs no answer
}

// timedSet remembers for a while when something happened to an entity.
type timedSet struct {
	mu sync.Mutex
	at map[string]time.Time
}

// add notes that it happens to an entity now, unless it did less than a while ago: then it reports false.
func (t *timedSet) add(entity string, now time.Time, while time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if last, ok := t.at[entity]; ok && now.Sub(last) < while {
		return false
	}
	if t.at == nil {
		t.at = map[string]time.Time{}
	}
	for other, last := range t.at { // few are purged or deleted
		if now.Sub(last) >= while {
			delete(t.at, other)
		}
	}
	t.at[entity] = now
	return true
}

// recent reports whether it happened less than a while ago.
func (t *timedSet) recent(entity string, now time.Time, while time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	last, ok := t.at[entity]
	return ok && now.Sub(last) < while
}

func (t *timedSet) forget(entity string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.at, entity)
}
