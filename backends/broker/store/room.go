package store

// Room returns how many bytes the disk can still take. known is false where that has no
// answer, as in memory. It costs a system call of about a microsecond, so it may be asked
// before every write.
//
// Whoever writes should keep a [Reserve]: a deletion is written too, tables are rewritten
// before the space of what was deleted comes back, and a log that finds the disk full ends
// all writes until the store is opened again (see [ErrFailed]).
func (s *Store) Room() (free uint64, known bool) {
	usage, err := s.fs.GetDiskUsage(s.fs.dir)
	if err != nil {
		return 0, false
	}
	return usage.AvailBytes, true
}

// Reserve is how much room should be left when new messages are refused, so that receiving
// and settling go on. The store itself stops rewriting tables when a quarter of it is left.
const Reserve = 256 << 20
