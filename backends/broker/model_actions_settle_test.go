package broker

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"dlq/backends/message"
)

// The actions of the machine that settle, and those that change entities or time.

func unstaged(x *refMessage) bool { return x.held() && x.staged == nil }

// lostLock is the error of a token that stands for no lock of an address.
func (m *machine) lostLock(a Address) error {
	if e := m.ref.entity(a.Name); e.p.RequiresSession && a.Sub == Main {
		return ErrSessionLockLost
	}
	return ErrLockLost
}

func outcome(action Action) Outcome {
	return Outcome{Action: action, Reason: "why", Description: "in words"}
}

// settleAs settles a message that is locked.
func (m *machine) settleAs(t *rapid.T, o Outcome) {
	x := pick(t, "message", m.messages(unstaged))
	if o.Action != Complete && rapid.Bool().Draw(t, "set") {
		o.Set = []message.Attribute{{Name: "n", Value: message.Int(7)}, {Name: "seen", Value: message.Bool(true)}}
	}
	m.settle(t, x, o)
}

func (m *machine) settle(t *rapid.T, x *refMessage, o Outcome) {
	a, token := x.address(), x.token
	wanted := x.of.refuses(x.sub, o)
	errs, err := m.e.Settle(a, o, token)
	want(t, "settle", err, nil)
	wantEach(t, "settle", errs, wanted)
	if wanted == nil {
		m.durable = true
		m.ref.settle(x, o)
	}
}

func (m *machine) complete(t *rapid.T)   { m.settleAs(t, outcome(Complete)) }
func (m *machine) abandon(t *rapid.T)    { m.settleAs(t, outcome(Abandon)) }
func (m *machine) deferIt(t *rapid.T)    { m.settleAs(t, outcome(Defer)) }
func (m *machine) deadLetter(t *rapid.T) { m.settleAs(t, outcome(Bury)) }

func anyOutcome(t *rapid.T) Outcome {
	return outcome(Action(rapid.IntRange(int(Complete), int(Bury)).Draw(t, "action")))
}

// settleSeveral settles messages of one sub-queue in one call, a lost token among them.
func (m *machine) settleSeveral(t *rapid.T) {
	first := pick(t, "message", m.messages(unstaged))
	a, o := first.address(), anyOutcome(t)
	xs := first.of.in(a.Sub, unstaged)
	tokens := []message.UUID{{1}}
	wanted := []error{m.lostLock(a)}
	for _, x := range xs {
		tokens, wanted = append(tokens, x.token), append(wanted, x.of.refuses(a.Sub, o))
	}
	errs, err := m.e.Settle(a, o, tokens...)
	want(t, "settle several", err, nil)
	wantEach(t, "settle several", errs, wanted...)
	for i, x := range xs {
		if wanted[i+1] == nil {
			m.durable = true
			m.ref.settle(x, o)
		}
	}
}

func (m *machine) settleBySequence(t *rapid.T) {
	x := pick(t, "message", m.messages(all))
	o := anyOutcome(t)
	a := x.address()
	refused := x.of.refuses(x.sub, o)
	errs, err := m.e.SettleBySequence(a, o, x.no.n)
	want(t, "settle by sequence", err, refused)
	if refused != nil {
		return
	}
	switch {
	case x.held():
		wantEach(t, "settle what is locked", errs, ErrLocked)
	case x.state == message.Scheduled && o.Action != Complete:
		wantEach(t, "settle what is scheduled", errs, ErrInvalid)
	default:
		wantEach(t, "settle by sequence", errs, nil)
		m.durable = true
		m.ref.settleFree(x, o)
	}
}

// cancel cancels a scheduled message.
func (m *machine) cancel(t *rapid.T) {
	x := pick(t, "message", m.messages(func(x *refMessage) bool { return x.state == message.Scheduled }))
	errs, err := m.e.SettleBySequence(x.address(), outcome(Complete), x.no.n)
	want(t, "cancel", err, nil)
	wantEach(t, "cancel", errs, nil)
	m.durable = true
	m.ref.remove(x)
}

// settleLost: a token whose lock is gone, or of another place, is refused and changes nothing.
func (m *machine) settleLost(t *rapid.T) {
	l := pick(t, "lost", slices.DeleteFunc(slices.Clone(m.ref.lost), func(l refToken) bool {
		return len(m.messages(func(x *refMessage) bool { return x.held() && x.token == l.token })) > 0 // stale, and extended again
	}))
	e := pick(t, "entity", m.ref.entities)
	a := Address{e.name, pick(t, "sub", e.subs())}
	o := outcome(Complete)
	errs, err := m.e.Settle(a, o, l.token)
	want(t, "settle lost", err, nil)
	wantEach(t, "settle lost", errs, m.lostLock(a))
	errs, err = m.e.Renew(a, l.token)
	want(t, "renew lost", err, nil)
	wantEach(t, "renew lost", errs, m.lostLock(a))
	want(t, "release lost", m.e.Release(a, l.token), nil)
}

// stale shows a token that was lost together with its message's number: an SQS standard queue
// takes it until the message is received again.
func (m *machine) stale(t *rapid.T) {
	ofQueues := slices.DeleteFunc(slices.Clone(m.ref.lost), func(l refToken) bool {
		e := m.ref.entity(l.at.Name)
		return e == nil || e.p.Dialect != SQS || l.seq == 0
	})
	l := pick(t, "lost", ofQueues)
	d := Delivery{Seq: l.seq, Token: l.token}
	x, wanted := m.ref.stale(m.ref.entity(l.at.Name), d)
	if rapid.Bool().Draw(t, "extend") {
		by := time.Duration(rapid.IntRange(0, 20).Draw(t, "by")) * time.Second
		errs, err := m.e.Extend(l.at, by, d)
		want(t, "extend a stale delivery", err, nil)
		if wanted == nil {
			wanted = m.ref.extend(x, by)
		}
		wantEach(t, "extend a stale delivery", errs, wanted)
		return
	}
	errs, err := m.e.SettleDelivery(l.at, outcome(Complete), d)
	want(t, "settle a stale delivery", err, nil)
	wantEach(t, "settle a stale delivery", errs, wanted)
	if wanted == nil {
		m.durable = true
		m.ref.remove(x)
	}
}

func (m *machine) renew(t *rapid.T) {
	x := pick(t, "message", m.messages(unstaged))
	errs, err := m.e.Renew(x.address(), x.token)
	want(t, "renew", err, nil)
	if x.of.p.RequiresSession && x.sub == Main {
		wantEach(t, "renew", errs, ErrUnsupported)
		return
	}
	wantEach(t, "renew", errs, nil)
	x.until = m.now.Add(x.of.p.LockDuration)
}

func (m *machine) extend(t *rapid.T) {
	x := pick(t, "message", m.messages(unstaged))
	by := pick(t, "by", []time.Duration{0, time.Second, time.Minute, 12 * time.Hour, 13 * time.Hour, -1})
	errs, err := m.e.Extend(x.address(), by, Delivery{x.no.n, x.token})
	want(t, "extend", err, nil)
	if x.of.p.RequiresSession && x.sub == Main && by >= 0 && m.now.Add(by).Sub(x.since) <= refLongestHold {
		wantEach(t, "extend", errs, ErrUnsupported)
		return
	}
	wantEach(t, "extend", errs, m.ref.extend(x, by))
}

func (m *machine) release(t *rapid.T) {
	x := pick(t, "message", m.messages(unstaged))
	want(t, "release", m.e.Release(x.address(), x.token), nil)
	m.ref.release(x)
}

func (m *machine) purge(t *rapid.T) {
	if rapid.IntRange(0, 4).Draw(t, "rarely") > 0 {
		return
	}
	a := m.receivable(t)
	e := m.ref.entity(a.Name)
	o := PurgeOptions{InFlight: rapid.Bool().Draw(t, "in flight"), ForgetDuplicates: rapid.Bool().Draw(t, "forget")}
	gone := e.in(a.Sub, func(x *refMessage) bool { return !x.held() || o.InFlight })
	n, err := m.e.Purge(context.Background(), a, o)
	if want(t, "purge", err, nil); n != int64(len(gone)) {
		t.Fatalf("purged %d messages, want %d", n, len(gone))
	}
	m.durable = m.durable || len(gone) > 0
	for _, x := range gone {
		m.ref.remove(x)
	}
	if o.ForgetDuplicates {
		e.seen = nil
	}
}

// Transactions. One is open at a time.

func (m *machine) beginTransaction(t *rapid.T) {
	if m.tx != nil {
		t.SkipNow()
	}
	m.tx = m.e.Begin()
	m.ref.begin()
}

func (m *machine) stageSend(t *rapid.T) {
	if m.tx == nil {
		t.SkipNow()
	}
	e := m.destination(t)
	var via *Address
	if rapid.IntRange(0, 2).Draw(t, "via") == 0 {
		via = &Address{Name: pick(t, "via", m.entities(func(e *refEntity) bool { return e.kind == Queue && e.p.SubQueues && !e.p.RequiresSession })).name}
	}
	a, msg := Address{Name: e.name}, m.message(t, e)
	wanted := m.ref.stage()
	if wanted == nil {
		wanted = m.ref.opens(a)
	}
	if via != nil && errors.Is(wanted, ErrDisabled) {
		wanted = nil // it is the transfer that is refused
	}
	if wanted == nil && via != nil {
		wanted = m.ref.opens(*via)
	}
	errs, err := m.tx.Send(a, via, []*message.Message{msg})
	want(t, "stage a send", err, wanted)
	if wanted != nil {
		return
	}
	refused := m.ref.accepts(e, msg)
	wantEach(t, "stage a send", errs, refused)
	if refused == nil {
		m.ref.tx.sends = append(m.ref.tx.sends, refStagedSend{a, via, msg})
		m.ref.staged()
	}
}

func (m *machine) stageSettle(t *rapid.T) {
	if m.tx == nil {
		t.SkipNow()
	}
	x := pick(t, "message", m.messages(unstaged))
	o := anyOutcome(t)
	wanted := m.ref.stage()
	if wanted == nil {
		wanted = x.of.refuses(x.sub, o)
	}
	errs, err := m.tx.Settle(x.address(), o, x.token)
	want(t, "stage a settlement", err, wanted)
	if wanted != nil {
		return
	}
	wantEach(t, "stage a settlement", errs, nil)
	x.staged, x.decision = m.ref.tx, len(m.ref.tx.settles)
	m.ref.tx.settles = append(m.ref.tx.settles, refStagedSettle{x, o, x.decision})
	m.ref.staged()
}

// settleStaged: what a transaction has decided over nobody else can settle.
func (m *machine) settleStaged(t *rapid.T) {
	x := pick(t, "message", m.messages(func(x *refMessage) bool { return x.held() && x.staged != nil }))
	errs, err := m.e.Settle(x.address(), outcome(Complete), x.token)
	want(t, "settle what is staged", err, nil)
	wantEach(t, "settle what is staged", errs, ErrLocked)
}

// staged reports whether there is something to commit or to roll back.
func (m *machine) staged() bool {
	return m.tx != nil && (m.ref.tx.ended || len(m.ref.tx.sends) > 0 || len(m.ref.tx.settles) > 0)
}

func (m *machine) commit(t *rapid.T) {
	if !m.staged() {
		t.SkipNow()
	}
	settles := len(m.ref.tx.settles) > 0
	m.ref.stored = false
	wanted := m.ref.commit()
	m.durable = m.durable || wanted == nil && (settles || m.ref.stored)
	want(t, "commit", m.tx.Commit(), wanted)
	m.tx = nil
}

func (m *machine) rollback(t *rapid.T) {
	if !m.staged() {
		t.SkipNow()
	}
	var wanted error
	if m.ref.tx.ended {
		wanted = ErrTransaction
	}
	want(t, "roll back", m.tx.Rollback(), wanted)
	m.ref.tx.end()
	m.ref.tx, m.tx = nil, nil
}

// Entities.

func (m *machine) addRule(t *rapid.T) {
	e := pick(t, "subscription", m.entities(func(e *refEntity) bool { return e.kind == Subscription }))
	rule := pick(t, "rule", ruleBook())
	err := m.e.AddRule(e.name, rule.Rule)
	if slices.ContainsFunc(e.rules, func(r refRule) bool { return r.Name == rule.Name }) {
		want(t, "add a rule", err, ErrExists)
		return
	}
	want(t, "add a rule", err, nil)
	m.durable = true
	e.rules = append(e.rules, rule)
	m.checkRules(t, e)
}

func (m *machine) removeRule(t *rapid.T) {
	e := pick(t, "subscription", m.entities(func(e *refEntity) bool { return e.kind == Subscription }))
	name := pick(t, "rule", ruleBook()).Name
	at := slices.IndexFunc(e.rules, func(r refRule) bool { return r.Name == name })
	err := m.e.RemoveRule(e.name, name)
	if at < 0 {
		want(t, "remove a rule", err, ErrNoEntity)
		return
	}
	want(t, "remove a rule", err, nil)
	m.durable = true
	e.rules = slices.Delete(e.rules, at, at+1)
	m.checkRules(t, e)
}

func (m *machine) checkRules(t *rapid.T, e *refEntity) {
	got, err := m.e.Rules(e.name)
	want(t, "rules", err, nil)
	if len(got) != len(e.rules) {
		t.Fatalf("%s has %d rules, want %d", e.name, len(got), len(e.rules))
	}
}

// change changes what can be changed of an entity.
func (m *machine) change(t *rapid.T) {
	e := pick(t, "entity", m.ref.entities)
	f := func(p *Properties) { p.Status = Enabled }
	switch rapid.IntRange(0, 5).Draw(t, "change") {
	case 3:
		if e.p.Retention > 0 {
			f = func(p *Properties) { p.Retention = 10 * time.Minute }
		}
	case 0:
		status := pick(t, "status", []Status{Disabled, SendDisabled, ReceiveDisabled})
		if e.p.Dialect == SQS || e.kind == Topic && status == ReceiveDisabled {
			status = Enabled
		}
		f = func(p *Properties) { p.Status = status }
	case 1:
		if e.kind != Topic {
			f = func(p *Properties) { p.LockDuration = 15 * time.Second }
		}
	case 2:
		if e.p.SubQueues && e.kind != Topic {
			f = func(p *Properties) { p.MaxDeliveryCount, p.DeadLetterOnExpiration = 2, !p.DeadLetterOnExpiration }
		}
	}
	if e.name == "plain" && m.ref.entity("once") != nil && e.kind == Queue && rapid.IntRange(0, 2).Draw(t, "forward") == 0 {
		to := pick(t, "forward to", []string{"once", "once", ""})
		f = func(p *Properties) { p.ForwardTo = to }
	}
	changed := e.p
	f(&changed)
	want(t, "change "+e.name, m.e.Change(e.name, func(p *Properties) error { f(p); return nil }), nil)
	e.p, e.accessed, m.durable = changed, m.now, true
}

// remake deletes an entity, and makes it anew, some time later, if it is missing.
func (m *machine) remake(t *rapid.T) {
	if rapid.IntRange(0, 4).Draw(t, "rarely") > 0 {
		return
	}
	s := pick(t, "entity", m.specs)
	if e := m.ref.entity(s.name); e != nil {
		want(t, "delete", m.e.Delete(s.name), nil)
		m.ref.delete(e)
		m.durable = true
	}
	m.recreate(t)
}

// recreate makes what is missing, unless what it needs is missing too.
func (m *machine) recreate(t *rapid.T) {
	for _, s := range m.specs {
		if m.ref.entity(s.name) == nil && rapid.IntRange(0, 3).Draw(t, "recreate") > 0 && m.possible(s) {
			m.create(t, s)
		}
	}
	m.closeRing(t)
}

func (m *machine) possible(s spec) bool {
	for _, name := range []string{s.p.ForwardTo, s.p.ForwardDeadLettersTo, s.p.Redrive.Target} {
		if name != "" && m.ref.entity(name) == nil {
			return false
		}
	}
	return s.kind != Subscription || m.ref.entity("news") != nil
}

// Time.

// advance lets time go by: a little, much, or up to the next thing that happens, or to just
// before it.
func (m *machine) advance(t *rapid.T) {
	by := time.Duration(rapid.IntRange(1, 5_000).Draw(t, "ms")) * time.Millisecond
	switch rapid.IntRange(0, 7).Draw(t, "how far") {
	case 0, 1:
		by *= 10
	case 2:
		by *= time.Duration(pick(t, "times", []int{20, 20, 20, 200}))
	case 3, 4:
		by = m.untilNext()
	case 5:
		by = max(0, m.untilNext()-time.Millisecond)
	}
	m.now = m.now.Add(by)
	m.ref.advance(m.now)
	if rapid.Bool().Draw(t, "tick") {
		want(t, "tick", m.e.Tick(), nil)
	}
}

// untilNext is how long it is to the next lock, time to live, schedule or window that ends.
func (m *machine) untilNext() time.Duration {
	var next time.Time
	consider := func(at time.Time) {
		if at.After(m.now) {
			next = soonest(next, at)
		}
	}
	for _, h := range m.ref.due() {
		consider(h.at)
	}
	for _, e := range m.ref.entities {
		for _, x := range e.msgs {
			consider(x.expires)
		}
		for _, s := range e.seen {
			consider(s.at.Add(e.p.DuplicateWindow + time.Millisecond))
		}
	}
	if next.IsZero() {
		return 0
	}
	return next.Sub(m.now)
}

// restart stops and starts the engine: by Close, or by a crash behind which everything is
// synced. Both keep every state, locks too; a transaction is gone.
func (m *machine) restart(t *rapid.T, crash bool) {
	if len(m.ref.entities) == 0 || rapid.IntRange(0, 2).Draw(t, "rarely") > 0 {
		return
	}
	if crash {
		e := pick(t, "synced", m.ref.entities)
		want(t, "sync", m.e.Change(e.name, func(*Properties) error { return nil }), nil) // which covers everything before
		dead := m.e
		m.fs = m.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 0})
		_ = dead.Close()
	} else if err := m.e.Close(); err != nil {
		t.Fatal(err)
	}
	m.open(t)
	if m.tx != nil {
		m.ref.tx.end()
		m.ref.tx, m.tx = nil, nil
	}
	m.durable = true
	m.ref.restarted(m.now)
}

func (m *machine) restartClean(t *rapid.T) { m.restart(t, false) }
func (m *machine) restartCrash(t *rapid.T) { m.restart(t, true) }
