package sqsd

import (
	"encoding/json"
	"fmt"
	"strings"

	"dlq/backends/broker"
)

// The policies of a queue and of its dead-letter queue.
// Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html

const maxReceives = 1000

// redrivePolicy is the policy of a queue as the service writes it; "": it has none.
func redrivePolicy(c *call) string {
	r := c.info.Redrive
	if r.Target == "" {
		return ""
	}
	arn := c.s.arn(c.s.idOf(r.Target))
	if c.s.Flavor == YMQ {
		return fmt.Sprintf(`{"maxReceiveCount":%d,"deadLetterTargetArn":%q}`, r.MaxReceives, arn)
	}
	return fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, arn, r.MaxReceives)
}

// setRedrivePolicy reads a policy. Empty takes it away.
func setRedrivePolicy(x *setting, value string) *apiError {
	if value == "" {
		x.p.Redrive = broker.Redrive{}
		return nil
	}
	var policy struct {
		Target      *string         `json:"deadLetterTargetArn"`
		MaxReceives json.RawMessage `json:"maxReceiveCount"`
	}
	f := x.c.s.flavor
	reason := func(format string, args ...any) *apiError {
		return f.badPolicy(value, "RedrivePolicy", fmt.Sprintf(format, args...))
	}
	if json.Unmarshal([]byte(value), &policy) != nil {
		return reason("Redrive policy is not a valid JSON map.")
	}
	if policy.MaxReceives == nil {
		return reason("Redrive policy does not contain mandatory attribute: maxReceiveCount.")
	}
	if str(policy.Target) == "" {
		return reason("Redrive policy does not contain mandatory attribute: deadLetterTargetArn.")
	}
	text := strings.Trim(string(policy.MaxReceives), `"`) // a number in quotes is one
	count := parseNumber(text)
	if !count.within(1, maxReceives) {
		return reason("Invalid value for maxReceiveCount: %s, valid values are from 1 to %d both inclusive.", text, maxReceives)
	}
	q, ok := parseARN(*policy.Target)
	if !ok && strings.Count(*policy.Target, ":") < 5 {
		return reason("Invalid value for deadLetterTargetArn.") // it is no ARN at all
	}
	if !ok {
		return reason("Only SQS queues are valid resources for deadLetterTargetArn.")
	}
	if !x.looked {
		if why := x.target(q); why != "" {
			return reason("%s", why)
		}
	}
	x.p.Redrive = broker.Redrive{Target: x.c.s.entityOf(q), MaxReceives: int(count.n)}
	return nil
}

// target says why a queue cannot be the dead-letter queue; "": it can.
func (x *setting) target(q queueID) string {
	c := x.c
	if q == c.queue {
		return "" // a queue may name itself
	}
	info, err := c.lookUp(q)
	switch {
	case err != nil || q.region != c.queue.region || q.account != c.queue.account:
		return "Dead letter target does not exist."
	case info.Groups != x.fifo:
		return "Dead-letter queue must be same type of queue as the source.."
	}
	switch info.RedriveAllow.Permission {
	case broker.DenyAll:
		return "The dead-letter queue does not allow any queue to use it: its redrive allow policy is denyAll."
	case broker.AllowByQueue:
		for _, source := range info.RedriveAllow.Sources {
			if source == c.entity {
				return ""
			}
		}
		return "The redrive allow policy of the dead-letter queue does not name this queue."
	}
	return ""
}

// entityOf is the name of a queue in the engine as a policy of this queue has it. The engine takes
// one without region and account to be where this queue is.
func (x *setting) entityOf(q queueID) string {
	if q.region == x.c.queue.region && q.account == x.c.queue.account {
		return x.c.s.entityOf(q)
	}
	return q.region + "/" + q.account + "/" + q.name
}

// badPolicy says what is wrong with a policy.
func (f *flavor) badPolicy(value, name, reason string) *apiError {
	if f != &yandex {
		return invalidValue(value, name, reason)
	}
	switch {
	case strings.Contains(reason, "maxReceiveCount:"):
		return invalidParameter("maxReceiveCount must be greater than 0 and less than %d.", maxReceives+1)
	case strings.Contains(reason, "same type"):
		return invalidParameter("Target dead letter queue should have the same type as source queue.")
	case strings.Contains(reason, "valid resources"), strings.Contains(reason, "value for deadLetter"), strings.Contains(reason, "not exist"):
		return invalidParameter("Invalid deadLetterTargetArn.")
	}
	return invalidParameter("RedrivePolicy attribute is ill-constructed.")
}

type allowPolicy struct {
	Permission broker.Permission `json:"redrivePermission"`
	Sources    []string          `json:"sourceQueueArns,omitempty"`
}

func redriveAllowPolicy(c *call) string {
	allow := c.info.RedriveAllow
	if allow.Permission == "" {
		return ""
	}
	out := allowPolicy{Permission: allow.Permission}
	for _, name := range allow.Sources {
		out.Sources = append(out.Sources, c.s.arn(c.s.idOf(name)))
	}
	text, _ := json.Marshal(out) // of strings
	return string(text)
}

const maxSources = 10

// setRedriveAllowPolicy reads a policy. Empty takes it away.
func setRedriveAllowPolicy(x *setting, value string) *apiError {
	if value == "" {
		x.p.RedriveAllow = broker.RedriveAllow{}
		return nil
	}
	reason := func(text string) *apiError { return invalidValue(value, "RedriveAllowPolicy", text) }
	var policy allowPolicy
	if json.Unmarshal([]byte(value), &policy) != nil {
		return reason("Redrive allow policy is not a valid JSON map.")
	}
	allow := broker.RedriveAllow{Permission: policy.Permission}
	switch policy.Permission {
	case broker.AllowAll, broker.DenyAll:
		if len(policy.Sources) > 0 {
			return reason("Amazon SQS can't create the redrive allow policy. To specify one or more source queue ARNs, you must set redrivePermission to byQueue.")
		}
	case broker.AllowByQueue:
		if len(policy.Sources) == 0 {
			return reason("Amazon SQS can't create the redrive allow policy. When you specify the byQueue permission type, you must also specify one or more sourceQueueArns values.")
		}
		if len(policy.Sources) > maxSources {
			return reason(fmt.Sprintf("Amazon SQS can't create the redrive allow policy. You can specify up to %d sourceQueueArns values.", maxSources))
		}
	default:
		return reason("Amazon SQS can't create the redrive allow policy. The redrivePermission must be allowAll, denyAll or byQueue.")
	}
	for _, arn := range policy.Sources {
		q, ok := parseARN(arn)
		if !ok {
			return reason("Amazon SQS can't create the redrive allow policy. The sourceQueueArns must be ARNs of queues.")
		}
		allow.Sources = append(allow.Sources, x.entityOf(q))
	}
	x.p.RedriveAllow = allow
	return nil
}
