package broker

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const (
	maxMaxReceives    = 1000
	maxAllowedSources = 10
)

// redrivePolicy is written as {"target":"orders-dlq","maxReceiveCount":5} and read with
// SQS's deadLetterTargetArn as well, or in short as orders-dlq:5. Empty says that there is none.
func redrivePolicy() form {
	return form{
		bounds: fmt.Sprintf("QUEUE:COUNT or JSON; count 1 to %d", maxMaxReceives),
		get: func(p *Properties) string {
			if p.Redrive == (Redrive{}) {
				return ""
			}
			return compactJSON(redriveJSON{Target: p.Redrive.Target, MaxReceives: p.Redrive.MaxReceives})
		},
		parse: func(p *Properties, s string) error {
			r, err := parseRedrive(s)
			if err == nil {
				p.Redrive = r
			}
			return err
		},
		within: func(p *Properties, _ bool) bool {
			r := p.Redrive
			return r == (Redrive{}) || isSQSName(r.Target) && r.MaxReceives >= 1 && r.MaxReceives <= maxMaxReceives
		},
	}
}

type redriveJSON struct {
	Target      string `json:"target"`
	MaxReceives int    `json:"maxReceiveCount"`
}

func parseRedrive(s string) (Redrive, error) {
	if s == "" {
		return Redrive{}, nil
	}
	if !strings.HasPrefix(strings.TrimSpace(s), "{") {
		i := strings.LastIndexByte(s, ':')
		n, err := strconv.Atoi(s[i+1:])
		if i < 0 || err != nil {
			return Redrive{}, errors.New(`want QUEUE:COUNT or {"target":"QUEUE","maxReceiveCount":COUNT}`)
		}
		return Redrive{Target: queueOfARN(s[:i]), MaxReceives: n}, nil
	}
	var in struct {
		Target      string          `json:"target"`
		TargetARN   string          `json:"deadLetterTargetArn"`
		MaxReceives json.RawMessage `json:"maxReceiveCount"`
	}
	if err := json.Unmarshal([]byte(s), &in); err != nil {
		return Redrive{}, fmt.Errorf("the redrive policy is no JSON object: %w", err)
	}
	if in.MaxReceives == nil {
		return Redrive{}, errors.New("the redrive policy does not contain maxReceiveCount")
	}
	// A number in quotes is a number, as in the service.
	n, err := strconv.Atoi(strings.Trim(string(in.MaxReceives), `"`))
	if err != nil {
		return Redrive{}, errors.New("maxReceiveCount of the redrive policy is not a whole number")
	}
	target := queueOfARN(cmp.Or(in.Target, in.TargetARN))
	if target == "" {
		return Redrive{}, errors.New("the redrive policy does not contain target or deadLetterTargetArn")
	}
	return Redrive{Target: target, MaxReceives: n}, nil
}

// redriveAllowPolicy is written and read as SQS's JSON, or in short as allowAll, denyAll or
// byQueue:a,b. Empty says that there is none, which allows all.
func redriveAllowPolicy() form {
	return form{
		bounds: fmt.Sprintf("allowAll, denyAll, byQueue:QUEUE,… (1 to %d) or JSON", maxAllowedSources),
		get: func(p *Properties) string {
			if p.RedriveAllow.Permission == "" && len(p.RedriveAllow.Sources) == 0 {
				return ""
			}
			return compactJSON(redriveAllowJSON{p.RedriveAllow.Permission, p.RedriveAllow.Sources})
		},
		parse: func(p *Properties, s string) error {
			a, err := parseRedriveAllow(s)
			if err == nil {
				p.RedriveAllow = a
			}
			return err
		},
		within: func(p *Properties, _ bool) bool {
			n := len(p.RedriveAllow.Sources)
			switch p.RedriveAllow.Permission {
			case "", AllowAll, DenyAll:
				return n == 0
			case AllowByQueue:
				foreign := func(name string) bool { return !isSQSName(name) }
				return n >= 1 && n <= maxAllowedSources && !slices.ContainsFunc(p.RedriveAllow.Sources, foreign)
			}
			return false
		},
	}
}

type redriveAllowJSON struct {
	Permission Permission `json:"redrivePermission"`
	Sources    []string   `json:"sourceQueueArns,omitempty"`
}

func parseRedriveAllow(s string) (RedriveAllow, error) {
	if s == "" {
		return RedriveAllow{}, nil
	}
	var in redriveAllowJSON
	if strings.HasPrefix(strings.TrimSpace(s), "{") {
		if err := json.Unmarshal([]byte(s), &in); err != nil {
			return RedriveAllow{}, fmt.Errorf("the redrive allow policy is no JSON object: %w", err)
		}
	} else {
		word, list, hasList := strings.Cut(s, ":")
		in.Permission = Permission(word)
		if hasList {
			in.Sources = strings.Split(list, ",")
		}
	}
	for _, known := range []Permission{AllowAll, DenyAll, AllowByQueue} {
		if strings.EqualFold(string(in.Permission), string(known)) {
			for i, source := range in.Sources {
				in.Sources[i] = queueOfARN(source)
			}
			return RedriveAllow{Permission: known, Sources: in.Sources}, nil
		}
	}
	return RedriveAllow{}, errors.New("the permission of a redrive allow policy is allowAll, denyAll or byQueue")
}

// queueOfARN returns the name of a queue of which the name or the ARN is given. The region and
// the account of an ARN are left out: they are those of the queue that has the policy, as the
// services demand, and qualify puts them in front of the name.
func queueOfARN(arn string) string {
	return strings.TrimSpace(arn[strings.LastIndexByte(arn, ':')+1:])
}

// qualify completes the names of other queues in the policies of a queue: where they have no
// region and account, those are the queue's own.
func (p *Properties) qualify(name string) {
	owner, _ := cutOwner(name)
	if p.Dialect != SQS || owner == "" {
		return
	}
	full := func(other string) string {
		if other == "" || strings.Contains(other, "/") {
			return other
		}
		return owner + other
	}
	p.Redrive.Target = full(p.Redrive.Target)
	for i, source := range p.RedriveAllow.Sources {
		p.RedriveAllow.Sources[i] = full(source)
	}
}

func compactJSON(v any) string {
	b, _ := json.Marshal(v) // of strings and numbers
	return string(b)
}
