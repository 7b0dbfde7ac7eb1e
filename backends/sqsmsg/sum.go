package sqsmsg

import (
	"cmp"
	"crypto/md5"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
)

// MD5 is the MD5 sum of b in lower-case hexadecimal digits: what SQS lets its clients check a body
// by. It protects from damage, not from people.
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

// AttributesMD5 is the sum over message attributes in the order of their names; "" when there are
// none, since a sum of nothing makes clients fail.
// Source: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-metadata.html#sqs-attributes-md5-message-digest-calculation
func AttributesMD5(as []Attribute) string {
	if len(as) == 0 {
		return ""
	}
	byName := func(a, b Attribute) int { return cmp.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(as, byName) {
		as = slices.Clone(as)
		slices.SortFunc(as, byName)
	}
	size := 0
	for _, a := range as {
		size += 3*4 + 1 + len(a.Name) + len(a.Type) + len(a.Value)
	}
	b := make([]byte, 0, size)
	for _, a := range as {
		b = appendSized(b, a.Name)
		b = appendSized(b, a.Type)
		transport := byte(1)
		if a.Binary() {
			transport = 2
		}
		b = append(b, transport)
		b = appendSized(b, string(a.Value))
	}
	return MD5(b)
}

func appendSized(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}

// Size is how many bytes a message has by the service's count.
func Size(body []byte, as []Attribute) int {
	n := len(body)
	for _, a := range as {
		n += len(a.Name) + len(a.Type) + len(a.Value)
	}
	return n
}
