// Package storetest has file systems that fail on purpose.
//
// It answers: what does the store, or the engine above it, do when a disk fails, fills up,
// or lies about a sync? [Faults] sees every operation and decides what becomes of it;
// [Quota] is a disk of a size. Both go around any other file system, as a rule one of
// pebble's in memory that can be copied as a loss of power would leave it.
package storetest
