package sqlfilter

import "testing"

func TestNearest(t *testing.T) {
	names := []string{"LockDuration", "MaxDeliveryCount", "Größe", "big"}
	for _, c := range []struct {
		name, want string
		edits      int
	}{
		{"LOCKDURATION", "LockDuration", 0},
		{"LockDuraton", "LockDuration", 1},
		{"MaxDeliveryCuont", "MaxDeliveryCount", 1}, // a swap is one
		{"MaxDelivCounts", "MaxDeliveryCount", 4},
		{"grösse", "Größe", 2}, // letters count, not bytes
		{"", "big", 3},
	} {
		if got, edits := Nearest(c.name, names); got != c.want || edits != c.edits {
			t.Errorf("Nearest(%q) = %q after %d edits, want %q after %d", c.name, got, edits, c.want, c.edits)
		}
	}
	if got, _ := Nearest("name", nil); got != "" {
		t.Errorf("the nearest of no names is %q", got)
	}
	if got, _ := Nearest("bb", []string{"ba", "ab"}); got != "ba" {
		t.Errorf("of two that are as near the nearest is %q, want the first", got)
	}
}
