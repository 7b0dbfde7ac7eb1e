package amqpd

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// FaultSyntax describes what [ParseFaults] reads, for help texts.
const FaultSyntax = `KIND[/OPERATION]=WHEN[@ENTITY], several with commas between them.
KIND       throttle, error, disconnect, lock-lost, delay; over AMQP detach; over SQS duplicate, which delivers again
OPERATION  send, receive, settle or manage; over AMQP attach; http for the management API; without it, all that
           the kind can strike
WHEN       10% (the same ones each time), every:5, first:3, at:7 or always;
           for delay a duration, alone or before one of these: delay=200ms, delay=2s:every:10
ENTITY     only operations on it, its sub-queues and its subscriptions
seed=N     chooses other ones for the percentages`

// The bounds of a specification, so that no slip makes a server that seems to hang.
const (
	maxFaultRules = 100
	maxFaultDelay = 5 * time.Minute
)

// ParseFaults reads a specification of faults, which [FaultSyntax] describes. An error names
// the position, counted from 1, and what would be right.
func ParseFaults(spec string) (*Faults, error) {
	f := &Faults{}
	at := 0
	for part := range strings.SplitSeq(spec, ",") {
		text := strings.TrimSpace(part)
		start := at + len(part) - len(strings.TrimLeft(part, " \t")) + 1
		at += len(part) + 1
		if err := f.add(text); err != nil {
			return nil, fmt.Errorf("position %d: %q: %w", start, text, err)
		}
	}
	return f, nil
}

// add reads one part of a specification.
func (f *Faults) add(text string) error {
	if text == "" {
		return errors.New("want KIND=WHEN, such as throttle=10%")
	}
	what, when, ok := strings.Cut(text, "=")
	if !ok {
		return errors.New("say when: " + text + "=10%, =every:5, =first:3 or =always")
	}
	if strings.EqualFold(what, "seed") {
		n, err := strconv.ParseUint(when, 10, 32)
		if err != nil {
			return errors.New("a seed is a whole number below 4294967296")
		}
		f.seed = n
		return nil
	}
	if len(f.rules) == maxFaultRules {
		return fmt.Errorf("these are more than %d", maxFaultRules)
	}
	r := &faultRule{}
	when, entity, scoped := strings.Cut(when, "@")
	r.entity = strings.ToLower(strings.Trim(entity, "/"))
	if scoped && r.entity == "" {
		return errors.New("the name of the entity is missing behind @")
	}
	kind, op, limited := strings.Cut(what, "/")
	if err := r.parseKind(kind); err != nil {
		return err
	}
	if err := r.parseOp(op, limited); err != nil {
		return err
	}
	if r.kind == FaultDelay {
		var err error
		if when, err = r.parseDelay(when); err != nil {
			return err
		}
	}
	if err := r.when.parse(when); err != nil {
		return err
	}
	f.rules = append(f.rules, r)
	return nil
}

func (r *faultRule) parseKind(s string) error {
	i := slices.IndexFunc(faultNames[:], func(name string) bool { return strings.EqualFold(s, name) })
	if i < 0 {
		return fmt.Errorf("no fault is called %q; there are %s", s, strings.Join(faultNames[:], ", "))
	}
	r.kind = FaultKind(i)
	return nil
}

func (r *faultRule) parseOp(s string, limited bool) error {
	for i, name := range opNames {
		op := Op(i)
		switch {
		case !limited:
			r.hits[op] = r.kind.strikes(op)
		case !strings.EqualFold(s, name):
		case !r.kind.strikes(op):
			return fmt.Errorf("%s cannot happen to %s; it can to %s", r.kind, op, strings.Join(r.kind.operations(), ", "))
		default:
			r.hits[op] = true
			return nil
		}
	}
	if limited {
		return fmt.Errorf("no operation is called %q; there are %s", s, strings.Join(opNames[:], ", "))
	}
	return nil
}

// operations are the names of those that the kind of fault can happen to.
func (k FaultKind) operations() []string {
	var names []string
	for i, name := range opNames {
		if k.strikes(Op(i)) {
			names = append(names, name)
		}
	}
	return names
}

// parseDelay reads how long a delay is and returns when it is to be.
func (r *faultRule) parseDelay(s string) (when string, err error) {
	length, when, ok := strings.Cut(s, ":")
	if !ok {
		when = "always"
	}
	d, err := time.ParseDuration(length)
	if err != nil {
		return "", fmt.Errorf("%q is no duration; write delay=200ms, or delay=200ms:every:5", length)
	}
	if d <= 0 || d > maxFaultDelay {
		return "", fmt.Errorf("a delay is more than 0 and at most %s", maxFaultDelay)
	}
	r.delay = d
	return when, nil
}

func (s *schedule) parse(text string) error {
	if strings.EqualFold(text, "always") {
		s.percent = 100
		return nil
	}
	if number, ok := strings.CutSuffix(text, "%"); ok {
		p, err := strconv.ParseFloat(number, 64)
		if err != nil || !(p > 0 && p <= 100) { // NaN is neither
			return errors.New("a percentage is more than 0 and at most 100")
		}
		s.percent = p
		return nil
	}
	word, number, _ := strings.Cut(text, ":")
	for _, w := range []struct {
		name string
		to   *uint64
	}{{"every", &s.every}, {"first", &s.first}, {"at", &s.at}} {
		if !strings.EqualFold(word, w.name) {
			continue
		}
		n, err := strconv.ParseUint(number, 10, 63)
		if err != nil || n == 0 {
			return fmt.Errorf("%s takes a number from 1 on: %s:5", w.name, w.name)
		}
		*w.to = n
		return nil
	}
	return fmt.Errorf("%q says no time; write 10%%, every:5, first:3, at:7 or always", text)
}
