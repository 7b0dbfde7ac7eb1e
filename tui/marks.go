package tui

import "math/bits"

// marks is a set of positions in a rowStore. Marking a million rows is a pass over 125 KB.
type marks struct {
	words []uint64
	n     int
}

func (m *marks) has(i int) bool {
	w := i / 64
	return w < len(m.words) && m.words[w]>>(i%64)&1 == 1
}

// set marks position i or unmarks it.
func (m *marks) set(i int, on bool) {
	if m.has(i) == on {
		return
	}
	for len(m.words) <= i/64 {
		m.words = append(m.words, 0)
	}
	m.words[i/64] ^= 1 << (i % 64)
	if on {
		m.n++
	} else {
		m.n--
	}
}

func (m *marks) clear() { m.words, m.n = nil, 0 }

// all yields the marked positions in ascending order.
func (m *marks) all(yield func(int) bool) {
	for w, word := range m.words {
		for word != 0 {
			if !yield(w*64 + bits.TrailingZeros64(word)) {
				return
			}
			word &= word - 1
		}
	}
}
