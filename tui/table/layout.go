package table

// Column describes one column. The first column with Flex set takes what room
// the others leave.
type Column struct {
	Title string
	Width int // cells where there is room for all
	Min   int // cells it may shrink to where there is not; 0 means it does not shrink
	Flex  bool
}

// gap is the space between two columns.
const gap = 2

// layout divides so many cells among the columns and returns the cells of each,
// in order. Where there is not enough for all, the flexible column shrinks to
// its minimum, then the others do from the right, and then columns are dropped
// from the right, so that what identifies a row stays. The first is never
// dropped but cut.
func layout(columns []Column, room int) []int {
	cells := make([]int, len(columns))
	flex := -1
	need := -gap
	for i, c := range columns {
		cells[i] = max(c.Width, c.Min, 0)
		need += cells[i] + gap
		if c.Flex && flex < 0 {
			flex = i
		}
	}
	shrink := func(i int) {
		if least := columns[i].Min; least > 0 && need > room {
			less := min(cells[i]-least, need-room)
			cells[i] -= less
			need -= less
		}
	}
	if flex >= 0 {
		shrink(flex)
	}
	for i := len(cells) - 1; i >= 0; i-- {
		shrink(i)
	}
	for need > room && len(cells) > 1 {
		need -= gap + cells[len(cells)-1]
		cells = cells[:len(cells)-1]
	}
	switch {
	case len(cells) == 0:
	case need > room:
		cells[0] = max(room, 0)
	case flex >= 0 && flex < len(cells):
		cells[flex] += room - need
	}
	return cells
}
