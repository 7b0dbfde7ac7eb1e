// Package backends is the one interface behind which every message service stands:
// Azure Service Bus, Amazon SQS and Yandex Message Queue, and dlq's own broker.
//
// Start reading at [Backend]: five methods that every service can honour. What only
// some services can do is an optional interface, most of one method ([Peeker],
// [DirectSettler], [Mover], [Purger], [EntityAdmin], ...), found with [As], which also looks
// through decorators. What a user is told about a backend's abilities is [Probe]d from
// the same assertions, so that a greyed-out key and the real ability cannot disagree.
//
// Drivers live in the packages below (local, servicebus, sqs), decorators beside them
// (throttle, ...), and backendtest is the conformance suite that all of them pass.
package backends
