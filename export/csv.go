package export

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"dlq/backends/message"
)

// csvColumns are the columns of CSV, in their order; the package documentation says what
// is in them.
func csvColumns() []string {
	return []string{
		"sequenceNumber", "enqueuedTime", "deliveryCount", "state", "deadLetterReason",
		"deadLetterErrorDescription", "deadLetterSource", "messageId", "correlationId", "subject", "contentType",
		"sessionId", "to", "replyTo", "properties", "bodyKind", "body", "bodyBase64",
	}
}

func appendCSVHeader(dst []byte) []byte {
	return append(append(dst, strings.Join(csvColumns(), ",")...), '\r', '\n')
}

// appendCSV appends m as one record (RFC 4180).
func appendCSV(dst []byte, m *message.Message) ([]byte, error) {
	var properties []byte
	if len(m.Properties) > 0 {
		var err error
		if properties, err = appendAttributes(nil, m.Properties); err != nil {
			return dst, fmt.Errorf("properties: %w", err)
		}
	}
	b := &m.Broker
	dst = strconv.AppendInt(dst, b.SequenceNumber, 10)
	dst = append(dst, ',')
	if !b.EnqueuedTime.IsZero() {
		dst = appendCell(dst, b.EnqueuedTime.UTC().Format(time.RFC3339Nano))
	}
	dst = append(dst, ',')
	dst = strconv.AppendUint(dst, uint64(b.DeliveryCount), 10)
	dst = append(dst, ',')
	dst = append(dst, b.State.String()...)
	kind, text, encoded := csvBody(m.Body)
	for _, s := range []string{
		m.DeadLetterReason(), m.DeadLetterDescription(), b.DeadLetterSource,
		message.FormatValue(m.ID), message.FormatValue(m.CorrelationID), message.Str(m.Subject), message.Str(m.ContentType),
		message.Str(m.SessionID), message.Str(m.To), message.Str(m.ReplyTo),
		string(properties), kind, text, encoded,
	} {
		dst = appendCell(append(dst, ','), s)
	}
	return append(dst, '\r', '\n'), nil
}

func csvBody(b message.Body) (kind, text, encoded string) {
	if len(b.Sections) == 0 {
		return "", "", ""
	}
	kind = b.Kind.String()
	if b.Kind == message.Data && len(b.Sections) == 1 && utf8.Valid(b.Sections[0]) {
		return kind, string(b.Sections[0]), ""
	}
	parts := make([]string, len(b.Sections))
	for i, s := range b.Sections {
		parts[i] = base64.StdEncoding.EncodeToString(s)
	}
	return kind, "", strings.Join(parts, " ")
}

// appendCell appends one field: disarmed, visible, and quoted where it must be.
func appendCell(dst []byte, s string) []byte {
	if startsFormula(s) {
		s = "'" + s
	}
	if s == "" {
		return dst
	}
	quote := strings.ContainsAny(s, ",\"\r\n") || s[0] == ' ' || s[len(s)-1] == ' '
	if quote {
		dst = append(dst, '"')
	}
	for len(s) > 0 {
		n := 0
		for n < len(s) && plainASCII[s[n]] {
			n++
		}
		if n > 0 {
			dst = append(dst, s[:n]...)
			s = s[n:]
			continue
		}
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == '"':
			dst = append(dst, '"', '"')
		case r == utf8.RuneError && n == 1:
			dst = append(dst, '\\', 'x', hexDigits[s[0]>>4], hexDigits[s[0]&15])
		case r == '\t', r == '\n', r == '\r':
			dst = append(dst, byte(r))
		case r < 0x20, r >= 0x7f && mustEscape(r):
			dst = appendRuneEscape(dst, r)
		default:
			dst = append(dst, s[:n]...)
		}
		s = s[n:]
	}
	if quote {
		dst = append(dst, '"')
	}
	return dst
}

// startsFormula reports whether a spreadsheet might compute s: it begins with one of the
// characters that OWASP ASVS 1.2.10 names or with its full-width form, perhaps behind
// spaces and invisible characters that a spreadsheet drops.
func startsFormula(s string) bool {
	for _, r := range s {
		switch r {
		case '=', '+', '-', '@', '\t', '\r', '\n', 0, '＝', '＋', '－', '＠':
			return true
		}
		if !unicode.IsSpace(r) && !unicode.Is(unicode.Cf, r) {
			return false
		}
	}
	return false
}
