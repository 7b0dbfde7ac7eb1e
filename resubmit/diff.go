package resubmit

import "dlq/backends/message"

// diffCells bounds the work of a line diff: beyond it the changed part counts as replaced whole.
const diffCells = 1 << 22

// DiffText returns what differs between two versions of a message, as lines that begin with
// "-" or "+", in the form of [FormatDocument]. It is empty if nothing differs but what the
// broker owns. The lines hold text from the message: sanitise them before a terminal sees
// them.
func DiffText(before, after *message.Message) []string {
	return diffLines(documentLines(before), documentLines(after))
}

// diffLines is the shortest list of removed and added lines.
func diffLines(a, b []string) []string {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	var out []string
	if len(a)*len(b) <= diffCells {
		common := commonLengths(a, b)
		for len(a) > 0 && len(b) > 0 {
			i, j := len(a), len(b)
			switch {
			case a[0] == b[0]:
				a, b = a[1:], b[1:]
			case common[i-1][j] >= common[i][j-1]:
				out, a = append(out, "-"+a[0]), a[1:]
			default:
				out, b = append(out, "+"+b[0]), b[1:]
			}
		}
	}
	for _, line := range a {
		out = append(out, "-"+line)
	}
	for _, line := range b {
		out = append(out, "+"+line)
	}
	return out
}

// commonLengths holds, for the last i lines of a and the last j of b, how many lines their longest
// common part has.
func commonLengths(a, b []string) [][]int32 {
	n := make([][]int32, len(a)+1)
	for i := range n {
		n[i] = make([]int32, len(b)+1)
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			if a[len(a)-i] == b[len(b)-j] {
				n[i][j] = n[i-1][j-1] + 1
			} else {
				n[i][j] = max(n[i-1][j], n[i][j-1])
			}
		}
	}
	return n
}
