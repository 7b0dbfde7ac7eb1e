package sqsd

import (
	"encoding/base64"
	"strings"

	"dlq/backends/sqsmsg"
)

// parseJSON reads the body of a request of the JSON protocol, which has to be one object. Members
// that no action has are skipped, as the service does.
// Source: https://smithy.io/2.0/aws/protocols/aws-json-1_0-protocol.html
func parseJSON(body []byte, in *input) *apiError {
	r := &jsonReader{b: body}
	if r.peek() == 0 && r.at == len(body) {
		return nil // as good as {}
	}
	err := r.object(func(name string) error { return in.member(r, name) })
	if err == nil {
		err = r.end()
	}
	if err != nil {
		return malformed("The body is no JSON that SQS reads: %v.", err)
	}
	return nil
}

// member reads one member of a request.
func (in *input) member(r *jsonReader, name string) error {
	if texts := in.textMember(name); texts != nil {
		return readText(r, texts)
	}
	if numbers := in.numberMember(name); numbers != nil {
		return readNumber(r, numbers)
	}
	if lists := in.listMember(name); lists != nil {
		return readTexts(r, lists)
	}
	switch name {
	case "Attributes":
		return readPairs(r, &in.attributes)
	case "tags", "Tags":
		return readPairs(r, &in.tags)
	case "Entries":
		return readList(r, func() error {
			var e entry
			err := r.object(func(name string) error { return e.member(r, name) })
			in.entries = append(in.entries, e)
			return err
		})
	}
	return in.entry.member(r, name)
}

func (in *input) textMember(name string) **string {
	switch name {
	case "QueueUrl":
		return &in.queueURL
	case "QueueName":
		return &in.queueName
	case "QueueOwnerAWSAccountId":
		return &in.owner
	case "QueueNamePrefix":
		return &in.prefix
	case "NextToken":
		return &in.nextToken
	case "ReceiveRequestAttemptId":
		return &in.attemptID
	case "Label":
		return &in.label
	case "SourceArn":
		return &in.source
	case "DestinationArn":
		return &in.destination
	case "TaskHandle":
		return &in.handle
	}
	return nil
}

func (in *input) numberMember(name string) **number {
	switch name {
	case "MaxResults":
		return &in.maxResults
	case "MaxNumberOfMessages":
		return &in.maxMessages
	case "WaitTimeSeconds":
		return &in.wait
	case "MaxNumberOfMessagesPerSecond":
		return &in.rate
	}
	return nil
}

func (in *input) listMember(name string) *[]string {
	switch name {
	case "AttributeNames":
		return &in.attributeNames
	case "MessageSystemAttributeNames":
		return &in.systemNames
	case "MessageAttributeNames":
		return &in.messageNames
	case "TagKeys":
		return &in.tagKeys
	case "AWSAccountIds":
		return &in.accounts
	case "Actions":
		return &in.actions
	}
	return nil
}

// member reads one member of a message.
func (e *entry) member(r *jsonReader, name string) error {
	switch name {
	case "Id":
		var id *string
		err := readText(r, &id)
		e.id = str(id)
		return err
	case "MessageBody":
		return readText(r, &e.body)
	case "MessageGroupId":
		return readText(r, &e.group)
	case "MessageDeduplicationId":
		return readText(r, &e.dedup)
	case "ReceiptHandle":
		return readText(r, &e.receipt)
	case "DelaySeconds":
		return readNumber(r, &e.delay)
	case "VisibilityTimeout":
		return readNumber(r, &e.visibility)
	case "MessageAttributes":
		return e.readAttributes(r, &e.attrs)
	case "MessageSystemAttributes":
		return e.readAttributes(r, &e.system)
	}
	return r.skip()
}

func readText(r *jsonReader, to **string) error {
	s, ok, err := r.text()
	if ok {
		*to = &s
	}
	return err
}

func readNumber(r *jsonReader, to **number) error {
	s, ok, err := r.text()
	if ok {
		*to = parseNumber(s)
	}
	return err
}

// readList reads a list that may be null.
func readList(r *jsonReader, item func() error) error {
	if null, err := r.isNull(); null {
		return err
	}
	return r.array(item)
}

func readTexts(r *jsonReader, to *[]string) error {
	return readList(r, func() error {
		s, ok, err := r.text()
		if ok {
			*to = append(*to, s)
		}
		return err
	})
}

// readMap reads an object that may be null.
func readMap(r *jsonReader, member func(name string) error) error {
	if null, err := r.isNull(); null {
		return err
	}
	return r.object(member)
}

func readPairs(r *jsonReader, to *[]pair) error {
	return readMap(r, func(name string) error {
		s, ok, err := r.text()
		if ok {
			*to = append(*to, pair{name, s})
		}
		return err
	})
}

// readAttributes reads a map of message attributes.
func (e *entry) readAttributes(r *jsonReader, to *[]sqsmsg.Attribute) error {
	return readMap(r, func(name string) error {
		raw := rawAttribute{name: name}
		err := readMap(r, func(member string) error {
			switch member {
			case "DataType":
				var t *string
				err := readText(r, &t)
				raw.dataType = str(t)
				return err
			case "StringValue":
				return readText(r, &raw.text)
			case "BinaryValue":
				return readText(r, &raw.binary)
			case "StringListValues", "BinaryListValues":
				return readList(r, func() error {
					raw.lists = true
					return r.skip()
				})
			}
			return r.skip()
		})
		e.addAttribute(raw, to)
		return err
	})
}

// addAttribute keeps an attribute, or what is wrong with it. The first thing that is wrong counts.
func (e *entry) addAttribute(raw rawAttribute, to *[]sqsmsg.Attribute) {
	a := sqsmsg.Attribute{Name: raw.name, Type: raw.dataType}
	var problem *apiError
	field, other := "String", raw.binary
	if a.Binary() {
		field, other = "Binary", raw.text
	}
	switch {
	case raw.lists:
		problem = unsupported("Message attribute list values in SendMessage operation are not supported.")
	case raw.text != nil && raw.binary != nil:
		problem = invalidParameter("Message (user) attribute '%s' must have a single value.", raw.name)
	case other != nil && (a.Binary() || strings.HasPrefix(a.Type, "String") || strings.HasPrefix(a.Type, "Number")):
		problem = invalidParameter("Message (user) attribute '%s' with type '%s' must use field '%s'.", raw.name, raw.dataType, field)
	case a.Binary():
		value, err := base64.StdEncoding.DecodeString(str(raw.binary))
		if err != nil {
			problem = malformed("The value of the message attribute '%s' is not in base64.", raw.name)
		}
		a.Value = value
	default:
		a.Value = []byte(str(raw.text))
	}
	if e.badAttribute == nil {
		e.badAttribute = problem
	}
	*to = append(*to, a)
}
