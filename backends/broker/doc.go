// Package broker is the message engine: queues, topics and subscriptions under peek-lock,
// with sessions, times to live, dead-letter queues, forwarding, duplicate detection,
// transactions and redrive, kept durably.
//
// It answers: when does a lock expire, when does a message move and why, what is durable when
// a call returns? It knows no wire format, no HTTP and no AMQP; servers translate.
//
// # One engine, two services
//
// It does what Azure Service Bus and Amazon SQS document, and nothing in it asks which of the
// two an entity belongs to. Where they differ, the difference is a property of the entity with
// a name of its own (see [Properties]): whether a delivery is counted when it is made or when it
// has failed, whether dead letters lie in a sub-queue or in another queue that a policy names,
// what a lock that has expired is still good for. [Defaults] gives an entity the properties of
// its dialect.
//
//	what is called here   Service Bus              SQS
//	lock                  peek-lock                visibility timeout
//	delivery count        delivery count           receive count
//	session, group        session                  FIFO message group
//	scheduled, delayed    scheduled message        delayed message
//	dead-letter queue     sub-queue                queue of a redrive policy
//	time to live          TTL of each message      retention of the queue
//	move task             -                        message move task
//
// # How it works
//
// The engine is a state machine with an injected clock. A command takes the one lock,
// first makes true what time has brought about since the last command, each thing at its own
// time (expired locks and sessions, messages that are due, retention, tasks), then changes
// memory and fills a batch for the store, and lets go of the lock; only then does it wait for
// the sync. Nothing sleeps, nothing reads the wall clock, and no result depends on the order of
// goroutines, so that one history of commands and times has one outcome.
//
// A message on its way through topics and forwarding entities is routed first, which changes
// nothing, and then lands: all its copies, in one commit (see route.go).
//
// Memory holds an index (a sequence number for each message, more for those that are
// locked, scheduled or in a group). Messages live in the store and are read when they are
// delivered. Copies share what they have in common, so that neither a move nor a topic copies
// a body.
//
// # What is durable
//
// When a command returns: sends, settlements, moves, purges, transactions, session states and
// changes of entities. Locks, expiries and what moves by itself are written but not waited for:
// a clean stop keeps them; after a crash a message may be free early. After a write that failed
// the engine stops ([ErrUnavailable]) and what was written shows when it is opened again. A disk
// that is nearly full refuses sends ([ErrFull]) and nothing else.
//
// # What it costs
//
// Made by
//
//	go test -run - -bench . ./backends/broker
//
// on two busy cores with bodies of 1 KiB: figures of one line are of one run, and only their
// ratios mean something.
//
//	                                    1,000 messages   1,000,000 messages
//	receive and release                 22 µs            15 µs
//	receive, complete, send (2 syncs)   1.13 ms          0.74 ms
//	peek a page of 100                  345 µs           325 µs
//	counts of an entity                 1.2 µs           0.8 µs
//	memory of a message                                  20 bytes beyond a cache of 96 MB
//	open after a clean stop                              0.24 s
//	open after a kill                                    0.86 s
//
//	                                    engine           key-value store    overwritten file,
//	                                                     doing the same     syncs shared
//	send, one writer                    3,300/s          3,160/s            3,890/s
//	send, 100 writers                   41,100/s         45,100/s           95,300/s
//	send and complete, 100 writers      23,800/s         38,600/s           (the store does
//	send and dead-letter, 100 writers   22,600/s         36,700/s           not read)
package broker
