package textview

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func BenchmarkSanitise(b *testing.B) {
	for _, bb := range []struct{ name, unit string }{
		{"ascii", `{"order":42,"status":"failed"}`},
		{"cyrillic", "сообщение не обработано "},
		{"han", "無法處理的訊息"},
		{"hostile", "a\x1b[31m\u202e\xff\u0301"},
	} {
		s := strings.Repeat(bb.unit, 1+(64<<10)/len(bb.unit))
		b.Run(bb.name, func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			b.ReportAllocs()
			for b.Loop() {
				Sanitise(s)
			}
		})
	}
}

func BenchmarkPad(b *testing.B) {
	dst := make([]byte, 0, 256)
	for _, s := range []string{"order-created-2024", "сообщение не обработано", "無法處理的訊息"} {
		b.Run(s, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				dst = AppendPad(dst[:0], s, 24)
			}
		})
	}
}

// One key press at the end of the text and the frame after it, at 200x50. The
// figures must not grow with the size.
func BenchmarkViewKey(b *testing.B) {
	for _, bb := range []struct{ name, unit string }{
		{"lines", `  {"order": 42, "status": "failed", "reason": "timeout"},` + "\n"},
		{"one-line", `{"order":42,"status":"failed","reason":"timeout"},`},
		{"one-line-han", "無法處理的訊息"},
	} {
		for _, size := range []int{1 << 20, 100 << 20} {
			content := bytes.Repeat([]byte(bb.unit), size/len(bb.unit))
			b.Run(fmt.Sprintf("%s/%dMiB", bb.name, size>>20), func(b *testing.B) {
				v := NewView(content)
				v.SetSize(200, 50)
				v.End()
				b.ReportAllocs()
				for b.Loop() {
					v.Up(1)
					v.Lines()
					v.Down(1)
					v.Lines()
				}
			})
		}
	}
}
