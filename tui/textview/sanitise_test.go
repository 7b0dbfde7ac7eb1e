package textview

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// attack is one family of hostile text and what the operator sees of it.
type attack struct{ name, in, want string }

// attacks is the corpus of the whole package: every renderer is run over it.
func attacks() []attack {
	return []attack{
		{"CSI colour", "a\x1b[31mb", "a^[[31mb"},
		{"CSI clear screen", "\x1b[2J\x1b[H", "^[[2J^[[H"},
		{"CSI cursor report", "\x1b[6n", "^[[6n"},
		{"CSI private mode", "\x1b[?1049h", "^[[?1049h"},
		{"SGR conceal", "\x1b[8msecret\x1b[m", "^[[8msecret^[[m"},
		{"OSC 0 title", "\x1b]0;root\x07", "^[]0;root^G"},
		{"OSC 8 link", "\x1b]8;;http://x\x1b\\y\x1b]8;;\x1b\\", "^[]8;;http://x^[\\y^[]8;;^[\\"},
		{"OSC 52 clipboard", "\x1b]52;c;cm0=\x1b\\", "^[]52;c;cm0=^[\\"},
		{"DCS", "\x1bP$qm\x1b\\", "^[P$qm^[\\"},
		{"APC", "\x1b_Gi=1\x1b\\", "^[_Gi=1^[\\"},
		{"PM and SOS", "\x1b^x\x1bXy\x1b\\", "^[^x^[Xy^[\\"},
		{"RIS", "\x1bc", "^[c"},
		{"charset switch", "\x1b(0lqk", "^[(0lqk"},
		{"lone ESC at the end", "x\x1b", "x^["},
		{"C1 CSI raw", "\x9b31m", "<9B>31m"},
		{"C1 CSI as UTF-8", "\u009b31m", "<9B>31m"},
		{"C1 OSC as UTF-8", "\u009d0;t\u009c", "<9D>0;t<9C>"},
		{"C1 DCS and APC raw", "\x90q\x9f\x9c", "<90>q<9F><9C>"},
		{"NEL", "a\u0085b", "a<85>b"},
		{"CR overwrites", "real\rfake", "real^Mfake"},
		{"BS overwrites", "rm\b\bls", "rm^H^Hls"},
		{"SO and SI", "\x0ex\x0f", "^Nx^O"},
		{"NUL", "a\x00b", "a^@b"},
		{"DEL", "a\x7fb", "a^?b"},
		{"BEL", "\a", "^G"},
		{"LF, VT, FF, tab", "a\nb\vc\fd\te", "a^Jb^Kc^Ld^Ie"},
		{"bidi override", "user\u202exe.txt\u202c", "user<U+202E>xe.txt<U+202C>"},
		{"bidi embedding", "\u202a\u202b\u202d", "<U+202A><U+202B><U+202D>"},
		{"bidi isolates", "\u2066a\u2067b\u2068c\u2069", "<U+2066>a<U+2067>b<U+2068>c<U+2069>"},
		{"bidi marks", "\u200e\u200f\u061c", "<U+200E><U+200F><U+061C>"},
		{"tags", "x\U000e0041\U000e007f", "x<U+E0041><U+E007F>"},
		{"zero width", "a\u200bb\u200cc\u200dd\u2060", "a<U+200B>b<U+200C>c<U+200D>d<U+2060>"},
		{"soft hyphen", "pay\u00adpal", "pay<U+00AD>pal"},
		{"line and paragraph separator", "a\u2028b\u2029", "a<U+2028>b<U+2029>"},
		{"BOM", "\ufeffx", "<U+FEFF>x"},
		{"interlinear annotation", "\ufff9a\ufffb", "<U+FFF9>a<U+FFFB>"},
		{"overlong NUL and ESC", "\xc0\x80\xc0\x9b", "<C0><80><C0><9B>"},
		{"overlong slash", "\xe0\x80\xaf", "<E0><80><AF>"},
		{"encoded surrogates", "\xed\xa0\x80\xed\xb0\x80", "<ED><A0><80><ED><B0><80>"},
		{"beyond Unicode", "\xf4\x90\x80\x80", "<F4><90><80><80>"},
		{"cut UTF-8", "a\xe2\x82", "a<E2><82>"},
		{"bytes never in UTF-8", "\xfe\xff", "<FE><FF>"},
		{"zalgo", "a" + strings.Repeat("\u0301", 6), "a\u0301\u0301\u0301\u0301<U+0301><U+0301>"},
		{"mark without a base", "\u0301x", "<U+0301>x"},
		{"mark on an escape", "\x1b\u0301", "^[<U+0301>"},
		{"Hangul vowels pile up", "가" + strings.Repeat("\u1161", 5), "가\u1161\u1161\u1161\u1161<U+1161>"},
		{"invisible fillers", "\u3164\u115f\uffa0\u034f", "<U+3164><U+115F><U+FFA0><U+034F>"},
		{"selectors hide bytes", "a\ufe0f\ufe01\U000e0101", "a<U+FE0F><U+FE01><U+E0101>"},
		{"emoji joined", "👩\u200d💻", "👩<U+200D>💻"},
		{"private use", "\ue000\U000f0000", "<U+E000><U+F0000>"},
		{"noncharacters", "\ufffe\U0010ffff", "<U+FFFE><U+10FFFF>"},
		{"unassigned", "\u0378", "<U+0378>"},
	}
}

func TestSanitiseReplacesVisibly(t *testing.T) {
	for _, a := range attacks() {
		t.Run(a.name, func(t *testing.T) {
			got := Sanitise(a.in)
			if got != a.want {
				t.Errorf("Sanitise(%q) = %q, want %q", a.in, got, a.want)
			}
			checkSafe(t, got)
		})
	}
}

func TestSanitiseKeepsCleanText(t *testing.T) {
	for _, s := range []string{
		"", "a", `{"order": 42, "note": "ok"}`, "naïve café", "e\u0301te\u0301", "Ошибка обработки", "日本語テキスト",
		"한국어", "한", "עברית", "العربية", "हिन्दी क्षमा", "ไทย ที่นี่", "👍🏽 ⚠\ufe0f 🇫🇷🇩🇪", "a\u00a0b", "\ufffd", "→ … ─ █", "a\u0301\u0302\u0303\u0304",
	} {
		if got := Sanitise(s); got != s {
			t.Errorf("Sanitise(%q) = %q, want it unchanged", s, got)
		}
		if n := testing.AllocsPerRun(10, func() { Sanitise(s) }); n != 0 {
			t.Errorf("Sanitise(%q) allocates %v times", s, n)
		}
	}
}

func TestSanitiseLines(t *testing.T) {
	tests := []struct {
		in   string
		want []string
	}{
		{"", nil},
		{"one", []string{"one"}},
		{"one\n", []string{"one"}},
		{"\n", []string{""}},
		{"a\n\nb\n\n", []string{"a", "", "b", ""}},
		{"a\r\nb\r\n", []string{"a", "b"}},
		{"a\rb\r\r\nc", []string{"a^Mb^M", "c"}},
		{"\tx\n\x1b[2J", []string{"    x", "^[[2J"}},
		{"a\n\u0301b", []string{"a", "<U+0301>b"}},
		{"a\u2028b\vc\u0085", []string{"a<U+2028>b^Kc<85>"}},
	}
	for _, tt := range tests {
		if got := SanitiseLines(tt.in); !slices.Equal(got, tt.want) {
			t.Errorf("SanitiseLines(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

// Every character there is, alone: either it is shown and takes cells, or it
// is replaced by ASCII.
func TestEveryCharacter(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		s := string(r)
		got := Sanitise(s)
		if got == s {
			if w := unitWidth(s); w < 1 || w > 2 || w != ansi.StringWidth(s) {
				t.Errorf("%U is let through with a width of %d, the renderer counts %d", r, w, ansi.StringWidth(s))
			}
			if !unicode.IsGraphic(r) || isMark(r) || unicode.In(r, unicode.M, unicode.Cf) || isInvisible(r) {
				t.Errorf("%U is let through", r)
			}
			continue
		}
		if strings.Trim(got, "<>^?@[\\]_+ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") != "" {
			t.Errorf("%U becomes %q", r, got)
		}
	}
}

// checkSafe fails when s holds anything a terminal might act on or hide. It
// says so from the character tables, apart from how the package decides.
func checkSafe(t *testing.T, s string) {
	t.Helper()
	if !utf8.ValidString(s) {
		t.Fatalf("%q is not UTF-8", s)
	}
	marks := 0
	for _, r := range s {
		switch {
		case r < ' ' || r == 0x7f:
			t.Fatalf("%q holds the control %U", s, r)
		case r >= 0x80 && r < 0xa0:
			t.Fatalf("%q holds the C1 control %U", s, r)
		case unicode.In(r, unicode.Cf, unicode.Bidi_Control, unicode.Zl, unicode.Zp, unicode.Co, unicode.Cs):
			t.Fatalf("%q holds the format character %U", s, r)
		case r >= 0xe0000 && r <= 0xe0fff, r >= 0x200b && r <= 0x200f, r >= 0x2060 && r <= 0x206f:
			t.Fatalf("%q holds the invisible %U", s, r)
		}
		if !unicode.Is(unicode.M, r) {
			marks = 0
		} else if marks++; marks > maxMarks {
			t.Fatalf("%q has more than %d marks on a base", s, maxMarks)
		}
	}
}
