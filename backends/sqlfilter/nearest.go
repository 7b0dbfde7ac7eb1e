package sqlfilter

import "strings"

// Nearest returns which of the names takes the fewest edits to make of name, the first of
// several, and how many they are: what is likely to have been meant by a name that is not among
// them. It serves whoever reads names that people type, in a filter or elsewhere. An edit
// inserts, removes or replaces a letter or swaps two neighbours; case does not count. It is
// empty if there are no names.
func Nearest(name string, names []string) (best string, edits int) {
	for i, known := range names {
		if d := editDistance(strings.ToLower(name), strings.ToLower(known)); i == 0 || d < edits {
			best, edits = known, d
		}
	}
	return best, edits
}

// editDistance is the number of letters to insert, remove, replace or swap with their
// neighbour to turn a into b.
func editDistance(a, b string) int {
	x, y := []rune(a), []rune(b)
	before, previous, current := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := range x {
		current[0] = i + 1
		for j := range y {
			cost := 1
			if x[i] == y[j] {
				cost = 0
			}
			current[j+1] = min(previous[j]+cost, previous[j+1]+1, current[j]+1)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				current[j+1] = min(current[j+1], before[j-1]+1)
			}
		}
		before, previous, current = previous, current, before
	}
	return previous[len(y)]
}
