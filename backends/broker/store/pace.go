package store

import (
	"sync/atomic"
	"time"
)

// pace slows writers down while tables gather faster than they are compacted, because every
// read has to look into each layer of them. Pebble would stop writers altogether, and for
// ever if a table cannot be compacted because it is damaged.
type pace struct{ written atomic.Int64 }

const (
	paceBytes  = 4 << 20 // written between two looks
	paceLayers = 12      // from which on writers are slowed down
	paceStep   = 20 * time.Millisecond
	paceMost   = time.Second
)

// wait is called with the size of a batch before it is applied.
func (s *Store) wait(size int) {
	if n := s.pace.written.Add(int64(size)); n < paceBytes || !s.pace.written.CompareAndSwap(n, 0) {
		return
	}
	if over := int(s.db.Metrics().Levels[0].Sublevels) - paceLayers; over > 0 {
		time.Sleep(min(time.Duration(over)*paceStep, paceMost))
	}
}
