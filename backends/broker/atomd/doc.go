// Package atomd is the management API of the engine: what Azure Service Bus speaks over HTTP,
// Atom entries and feeds of queues, topics, subscriptions and rules, so that the
// administration clients of its SDKs work unmodified.
//
// It answers: what does GET, PUT or DELETE of a path do, and who may (server.go, entity.go,
// feed.go, rule.go), how is an entity written in XML (description.go, filter.go, write.go) and
// read from it (read.go, settings.go, keys.go)? What a client set and the engine has no place
// for, such as the form in which it wrote a duration, is kept with the entity and given back as
// it came (extra.go).
//
// An update leaves alone what its body leaves out, and is one commit. Filters and actions of
// types that are not known are refused: one that cannot be evaluated would drop messages.
//
// It knows no AMQP. Bodies come from strangers: see read.go for the bounds.
package atomd
