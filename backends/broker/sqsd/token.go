package sqsd

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"

	"dlq/backends/broker"
	"dlq/backends/message"
)

// What a client keeps for us and gives back. The check sums tell what we made from what somebody
// made up; they are no secret, and what they stand for is looked up anyway.

const tokenPrefix = "dlq1:"

// token is the NextToken of a list that goes on behind a name.
func token(name string) string {
	return base64.StdEncoding.EncodeToString([]byte(tokenPrefix + name))
}

func readToken(s string) (name string, err error) {
	if s == "" {
		return "", nil
	}
	raw, bad := base64.StdEncoding.DecodeString(s)
	name, ok := strings.CutPrefix(string(raw), tokenPrefix)
	if bad != nil || !ok {
		return "", invalidParameter("Invalid or expired next token.")
	}
	return name, nil
}

// A receipt handle is the delivery, the queue it is of, and a check sum, in base64.
const (
	handleBytes = 8 + 16 + 8 + 8
	queueBytes  = 8
)

// receiptHandle is the handle of a delivery from an entity.
func receiptHandle(entity string, d broker.Delivery) string {
	b := make([]byte, 0, handleBytes)
	b = binary.BigEndian.AppendUint64(b, uint64(d.Seq))
	b = append(b, d.Token[:]...)
	q := sha256.Sum256([]byte(entity))
	b = append(b, q[:queueBytes]...)
	sum := sha256.Sum256(b)
	return base64.StdEncoding.EncodeToString(append(b, sum[:8]...))
}

// readHandle is the delivery that a handle stands for; ok is false for one that no receive from
// this entity has given.
func readHandle(entity, handle string) (d broker.Delivery, ok bool) {
	b, err := base64.StdEncoding.DecodeString(handle)
	if err != nil || len(b) != handleBytes {
		return d, false
	}
	d.Seq = int64(binary.BigEndian.Uint64(b))
	copy(d.Token[:], b[8:])
	if d.Seq <= 0 || receiptHandle(entity, d) != handle {
		return d, false
	}
	return d, d.Token != message.UUID{}
}
