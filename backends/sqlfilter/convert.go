package sqlfilter

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"dlq/backends/message"
)

// convertText reads text as a value of kind k, for the kinds that have no literal of their
// own: time, duration and GUID.
func convertText(s string, k kind) (value, bool) {
	switch k {
	case timeKind:
		t, ok := parseTime(s)
		return timeValue(t), ok
	case durationKind:
		d, ok := parseDuration(s)
		return durationValue(d), ok
	case guidKind:
		u, err := message.ParseValue(message.KindUUID, strings.Trim(s, "{}"))
		if err != nil {
			return value{}, false
		}
		return guidValue(u.(message.UUID)), true
	}
	return value{}, false
}

// example is how a value of the kind is written in an expression.
func (k kind) example() string {
	switch k {
	case timeKind:
		return "'2026-01-02T15:04:05Z'"
	case durationKind:
		return "'PT5M'"
	case guidKind:
		return "'3f2504e0-4f89-11d3-9a0c-0305e82c3301'"
	case boolKind:
		return "TRUE"
	case longKind, doubleKind, quantityKind:
		return "5"
	}
	return "'text'"
}

// parseTime reads RFC 3339, and shorter forms down to a day, which are UTC.
func parseTime(s string) (time.Time, bool) {
	for _, layout := range [...]string{
		time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00",
		"2006-01-02 15:04:05.999999999", "2006-01-02T15:04Z07:00", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly,
	} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// parseDuration reads ISO 8601 with days and smaller units (P1DT2H, PT0.5S), as Service Bus
// writes durations, and the form of Go (1h30m).
func parseDuration(s string) (time.Duration, bool) {
	iso, isISO := strings.CutPrefix(s, "P")
	if !isISO {
		d, err := time.ParseDuration(s)
		return d, err == nil
	}
	days, clock, hasClock := strings.Cut(iso, "T")
	if hasClock && clock == "" || !hasClock && days == "" {
		return 0, false
	}
	var total time.Duration
	if days != "" {
		n, err := strconv.ParseUint(strings.TrimSuffix(days, "D"), 10, 16)
		if err != nil || !strings.HasSuffix(days, "D") {
			return 0, false
		}
		total = time.Duration(n) * 24 * time.Hour
	}
	if clock == "" {
		return total, true
	}
	// What is left has the units of Go in upper case; signs and Go's own units have not.
	if strings.Trim(clock, "0123456789.HMS") != "" {
		return 0, false
	}
	d, err := time.ParseDuration(strings.ToLower(clock))
	return total + d, err == nil
}

// formatDuration writes a duration in the form of ISO 8601, in seconds.
func formatDuration(d time.Duration) string {
	sign, n := "", uint64(d)
	if d < 0 {
		sign, n = "-", -n
	}
	s := fmt.Sprintf("%sPT%d", sign, n/1e9)
	if fraction := n % 1e9; fraction != 0 {
		s += strings.TrimRight(fmt.Sprintf(".%09d", fraction), "0")
	}
	return s + "S"
}
