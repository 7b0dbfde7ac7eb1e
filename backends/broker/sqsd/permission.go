package sqsd

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"dlq/backends/broker"
)

// policy is the part of a queue's policy that permissions are made of. Policies are kept and
// shown; nothing is allowed or denied by them.
// Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_AddPermission.html
type policy struct {
	Version   string            `json:"Version"`
	ID        string            `json:"Id"`
	Statement []json.RawMessage `json:"Statement"`
}

type statement struct {
	Sid       string         `json:"Sid"`
	Effect    string         `json:"Effect"`
	Principal map[string]any `json:"Principal"`
	Action    any            `json:"Action"`
	Resource  string         `json:"Resource"`
}

const maxActions = 7

// permitted are the actions that a permission can name; those on batches go with them.
var permitted = []string{
	"*", "SendMessage", "ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility", "GetQueueAttributes",
	"GetQueueUrl", "ListDeadLetterSourceQueues", "PurgeQueue", "DeleteQueue", "SetQueueAttributes", "ListQueueTags",
	"StartMessageMoveTask", "CancelMessageMoveTask", "ListMessageMoveTasks",
}

func (c *call) addPermission() error {
	label := str(c.in.label)
	switch {
	case c.in.label == nil:
		return missingParameter("Label")
	case !queueName.MatchString(label):
		return invalidValue(label, "Label", "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length.")
	case len(c.in.accounts) == 0:
		return missingParameter("AWSAccountIds")
	case len(c.in.actions) == 0:
		return missingParameter("Actions")
	case len(c.in.actions) > maxActions:
		return overLimit("%d Actions were found, maximum allowed is %d.", len(c.in.actions), maxActions)
	}
	var accounts, allowed []string
	for _, account := range c.in.accounts {
		accounts = append(accounts, "arn:aws:iam::"+account+":root")
	}
	for _, name := range c.in.actions {
		if !slices.Contains(permitted, name) {
			return invalidValue("SQS:"+name, "ActionName", "Please refer to the appropriate WSDL for a list of valid actions. ")
		}
		allowed = append(allowed, "SQS:"+name)
	}
	arn := c.s.arn(c.queue)
	added := marshal(statement{
		Sid: label, Effect: "Allow", Principal: map[string]any{"AWS": oneOrAll(accounts)}, Action: oneOrAll(allowed), Resource: arn,
	})
	return c.changePolicy(func(p *policy) error {
		if p.Version == "" {
			p.Version, p.ID = "2008-10-17", arn+"/SQSDefaultPolicy"
		}
		if p.labeled(label) >= 0 {
			return invalidValue(label, "Label", "Already exists.")
		}
		p.Statement = append(p.Statement, added)
		return nil
	})
}

func (c *call) removePermission() error {
	if c.in.label == nil {
		return missingParameter("Label")
	}
	label := *c.in.label
	return c.changePolicy(func(p *policy) error {
		i := p.labeled(label)
		if i < 0 {
			return invalidValue(label, "Label", "can't find label.")
		}
		p.Statement = slices.Delete(p.Statement, i, i+1)
		return nil
	})
}

// labeled returns which statement has a label; -1: none.
func (p *policy) labeled(label string) int {
	return slices.IndexFunc(p.Statement, func(raw json.RawMessage) bool {
		var s struct {
			Sid string `json:"Sid"`
		}
		return json.Unmarshal(raw, &s) == nil && s.Sid == label
	})
}

// changePolicy changes the policy of the queue. One without statements is none.
func (c *call) changePolicy(f func(*policy) error) error {
	return c.s.Engine.Change(c.entity, func(properties *broker.Properties) error {
		var p policy
		if text := properties.Extra[extraPolicy]; text != "" && json.Unmarshal([]byte(text), &p) != nil {
			return invalidParameter("The policy of the queue has no statements that can be changed; set the attribute Policy.")
		}
		if err := f(&p); err != nil {
			return err
		}
		properties.Extra = maps.Clone(properties.Extra)
		if properties.Extra == nil {
			properties.Extra = map[string]string{}
		}
		if len(p.Statement) == 0 {
			delete(properties.Extra, extraPolicy)
			return nil
		}
		text := marshal(p)
		if len(text) > maxAttributeBytes {
			return overLimit("The policy of a queue has at most %d bytes, and this would be %d.", maxAttributeBytes, len(text))
		}
		properties.Extra[extraPolicy] = string(text)
		return nil
	})
}

// oneOrAll is a list as policies write it: one alone is not in a list.
func oneOrAll(list []string) any {
	if len(list) == 1 {
		return list[0]
	}
	return list
}

// marshal writes what consists of texts alone, with "<" as it is.
func marshal(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // texts alone
	return bytes.TrimSpace(b.Bytes())
}
