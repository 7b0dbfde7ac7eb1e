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
//
// # What it costs
//
// Made as bench_test.go says: one connection of go-amqp, durable messages of 1 KiB, on two cores
// that client and server share: 12,000 sent and 4,000 received. Figures of one line are of one
// run, and only their ratios mean something. The floors do nothing with a message, or append
// it to a log whose syncs are shared.
//
//	messages a second         dlq      no-op    no-op, log   RabbitMQ 3.10
//	                                                         classic   quorum
//	send, 1 in flight         1,850    25,900   2,440        1,110     1,180
//	send, 100 in flight       31,100   67,500   43,500       8,750     16,900
//	receive, await settling   26,200   37,700   34,000       22,000    18,200
//	receive, settle unawaited 38,000   61,700   74,900       20,400    22,200
//
// RabbitMQ 3.10 cannot be asked to confirm that something is settled, so that it waits in
// neither of the last two lines. Over runs of 25,000 messages and more, without RabbitMQ, what
// is received unawaited was 0.34 of the no-op server: each message is read from the store.
package amqpd
