// Package throttle is a decorator that limits how many messages a second go through a backend.
//
// It answers: how does a big job leave room for those who work on the same service? A
// message counts each time it goes through a call that takes or changes it: as it is handed
// out by a lease, sent, settled, with a lease or without, and moved. Looking costs nothing.
package throttle
