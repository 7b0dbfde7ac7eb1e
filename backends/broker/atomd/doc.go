// Package atomd is the management API of the engine: what Azure Service Bus speaks over HTTP,
// Atom entries and feeds of queues, topics, subscriptions and rules, so that the
// administration clients of its SDKs work unmodified.
//
// It answers: what does GET, PUT or DELETE of a path do (server.go, entity.go, feed.go,
// rule.go), and how is an entity written in XML (description.go, filter.go, write.go) and
// read from it (read.go)? What a client set and the engine has no place for, such as the
// form in which it wrote a duration, is kept with the entity and given back as it came
// (extra.go).
//
// It knows no AMQP. Bodies come from strangers: see read.go for the bounds.
package atomd
