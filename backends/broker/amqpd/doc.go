// Package amqpd is the AMQP 1.0 server of the engine: what Azure Service Bus speaks on the
// wire, so that its SDKs connect unmodified.
//
// It answers: what does a frame do? A connection is read by one goroutine (conn.go), which
// takes each frame to its session (session.go) and link: an intake, on which the peer sends
// (intake.go), or an outlet, on which it receives (outlet.go, settle.go, accept.go for
// sessions). Links to $cbs and $management are answered by nodes (node.go, cbs.go,
// management.go, rules.go), links to the coordinator by transaction.go. What the service
// calls its errors is in errors.go, how a message looks on the wire in content.go.
//
// What waits, for the disk or for a message, does so on goroutines of its own, which come
// when there is something to do and go when there is not: a connection over which nothing
// happens costs one goroutine and no buffers. While one batch of deliveries is stored, what
// arrives meanwhile becomes the next, so that many clients share a sync.
//
// It knows no HTTP, and nothing of queues that the engine knows. Bytes come from strangers:
// see Limits, and package amqp for those of a value.
package amqpd
