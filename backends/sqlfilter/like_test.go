package sqlfilter

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestPattern(t *testing.T) {
	for _, tt := range []struct {
		pattern, text string
		escape        rune
		fold          bool
		want          bool
	}{
		{"", "", 0, false, true},
		{"", "a", 0, false, false},
		{"%", "", 0, false, true},
		{"%%", "anything", 0, false, true},
		{"_", "", 0, false, false},
		{"_", "é", 0, false, true},
		{"_", "😀", 0, false, true},
		{"__", "é", 0, false, false},
		{"_", "\xff", 0, false, true},
		{"abc", "abc", 0, false, true},
		{"abc", "abcd", 0, false, false},
		{"abc%", "abcd", 0, false, true},
		{"%abc", "xabc", 0, false, true},
		{"%abc", "abcx", 0, false, false},
		{"a%a", "a", 0, false, false},
		{"a%a", "aa", 0, false, true},
		{"%a%b%", "xbaxb", 0, false, true},
		{"%a%b%", "xbxa", 0, false, false},
		{"%ab%ab", "abab", 0, false, true},
		{"%ab%ab", "ab", 0, false, false},
		{"%a_c%", "xxabcxx", 0, false, true},
		{"%a_c", "abcadc", 0, false, true},
		{"a_%_c", "abc", 0, false, false},
		{"a_%_c", "abbc", 0, false, true},
		{`50\%`, "50%", '\\', false, true},
		{`50\%`, "500", '\\', false, false},
		{`50\%%`, "50% off", '\\', false, true},
		{`a\_b`, "a_b", '\\', false, true},
		{`a\_b`, "axb", '\\', false, false},
		{`a\\b`, `a\b`, '\\', false, true},
		{`a\xb`, `axb`, '\\', false, true},
		{`a\b`, `a\b`, 0, false, true},
		{"%%%%", "%", '%', false, false}, // every % escapes the next
		{"%%%%", "%%", '%', false, true},
		{"é%", "été", 'é', false, false},
		{"ABC%", "abcd", 0, false, false},
		{"ABC%", "abcd", 0, true, true},
		{"%ÉTÉ%", "un été!", 0, true, true},
		{"%k_S", "\u212aéſ", 0, true, true}, // the Kelvin sign folds to k, the long s to s
		{"max%exceeded", "MaxDeliveryCountExceeded", 0, true, true},
		{"\ufffd", "\xff", 0, true, false},
	} {
		p, err := CompilePattern(tt.pattern, PatternOptions{Escape: tt.escape, FoldCase: tt.fold})
		if err != nil {
			t.Errorf("%q: %v", tt.pattern, err)
			continue
		}
		if got := p.Match(tt.text); got != tt.want {
			t.Errorf("%q matches %q: %v", tt.pattern, tt.text, got)
		}
	}
	if _, err := CompilePattern(`a\`, PatternOptions{Escape: '\\'}); err == nil {
		t.Error("a pattern that ends in its escape character compiled")
	}
}

// naiveLike is LIKE as its definition reads: a table of which beginnings of the pattern match
// which beginnings of the text, one character at a time.
func naiveLike(pattern, text string, opts PatternOptions) (matched, valid bool) {
	type unit struct {
		text     string
		any, run bool
	}
	split := func(s string) (out []string) {
		for len(s) > 0 {
			_, n := utf8.DecodeRuneInString(s)
			out, s = append(out, s[:n]), s[n:]
		}
		return out
	}
	var units []unit
	chars := split(pattern)
	for i := 0; i < len(chars); i++ {
		switch r, _ := utf8.DecodeRuneInString(chars[i]); {
		case opts.Escape != 0 && r == opts.Escape:
			if i++; i == len(chars) {
				return false, false
			}
			units = append(units, unit{text: chars[i]})
		case chars[i] == "%":
			units = append(units, unit{run: true})
		case chars[i] == "_":
			units = append(units, unit{any: true})
		default:
			units = append(units, unit{text: chars[i]})
		}
	}
	have := split(text)
	row := make([]bool, len(have)+1)
	row[0] = true
	for _, u := range units {
		next := make([]bool, len(have)+1)
		for j := range next {
			switch {
			case u.run:
				next[j] = row[j] || j > 0 && next[j-1]
			case j > 0:
				next[j] = row[j-1] && (u.any || u.text == have[j-1] ||
					opts.FoldCase && utf8.ValidString(u.text+have[j-1]) && strings.EqualFold(u.text, have[j-1]))
			}
		}
		row = next
	}
	return row[len(have)], true
}

func FuzzLike(f *testing.F) {
	for _, s := range [][2]string{{"a%_b%", "aXbb"}, {"%a_a%a", "aaaaaaa"}, {"é\\%_%", "é%x"}, {"%\xff_", "\xe4\xb8\xff\xad"}, {"%_\xf0\x90", "\xf0\x90\x80\x80\x80"}} {
		f.Add(s[0], s[1], '\\', false)
		f.Add(s[0], s[1], rune(0), true)
	}
	f.Fuzz(func(t *testing.T, pattern, text string, escape rune, fold bool) {
		if len(pattern)*len(text) > 1<<16 || escape == utf8.RuneError {
			return
		}
		if !utf8.ValidString(pattern) { // the source of an expression is valid
			pattern = strings.ToValidUTF8(pattern, "_")
		}
		opts := PatternOptions{Escape: escape, FoldCase: fold}
		p, err := CompilePattern(pattern, opts)
		want, valid := naiveLike(pattern, text, opts)
		if (err == nil) != valid {
			t.Fatalf("%q: %v, valid %v", pattern, err, valid)
		}
		if valid && p.Match(text) != want {
			t.Fatalf("%q matches %q: %v, want %v", pattern, text, !want, want)
		}
	})
}
