package tui

import (
	"testing"

	"dlq/tui/theme"
)

func TestSpread(t *testing.T) {
	tests := []struct {
		width       int
		left, right string
		want        string
	}{
		{12, "left", "right", "left   right"},
		{12, "left", "", "left        "},
		{10, "longer left", "end", "longe… end"},
		{8, "left", "much too long", "left    "},
		{10, "界界界界界", "end", "界界…  end"},
		{4, "a\x1bb", "", "a^[b"},
	}
	for _, tt := range tests {
		if got := spread(tt.width, plain(tt.left), rightLine(tt.right)); got != tt.want {
			t.Errorf("spread(%d, %q, %q) = %q, want %q", tt.width, tt.left, tt.right, got, tt.want)
		}
	}
}

func rightLine(text string) line {
	if text == "" {
		return nil
	}
	return plain(text)
}

func TestHeaderKeepsWhereOneIs(t *testing.T) {
	crumbs := []string{"entities", "a-queue-with-a-long-name › dead letters", "message 12"}
	badge := plain("READ-ONLY ")
	for width, want := range map[int]string{
		90: " dlq  local: › entities › a-queue-with-a-long-name › dead letters › message 12  READ-ONLY ",
		60: " dlq  local: › … › message 12                     READ-ONLY ",
	} {
		if got := (frame{theme.Theme{}, width}).header("local:", crumbs, badge); got != want {
			t.Errorf("at %d: %q, want %q", width, got, want)
		}
	}
}
