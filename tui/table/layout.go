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
// from the right, so that what identifies a row stays; what a dropped column
// leaves goes to the others again. The first is never dropped but cut.
func layout(columns []Column, room int) []int {
	cells := make([]int, len(columns))
	flex, need := -1, -gap
	for i, c := range columns {
		cells[i] = c.least()
		need += cells[i] + gap
		if c.Flex && flex < 0 {
			flex = i
		}
	}
	for need > room && len(cells) > 1 {
		need -= gap + cells[len(cells)-1]
		cells = cells[:len(cells)-1]
	}
	if len(cells) == 0 {
		return cells
	}
	if need > room {
		cells[0] = max(room, 0)
		return cells
	}
	left := room - need
	grow := func(i, to int) {
		more := min(max(to-cells[i], 0), left)
		cells[i] += more
		left -= more
	}
	for i := range cells {
		if i != flex {
			grow(i, columns[i].Width)
		}
	}
	if flex >= 0 && flex < len(cells) {
		grow(flex, room)
	}
	return cells
}

// least returns the cells that the column shrinks to.
func (c Column) least() int {
	if c.Min > 0 {
		return c.Min
	}
	return max(c.Width, 0)
}
