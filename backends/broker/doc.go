// Package broker is the message engine: queues under peek-lock with dead-letter
// sub-queues, delivery counts, scheduled messages and atomic moves, kept durably.
//
// It answers: when does a lock expire, when does a message move, what is durable when a
// call returns? It knows no wire format, no HTTP and no AMQP; servers translate.
//
// The engine is a state machine with an injected clock. A command takes the one lock,
// first makes true what time has brought about since the last command (expired locks,
// scheduled messages that are due), then changes memory and fills a batch for the store,
// and lets go of the lock; only then does it wait for the sync. Nothing sleeps, nothing
// reads the wall clock, and no result depends on the order of goroutines, so that one
// history of commands and times has one outcome.
//
// Memory holds an index (a sequence number for each message, more for those that are
// locked or scheduled). Messages live in the store and are read when they are delivered.
//
// Durable when a command returns: sends, settlements, moves, purges and entity changes.
// Locks and expiries are written but not waited for: a clean stop keeps them; after a crash
// a message may be free early.
package broker
