package sqsd

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"dlq/backends/sqsmsg"
)

// form is a node of the keys of a form, which are paths: "Attribute.1.Name".
type form struct {
	value *string
	kids  map[string]*form
}

const maxFormDepth = 8 // segments of a key; the longest that an action has is six

// parseForm reads a form or a query string. Of a key that is there twice the first counts.
func parseForm(encoded string, maxKeys int) (*form, *apiError) {
	root := &form{}
	for n := 0; encoded != ""; n++ {
		if n == maxKeys {
			return nil, invalidParameter("A request has at most %d parameters.", maxKeys)
		}
		var part string
		part, encoded, _ = strings.Cut(encoded, "&")
		if part == "" {
			continue
		}
		key, value, _ := strings.Cut(part, "=")
		key, err := url.QueryUnescape(key)
		if err == nil {
			value, err = url.QueryUnescape(value)
		}
		if err != nil {
			return nil, malformed("The parameters are not encoded as a form: %v.", err)
		}
		root.put(key, value)
	}
	return root, nil
}

// put keeps a value under its key. A key that is too deep is none that an action has.
func (f *form) put(key, value string) {
	for depth := 0; ; depth++ {
		if depth == maxFormDepth {
			return
		}
		segment, rest, more := strings.Cut(key, ".")
		next := f.kids[segment]
		if next == nil {
			next = &form{}
			if f.kids == nil {
				f.kids = map[string]*form{}
			}
			f.kids[segment] = next
		}
		if f = next; !more {
			break
		}
		key = rest
	}
	if f.value == nil {
		f.value = &value
	}
}

// at returns what is below a key; it is never nil.
func (f *form) at(key string) *form {
	if kid := f.kids[key]; kid != nil {
		return kid
	}
	return &form{}
}

func (f *form) text(key string) *string { return f.at(key).value }

func (f *form) number(key string) *number {
	if v := f.text(key); v != nil {
		return parseNumber(*v)
	}
	return nil
}

// list returns what is below a key with a number, in the order of the numbers, which may have
// gaps. What stands there without a number comes first: kombu sends it so.
func (f *form) list(key string) []*form {
	node := f.kids[key]
	if node == nil {
		return nil
	}
	var indexes []int
	for name := range node.kids {
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i <= maxIndex && strconv.Itoa(i) == name {
			indexes = append(indexes, i)
		}
	}
	slices.Sort(indexes)
	var items []*form
	if node.value != nil || len(indexes) < len(node.kids) {
		items = append(items, node)
	}
	for _, i := range indexes {
		items = append(items, node.kids[strconv.Itoa(i)])
	}
	return items
}

func (f *form) texts(key string) []string {
	var out []string
	for _, item := range f.list(key) {
		if item.value != nil {
			out = append(out, *item.value)
		}
	}
	return out
}

func (f *form) pairs(key, name, value string) []pair {
	var out []pair
	for _, item := range f.list(key) {
		if n := item.text(name); n != nil {
			out = append(out, pair{*n, str(item.text(value))})
		}
	}
	return out
}

// query reads the members of a request from a form. Keys that no action has are passed over.
// Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-making-api-requests-xml.html
func (in *input) query(f *form, action string) {
	in.queueURL, in.queueName, in.owner = f.text("QueueUrl"), f.text("QueueName"), f.text("QueueOwnerAWSAccountId")
	in.prefix, in.nextToken, in.maxResults = f.text("QueueNamePrefix"), f.text("NextToken"), f.number("MaxResults")
	in.attributes, in.tags = f.pairs("Attribute", "Name", "Value"), f.pairs("Tag", "Key", "Value")
	in.tagKeys, in.attributeNames = f.texts("TagKey"), f.texts("AttributeName")
	in.systemNames, in.messageNames = f.texts("MessageSystemAttributeName"), f.texts("MessageAttributeName")
	in.maxMessages, in.wait, in.attemptID = f.number("MaxNumberOfMessages"), f.number("WaitTimeSeconds"), f.text("ReceiveRequestAttemptId")
	in.label, in.accounts, in.actions = f.text("Label"), f.texts("AWSAccountId"), f.texts("ActionName")
	in.source, in.destination = f.text("SourceArn"), f.text("DestinationArn")
	in.handle, in.rate = f.text("TaskHandle"), f.number("MaxNumberOfMessagesPerSecond")
	in.entry.query(f)
	for _, item := range f.list(action + "RequestEntry") { // of a batch
		e := entry{id: str(item.text("Id"))}
		e.query(item)
		in.entries = append(in.entries, e)
	}
}

func (e *entry) query(f *form) {
	e.body, e.group, e.dedup = f.text("MessageBody"), f.text("MessageGroupId"), f.text("MessageDeduplicationId")
	e.receipt, e.delay, e.visibility = f.text("ReceiptHandle"), f.number("DelaySeconds"), f.number("VisibilityTimeout")
	e.queryAttributes(f.list("MessageAttribute"), &e.attrs)
	e.queryAttributes(f.list("MessageSystemAttribute"), &e.system)
}

func (e *entry) queryAttributes(items []*form, to *[]sqsmsg.Attribute) {
	for _, item := range items {
		value := item.at("Value")
		raw := rawAttribute{
			name: str(item.text("Name")), dataType: str(value.text("DataType")),
			text: value.text("StringValue"), binary: value.text("BinaryValue"),
		}
		raw.lists = len(value.list("StringListValue")) > 0 || len(value.list("BinaryListValue")) > 0
		e.addAttribute(raw, to)
	}
}
