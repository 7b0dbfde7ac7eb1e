package sqsmsg

import (
	"cmp"
	"crypto/md5"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
)

// MD5 is the MD5 sum of b in lower-case hexadecimal digits: what clients check a body by. It
// protects from damage, not from people.
func MD5(b []byte) string {
	sum := md5.Sum(b)
	return hex.EncodeToString(sum[:])
}

// ContentID is the deduplication id that a FIFO queue with ContentBasedDeduplication takes from a
// body.
func ContentID(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// Transport types in the sum over attributes.
const (
	textValue   = 1
	binaryValue = 2
)

// AttributesMD5 is the sum over message attributes in the byte order of their names, or over
// system attributes, which are summed apart. It is "" when there are none: the sum of nothing
// makes clients fail (https://github.com/aws/aws-sdk-php/issues/1315). as stays as it is.
// Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-metadata.html#sqs-attributes-md5-message-digest-calculation
func AttributesMD5(as []Attribute) string {
	if len(as) == 0 {
		return ""
	}
	byName := func(a, b Attribute) int { return cmp.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(as, byName) {
		as = slices.Clone(as)
		slices.SortStableFunc(as, byName)
	}
	sum := md5.New()
	var head []byte // all of an attribute before its value, which may be large and is not copied
	for _, a := range as {
		head = appendSized(head[:0], a.Name)
		head = appendSized(head, a.Type)
		if a.Binary() {
			head = append(head, binaryValue)
		} else {
			head = append(head, textValue)
		}
		head = binary.BigEndian.AppendUint32(head, uint32(len(a.Value)))
		sum.Write(head)
		sum.Write(a.Value)
	}
	return hex.EncodeToString(sum.Sum(head[:0]))
}

func appendSized(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}

// Size is how many bytes a message counts for: its body, and name, type and value of its
// attributes. System attributes are free.
func Size(body []byte, as []Attribute) int {
	n := len(body)
	for _, a := range as {
		n += len(a.Name) + len(a.Type) + len(a.Value)
	}
	return n
}
