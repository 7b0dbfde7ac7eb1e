package broker

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// form is how one property is written, read and bounded. parse reads whatever get writes,
// in range or not, because a store holds what was valid when it was written.
type form struct {
	bounds string // the range as text; "" says that anything goes
	get    func(*Properties) string
	parse  func(*Properties, string) error
	// within reports whether the value is in range: in the range of the text form, which is
	// the service's, or in the wider one of the engine, where a test may want a short lock.
	within func(p *Properties, text bool) bool
}

func inAnyRange(*Properties, bool) bool { return true }

func flagForm(at func(*Properties) *bool) form { return eitherForm(at, "false", "true") }

// eitherForm is a flag that is written as one of two words.
func eitherForm(at func(*Properties) *bool, no, yes string) form {
	return form{
		bounds: yes + ", " + no,
		get: func(p *Properties) string {
			if *at(p) {
				return yes
			}
			return no
		},
		parse: func(p *Properties, s string) error {
			if !strings.EqualFold(s, yes) && !strings.EqualFold(s, no) {
				return fmt.Errorf("want %s or %s", yes, no)
			}
			*at(p) = strings.EqualFold(s, yes)
			return nil
		},
		within: inAnyRange,
	}
}

// choiceForm is one of a few words.
func choiceForm[T ~string](at func(*Properties) *T, words ...T) form {
	names := make([]string, len(words))
	for i, w := range words {
		names[i] = string(w)
	}
	all := strings.Join(names, ", ")
	return form{
		bounds: all,
		get:    func(p *Properties) string { return string(*at(p)) },
		parse: func(p *Properties, s string) error {
			i := slices.IndexFunc(words, func(w T) bool { return strings.EqualFold(s, string(w)) })
			if i < 0 {
				return errors.New("want one of " + all)
			}
			*at(p) = words[i]
			return nil
		},
		within: func(p *Properties, _ bool) bool {
			return slices.Contains(words, *at(p))
		},
	}
}

func lineForm(at func(*Properties) *string, longest int) form {
	return form{
		bounds: fmt.Sprintf("0 to %d characters", longest),
		get:    func(p *Properties) string { return *at(p) },
		parse:  func(p *Properties, s string) error { *at(p) = s; return nil },
		within: func(p *Properties, _ bool) bool {
			return utf8.ValidString(*at(p)) && utf8.RuneCountInString(*at(p)) <= longest
		},
	}
}

// nameForm is the name of another entity. Clients write an absolute URI, of which the
// path counts.
func nameForm(at func(*Properties) *string) form {
	return form{
		bounds: "name of a queue or topic",
		get:    func(p *Properties) string { return *at(p) },
		parse: func(p *Properties, s string) error {
			if _, rest, ok := strings.Cut(s, "://"); ok {
				_, s, _ = strings.Cut(rest, "/")
			}
			*at(p) = strings.Trim(s, "/")
			return nil
		},
		within: inAnyRange,
	}
}

// saysUnbounded reports whether a text says that there is no bound.
func saysUnbounded(s string) bool {
	return strings.EqualFold(s, "never") || strings.EqualFold(s, "none") || strings.EqualFold(s, "unlimited")
}

// countForm is a count. With orNone, 0 says that there is no bound.
func countForm(at func(*Properties) *int, low, high, engineHigh int, orNone bool) form {
	f := form{
		bounds: fmt.Sprintf("%d to %d", low, high),
		get:    func(p *Properties) string { return strconv.Itoa(*at(p)) },
		parse: func(p *Properties, s string) error {
			n, err := strconv.Atoi(s)
			if orNone && saysUnbounded(s) {
				n, err = 0, nil
			}
			if err != nil {
				return errors.New("want a whole number")
			}
			*at(p) = n
			return nil
		},
		within: func(p *Properties, text bool) bool {
			n, most := *at(p), engineHigh
			if text {
				most = high
			}
			return orNone && n == 0 || n >= low && n <= most
		},
	}
	if orNone {
		f.bounds += ", unlimited"
		f.get = func(p *Properties) string {
			if *at(p) == 0 {
				return "unlimited"
			}
			return strconv.Itoa(*at(p))
		}
	}
	return f
}

// sizeUnits are what may stand behind the number of a size.
var sizeUnits = []struct {
	name  string
	bytes int64
}{{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"kb", 1 << 10}, {"mb", 1 << 20}, {"gb", 1 << 30}, {"b", 1}}

// sizeForm is a number of bytes, written in the unit that the service counts in.
func sizeForm(at func(*Properties) *int64, unit, engineLow, low, high int64, orNone bool) form {
	f := form{
		bounds: fmt.Sprintf("%d to %d", low/unit, high/unit),
		get: func(p *Properties) string {
			switch n := *at(p); {
			case n == 0 && orNone:
				return "unlimited"
			case n%unit == 0:
				return strconv.FormatInt(n/unit, 10)
			default:
				return strconv.FormatInt(n, 10) + "B"
			}
		},
		parse: func(p *Properties, s string) error {
			if orNone && saysUnbounded(s) {
				*at(p) = 0
				return nil
			}
			n, err := parseSize(s, unit)
			if err == nil {
				*at(p) = n
			}
			return err
		},
		within: func(p *Properties, text bool) bool {
			n, least := *at(p), engineLow
			if text {
				least = low
			}
			return orNone && n == 0 || n >= least && n <= high
		},
	}
	if orNone {
		f.bounds += ", unlimited"
	}
	return f
}

func parseSize(s string, unit int64) (int64, error) {
	number := strings.ToLower(s)
	for _, u := range sizeUnits {
		if rest, ok := strings.CutSuffix(number, u.name); ok {
			number, unit = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n > (1<<62)/unit || n < -(1<<62)/unit {
		return 0, errors.New("want a size such as 1024, 512KB or 2GB")
	}
	return n * unit, nil
}

// notation is how a dialect writes durations.
type notation uint8

const (
	inISO     notation = iota // PT30S, as Service Bus
	inSeconds                 // 30, as SQS
)

func (n notation) format(d time.Duration) string {
	switch {
	case n == inISO:
		return FormatISODuration(d)
	case d%time.Second == 0:
		return strconv.FormatInt(int64(d/time.Second), 10)
	}
	return d.String()
}

// parse reads a duration as ISO 8601 or Go write it; a plain number only where the service
// counts in seconds, because elsewhere nobody could tell what it counts.
func (n notation) parse(s string) (time.Duration, error) {
	if d, err := ParseISODuration(s); err == nil {
		return d, nil
	}
	if d, err := time.ParseDuration(s); err == nil && s != "0" {
		return d, nil
	}
	if n == inISO {
		return 0, errors.New("want a duration such as 30s, 5m, PT30S or P14D")
	}
	whole, err := strconv.ParseInt(s, 10, 64)
	if err != nil || whole > int64(endless/time.Second) || whole < -int64(endless/time.Second) {
		return 0, errors.New("want a duration such as 30 (seconds), 30s, 5m, PT30S or P14D")
	}
	return time.Duration(whole) * time.Second, nil
}

// spanForm is a duration. The engine's own least may be below the service's.
func spanForm(at func(*Properties) *time.Duration, n notation, engineLow, low, high time.Duration) form {
	return form{
		bounds: n.format(low) + " to " + n.format(high),
		get:    func(p *Properties) string { return n.format(*at(p)) },
		parse: func(p *Properties, s string) error {
			d, err := n.parse(s)
			if err == nil {
				*at(p) = d
			}
			return err
		},
		within: func(p *Properties, text bool) bool {
			d, least := *at(p), engineLow
			if text {
				least = low
			}
			return d >= least && d <= high
		},
	}
}

// longSpanForm is a duration of which 0 says that it does not end. As Service Bus has it, so
// does every duration that is too long to be held.
func longSpanForm(at func(*Properties) *time.Duration, engineLow, low time.Duration) form {
	f := spanForm(at, inISO, engineLow, low, endless)
	f.bounds = inISO.format(low) + " or more, never"
	get, parse, within := f.get, f.parse, f.within
	f.get = func(p *Properties) string {
		if *at(p) == 0 {
			return "never"
		}
		return get(p)
	}
	f.parse = func(p *Properties, s string) error {
		if saysUnbounded(s) {
			*at(p) = 0
			return nil
		}
		err := parse(p, s)
		switch {
		case err != nil:
			return err
		case *at(p) == endless:
			*at(p) = 0
		case *at(p) == 0:
			return errors.New("want a duration such as 30m or PT30M, or never")
		}
		return nil
	}
	f.within = func(p *Properties, text bool) bool { return *at(p) == 0 || within(p, text) }
	return f
}
