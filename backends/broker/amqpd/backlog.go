package amqpd

// backlog is what a link has still to do, in the order in which it came. One goroutine at a
// time works it off; the lock of the connection guards it.
type backlog[T any] struct {
	todo    []T
	working bool // a goroutine does
}

// add reports whether a goroutine has to begin to work it off. The caller holds the lock.
func (b *backlog[T]) add(item T) (begin bool) {
	b.todo = append(b.todo, item)
	begin = !b.working
	b.working = true
	return begin
}

// work does what there is to do until there is nothing: all that has come by then is dealt with
// at once, without the lock, and then answered under it. The caller holds the lock.
func (b *backlog[T]) work(c *conn, deal, answer func(batch []T)) {
	for len(b.todo) > 0 {
		batch := b.todo
		b.todo = nil
		c.mu.Unlock()
		deal(batch)
		c.mu.Lock()
		answer(batch)
		c.flushLocked()
	}
	b.working = false
}
