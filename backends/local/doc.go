// Package local is the backend behind local: connections, dlq's own broker, offline, in a
// directory or in memory, with every capability there is.
//
// It answers: who owns a data directory, how do others work with it meanwhile, and how do the
// engine's commands look through the backends interface? A directory has one owner at a time,
// guarded by a file lock. A command takes it, works, and lets go; another waits for up to two
// seconds and then is told who the owner is. An owner that stays ([Options].Stay) listens on
// a socket, and [Connect] reaches it there: the same interface, as calls to another process
// of the same user.
package local
