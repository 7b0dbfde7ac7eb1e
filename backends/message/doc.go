// Package message is the one model of a message that every backend, command and
// file format of dlq shares.
//
// It answers: what can a message be, without losing anything? A [Message] has the
// sections of AMQP 1.0 (part 3, section 3.2), because that is the richest of the
// services behind dlq: header, annotations, properties, application properties,
// body and footer. What the broker owns (sequence number, delivery count, locks)
// sits apart in [Broker], so that "everything but what the broker owns" is one
// field wide. What only one service knows sits in [Message.System].
//
// Properties and annotations hold a [Value], a closed set: every AMQP primitive,
// arrays, lists, maps and described values. A value that a backend cannot carry is
// refused by name, never changed.
//
// The body is bytes. Nothing in dlq decodes and re-encodes a body on its way.
//
// The package depends on the standard library alone.
package message
