package broker

import (
	"errors"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// MaxTimeSpan is how Service Bus writes a duration without end: the largest of .NET, which
// is beyond a [time.Duration].
const MaxTimeSpan = "P10675199DT2H48M5.4775807S"

// endless is what [ParseISODuration] returns for what a time.Duration cannot hold.
const endless = time.Duration(math.MaxInt64)

const day = 24 * time.Hour

var errISODuration = errors.New("want a duration such as PT30S, PT1H30M, P14D or P1DT0.5S")

// isoUnit is one unit of a written duration. Years and months have the lengths that .NET
// gives them: https://learn.microsoft.com/dotnet/api/system.xml.xmlconvert.totimespan
type isoUnit struct {
	letter byte
	length time.Duration
}

// The units in the order in which they must stand, before and behind the T.
var (
	isoDateUnits = []isoUnit{{'Y', 365 * day}, {'M', 30 * day}, {'D', day}}
	isoTimeUnits = []isoUnit{{'H', time.Hour}, {'M', time.Minute}, {'S', time.Second}}
)

// ParseISODuration reads a duration of XML Schema, [-]PnYnMnDTnHnMn.nS, as Service Bus and
// ISO 8601 write it. What is finer than a nanosecond is dropped; what a time.Duration
// cannot hold, such as [MaxTimeSpan], becomes the longest that it can.
func ParseISODuration(s string) (time.Duration, error) {
	s, negative := strings.CutPrefix(s, "-")
	s, ok := strings.CutPrefix(s, "P")
	date, clock, hasClock := strings.Cut(s, "T")
	if !ok || s == "" || hasClock && clock == "" {
		return 0, errISODuration
	}
	days, okDays := sumUnits(date, isoDateUnits)
	rest, okRest := sumUnits(clock, isoTimeUnits)
	if !okDays || !okRest {
		return 0, errISODuration
	}
	d := addSaturated(days, rest)
	if negative {
		d = -d
	}
	return d, nil
}

// sumUnits reads numbers with their units, of which each stands at most once and in order.
func sumUnits(s string, units []isoUnit) (sum time.Duration, ok bool) {
	for _, u := range units {
		n := strings.IndexFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
		if n < 0 || s[n] != u.letter {
			continue
		}
		whole, fraction, hasFraction := strings.Cut(s[:n], ".")
		if !onlyDigits(whole) || hasFraction && (u.letter != 'S' || !onlyDigits(fraction)) {
			return 0, false
		}
		sum = addSaturated(sum, timesSaturated(whole, u.length))
		if hasFraction {
			nanos, _ := strconv.Atoi((fraction + "000000000")[:9])
			sum = addSaturated(sum, time.Duration(nanos))
		}
		s = s[n+1:]
	}
	return sum, s == ""
}

func onlyDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

func timesSaturated(number string, unit time.Duration) time.Duration {
	n, err := strconv.ParseUint(number, 10, 64)
	high, low := bits.Mul64(n, uint64(unit))
	if err != nil || high != 0 || low > math.MaxInt64 {
		return endless
	}
	return time.Duration(low)
}

func addSaturated(a, b time.Duration) time.Duration {
	if a > endless-b {
		return endless
	}
	return a + b
}

// FormatISODuration writes d as Service Bus does, in days, hours, minutes and seconds.
func FormatISODuration(d time.Duration) string {
	if d == 0 {
		return "PT0S"
	}
	var b []byte
	n := uint64(d)
	if d < 0 {
		b, n = append(b, '-'), -n
	}
	b = append(b, 'P')
	take := func(unit time.Duration, letter byte) {
		if count := n / uint64(unit); count > 0 {
			b = append(strconv.AppendUint(b, count, 10), letter)
			n %= uint64(unit)
		}
	}
	take(day, 'D')
	if n == 0 {
		return string(b)
	}
	b = append(b, 'T')
	take(time.Hour, 'H')
	take(time.Minute, 'M')
	if fraction := n % uint64(time.Second); fraction > 0 {
		b = strconv.AppendUint(b, n/uint64(time.Second), 10)
		nine := strconv.FormatUint(fraction+uint64(time.Second), 10)[1:]
		return string(b) + "." + strings.TrimRight(nine, "0") + "S"
	}
	take(time.Second, 'S')
	return string(b)
}
