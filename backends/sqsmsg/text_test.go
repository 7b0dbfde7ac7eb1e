package sqsmsg

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// validText is ValidText, one rune after the other.
func validText(s []byte) bool {
	if !utf8.Valid(s) {
		return false
	}
	for _, r := range string(s) {
		switch {
		case r == 0x9, r == 0xa, r == 0xd,
			r >= 0x20 && r <= 0xd7ff, r >= 0xe000 && r <= 0xfffd, r >= 0x10000 && r <= 0x10ffff:
		default:
			return false
		}
	}
	return true
}

func TestValidText(t *testing.T) {
	for _, tt := range []struct {
		s    string
		want bool
	}{
		{"", true},
		{"plain", true},
		{"\t\n\r", true},
		{" ~\x7f", true}, // DEL is allowed
		{"\u0080\u00ff", true},
		{"русский текст", true},
		{"\ud7ff\ue000\ufffd", true},
		{"\U00010000\U0010ffff", true},
		{"\U0001fffe", true}, // only those of the first plane are forbidden
		{"\x00", false},
		{"\x08", false},
		{"\x0b", false},
		{"\x0c", false},
		{"\x1f", false},
		{"\ufffe", false},
		{"\uffff", false},
		{"\xed\xa0\x80", false},     // U+D800
		{"\xed\xbf\xbf", false},     // U+DFFF
		{"\xf4\x90\x80\x80", false}, // U+110000
		{"\xc0\x80", false},         // U+0000 in two bytes
		{"\xe0\x80\xaf", false},     // U+002F in three
		{"\x80", false},
		{"\xff", false},
		{"\xd1", false}, // half of a letter
		{"Invalid-\x00-\x08-\x13-\uffff", false},
	} {
		if got := ValidText([]byte(tt.s)); got != tt.want {
			t.Errorf("ValidText(%q) = %v", tt.s, got)
		}
		if got := validText([]byte(tt.s)); got != tt.want {
			t.Errorf("the reference says %v to %q", got, tt.s)
		}
	}
}

// Every character and every byte is judged alike wherever it stands: before, in and behind the
// words of eight bytes, next to plain and to other ones.
func TestValidTextPlaces(t *testing.T) {
	for _, odd := range []string{
		"", "\n", "\x1f", "\x00", "\x7f", "\x80", "\xff", "я", "\xd1", "\uffff", "\ufffd", "\U0010ffff", "\xf4\x8f\xbf",
	} {
		for _, fill := range []string{"x", " ", "\n", "\x7f", "я"} {
			for before := range 70 {
				for _, after := range []int{0, 1, 7, 8, 33} {
					s := []byte(strings.Repeat(fill, before) + odd + strings.Repeat(fill, after))
					if got, want := ValidText(s), validText(s); got != want {
						t.Fatalf("ValidText(%q) = %v", s, got)
					}
				}
			}
		}
	}
}

func TestValidTextRunes(t *testing.T) {
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		s := utf8.AppendRune(nil, r)
		if got, want := ValidText(s), validText(s); got != want {
			t.Fatalf("ValidText(%U) = %v", r, got)
		}
	}
}

func FuzzValidText(f *testing.F) {
	f.Add([]byte("plain text of more than one word of eight bytes, and of more than four"))
	f.Add([]byte("{\n\t\"ключ\": \"значение\"\r\n}"))
	f.Add([]byte("\xed\xa0\x80\ufffe"))
	f.Add([]byte("12345678\x1f2345678"))
	f.Fuzz(func(t *testing.T, s []byte) {
		got, want := ValidText(s), validText(s)
		if got != want {
			t.Fatalf("ValidText(%q) = %v", s, got)
		}
		if problem := InvalidTextYMQ(s); (problem == "") != want {
			t.Fatalf("InvalidTextYMQ(%q) = %q", s, problem)
		}
	})
}

func TestInvalidTextYMQ(t *testing.T) {
	for _, tt := range []struct{ s, want string }{
		{"", ""},
		{"русский текст.\n", ""},
		{"\x02", "character 0x00000002 is not allowed"},
		{"text\uffff", "character 0x0000FFFF is not allowed"},
		{"\ufffd\x1f", "character 0x0000001F is not allowed"},
		{"ok\xff", "nonunicode characters are not allowed"},
		{"\xff\x00", "nonunicode characters are not allowed"},
		{"я\xd1", "nonunicode characters are not allowed"},
	} {
		if got := InvalidTextYMQ([]byte(tt.s)); got != tt.want {
			t.Errorf("InvalidTextYMQ(%q) = %q, want %q", tt.s, got, tt.want)
		}
	}
}

func BenchmarkValidText(b *testing.B) {
	json := `{"order": 1234567890, "customer": "ACME", "lines": [{"sku": "A-17", "n": 3}]}`
	for _, bb := range []struct{ name, of string }{
		{"ASCII", json},
		{"lines", strings.ReplaceAll(json, ", ", ",\n\t")},
		{"Cyrillic", "Заказ не доставлен: адрес не найден. "},
	} {
		for _, size := range []int{1 << 10, 1 << 20} {
			s := bytes.Repeat([]byte(bb.of), size/len(bb.of)+1)[:size]
			for !utf8.Valid(s) {
				s = s[:len(s)-1]
			}
			b.Run(fmt.Sprintf("%s/%d", bb.name, size), func(b *testing.B) {
				b.SetBytes(int64(len(s)))
				b.ReportAllocs()
				for b.Loop() {
					if !ValidText(s) {
						b.Fatal("not valid")
					}
				}
			})
		}
	}
}
