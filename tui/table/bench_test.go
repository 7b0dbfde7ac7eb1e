package table

import (
	"fmt"
	"testing"

	"dlq/tui/theme"
)

// constant is a source that costs nothing, so that only the table is measured.
type constant struct{ n int }

func (s constant) Len() int { return s.n }

func (s constant) Row(_ int, dst []string) []string {
	return append(dst, "1203", "order-created", "2026-01-02 15:04:05", "MaxDeliveryCountExceeded", "the handler timed out after 30 s")
}

// One key press and the frame after it, at 200x50. The figures must not grow
// with the number of rows.
func BenchmarkKey(b *testing.B) {
	th := theme.New(true, theme.Dark)
	cols := []Column{
		{Title: "SEQ", Width: 10},
		{Title: "SUBJECT", Width: 20, Min: 8},
		{Title: "ENQUEUED", Width: 19},
		{Title: "REASON", Width: 30, Min: 10},
		{Title: "DESCRIPTION", Width: 20, Min: 10, Flex: true},
	}
	for _, n := range []int{100, 1_000_000} {
		b.Run(fmt.Sprintf("%d", n), func(b *testing.B) {
			tb := New(cols, Styles{Header: th.Header, Cursor: th.Selected, Marked: th.Marked})
			tb.SetRows(constant{n})
			tb.SetSize(200, 50)
			tb.End()
			b.ReportAllocs()
			for b.Loop() {
				tb.Up()
				tb.View()
				if tb.Cursor() == 0 {
					tb.End()
				}
			}
		})
	}
}
