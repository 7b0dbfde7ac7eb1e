package sqsd

import (
	"math"
	"strconv"

	"dlq/backends/sqsmsg"
)

// input is what a request asks for, whichever protocol it came in. It has the members of all
// actions; nil is absent, which is not the same as zero or empty.
type input struct {
	queueURL, queueName, owner  *string
	prefix, nextToken           *string
	maxResults                  *number
	attributes                  []pair // of a queue
	tags                        []pair
	tagKeys                     []string
	attributeNames              []string // of a queue, or system attributes of messages in the older form
	systemNames, messageNames   []string
	maxMessages, wait           *number
	attemptID                   *string
	label                       *string
	accounts, actions           []string
	source, destination, handle *string // of a move task: ARNs, and the task's handle
	rate                        *number
	entries                     []entry // of a batch
	entry                               // of an action on one message
}

// entry is what a request says of one message.
type entry struct {
	id            string
	body          *string
	delay         *number
	group, dedup  *string
	attrs, system []sqsmsg.Attribute
	badAttribute  *apiError // of attrs or system
	receipt       *string
	visibility    *number
	trace         string // AWSTraceHeader of the HTTP request
}

// number is a whole number as it was written, and whether it is one.
type number struct {
	text string
	n    int64
	ok   bool
}

func parseNumber(text string) *number {
	n, err := strconv.ParseInt(text, 10, 64)
	return &number{text, n, err == nil}
}

// within reports whether it is a number from low to high.
func (n *number) within(low, high int64) bool { return n.ok && n.n >= low && n.n <= high }

// or is the number, or another one where it is absent.
func (n *number) or(absent int64) int64 {
	if n == nil {
		return absent
	}
	return n.n
}

// str is what p points to, or "".
func str(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

// rawAttribute is a message attribute as it is read, before it is known to be sound.
type rawAttribute struct {
	name, dataType string
	text, binary   *string // binary: base64
	lists          bool    // it has values that the service keeps for the future
}

// maxIndex bounds the numbers in the names of form keys.
const maxIndex = math.MaxInt32
