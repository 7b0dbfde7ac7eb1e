// Package local is the backend behind local: connections, dlq's own broker in this
// process: offline, in a directory or in memory, with every capability there is.
//
// It answers: who owns a data directory, and how do the engine's commands look through the
// backends interface? A directory has one owner at a time, guarded by a file lock. A command
// takes it, works, and lets go; another waits for up to two seconds and then is told who
// the owner is.
package local
