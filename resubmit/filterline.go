package resubmit

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// ParseFilter reads the filter line of the UI, which is the same language as the flags:
// shorthands (reason:TEXT group:ID id:ID seq:N session:ID since:2h until:1h limit:N, a value in
// double quotes where it holds spaces), and the rest either a --where expression or words to
// search for, "in double quotes" where they belong together. What has a comparison, a
// parenthesis, a quoted text or IS NULL is an expression. The empty line means all.
func ParseFilter(line string) (Selection, error) {
	var s Selection
	var rest []filterToken
	for _, tok := range filterTokens(line) {
		used, err := s.shorthand(tok)
		if err != nil {
			return Selection{}, err
		}
		if !used {
			rest = append(rest, tok)
		}
	}
	text := joinTokens(rest)
	switch {
	case isExpression(text):
		s.Where = text
	case text != "":
		s.Text = text
	case s.Empty():
		s.All = true
	}
	return s, nil
}

// filterToken is a run of the line without spaces outside of quotes.
type filterToken struct{ raw string }

// filterTokens splits a line at spaces. Quotes of either kind and square brackets keep what
// they hold together, as they do in an expression.
func filterTokens(line string) []filterToken {
	var out []filterToken
	start, quote := -1, rune(0)
	for i, r := range line {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case unicode.IsSpace(r):
			if start >= 0 {
				out = append(out, filterToken{line[start:i]})
				start = -1
			}
			continue
		case r == '\'' || r == '"':
			quote = r
		case r == '[':
			quote = ']'
		}
		if start < 0 {
			start = i
		}
	}
	if start >= 0 {
		out = append(out, filterToken{line[start:]})
	}
	return out
}

func joinTokens(toks []filterToken) string {
	parts := make([]string, len(toks))
	for i, t := range toks {
		parts[i] = t.raw
	}
	return strings.Join(parts, " ")
}

// shorthand takes "name:value" into the selection; used is false for anything else.
func (s *Selection) shorthand(tok filterToken) (used bool, err error) {
	name, value, ok := strings.Cut(tok.raw, ":")
	if !ok || value == "" {
		return false, nil
	}
	if n := len(value); n >= 2 && value[0] == '"' && value[n-1] == '"' {
		value = value[1 : n-1]
	}
	switch strings.ToLower(name) {
	case "reason":
		s.Reason = value
	case "group":
		s.Group = value
	case "id":
		s.IDs = append(s.IDs, value)
	case "session":
		s.Session = &value
	case "since":
		s.Since = value
	case "until":
		s.Until = value
	case "seq":
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return false, fmt.Errorf("seq:%s: write a sequence number, such as seq:42", value)
		}
		s.Seqs = append(s.Seqs, n)
	case "limit":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 {
			return false, fmt.Errorf("limit:%s: write a number above 0", value)
		}
		s.Limit = n
	default:
		return false, nil
	}
	return true, nil
}

var isNull = regexp.MustCompile(`(?i)\bis\s+(not\s+)?null\b`)

// isExpression tells a --where expression from words: nobody searches for "=" or a quoted
// text by chance, and a search that does can put it in double quotes.
func isExpression(text string) bool {
	return strings.ContainsAny(text, "=<>('") && !strings.HasPrefix(text, `"`) || isNull.MatchString(text)
}

// searchWords splits a search into its words, in lower case; what stands in double quotes is one.
func searchWords(text string) []string {
	var words []string
	for _, tok := range filterTokens(text) {
		word := strings.ToLower(strings.ReplaceAll(tok.raw, `"`, ""))
		if word != "" {
			words = append(words, word)
		}
	}
	return words
}
