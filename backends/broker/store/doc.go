// Package store keeps the engine's data on disk, on an embedded key-value store (pebble).
//
// It answers: what is written, and when is it durable? Five kinds of records, each with a
// checksum over its key and value, so that a damaged or misplaced record is an error and
// never a wrong message:
//
//	E queue                 the entity: name and properties
//	N queue                 an upper bound of the sequence numbers it has used
//	M queue sub seq         one message's state: small, rewritten by locks and moves
//	H id                    its head: every section but the body, as it arrived
//	B id                    its body, as it arrived
//
// Heads and bodies are written once and never rewritten: a move to the dead-letter queue
// or another entity rewrites M alone, and refers to the same H and B. Restarting reads E,
// N and M, not the messages.
//
// Writes go through a [Batch], which is atomic. [Store.Apply] puts batches into the log in
// the order of the calls, so that a batch which survives a crash implies every batch before
// it; waiting for the sync is a second step, and concurrent waiters share one sync.
//
// After a failed write or sync a store answers every write with [ErrFailed]: it never
// tries the same file again, because what a failed sync has left on disk is unknown. The
// disk then stays as it was at that moment, reads go on, and the next Open recovers what
// was acknowledged. A disk whose calls never return is beyond this.
package store
