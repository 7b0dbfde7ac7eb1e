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
	m.grow(i + 1)
	m.words[i/64] ^= 1 << (i % 64)
	if on {
		m.n++
	} else {
		m.n--
	}
}

// setAll marks the positions below n.
func (m *marks) setAll(n int) {
	m.grow(n)
	for w := range n / 64 {
		m.words[w] = ^uint64(0)
	}
	if rest := n % 64; rest > 0 {
		m.words[n/64] |= 1<<rest - 1
	}
	m.recount()
}

// invert turns over the positions below n.
func (m *marks) invert(n int) {
	m.grow(n)
	for w := range n / 64 {
		m.words[w] ^= ^uint64(0)
	}
	if rest := n % 64; rest > 0 {
		m.words[n/64] ^= 1<<rest - 1
	}
	m.recount()
}

// invertEach turns over the given positions, which differ from each other.
func (m *marks) invertEach(positions []int32) {
	for _, i := range positions {
		m.grow(int(i) + 1)
		m.words[i/64] ^= 1 << (i % 64)
	}
	m.recount()
}

// setEach marks the given positions.
func (m *marks) setEach(positions []int32) {
	for _, i := range positions {
		m.grow(int(i) + 1)
		m.words[i/64] |= 1 << (i % 64)
	}
	m.recount()
}

// grow makes room for the positions below n.
func (m *marks) grow(n int) {
	if need := (n + 63) / 64; need > len(m.words) {
		m.words = append(m.words, make([]uint64, need-len(m.words))...)
	}
}

func (m *marks) recount() {
	m.n = 0
	for _, w := range m.words {
		m.n += bits.OnesCount64(w)
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
