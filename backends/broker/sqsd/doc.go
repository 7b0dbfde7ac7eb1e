// Package sqsd serves Amazon SQS and Yandex Message Queue: the engine on the wire, for the SDKs of
// AWS, unchanged.
//
// It answers: which request is which command of the engine, and in which words is it answered? What a
// queue does is said in package broker; what a message is, in sqsmsg; who may call, in sigv4.
//
// # Two protocols
//
// A request with the header X-Amz-Target is AWS JSON 1.0, any other one is AWS Query: a form, or a
// query string, answered in XML. Both are read into the same input and written by the same
// encoder, so that an action is written once. The path of the URL does not matter, but that a
// Query request without a QueueUrl may name its queue by it.
//
// # Queues
//
// Names of queues are per account and region, which the credential of a signature tells: the
// region of its scope, and the account of its key. In the engine, a queue of the usual account and
// region has its name, so that it is found by it elsewhere; another one is REGION/ACCOUNT/NAME.
// A queue's URL is made of the host that the client has used, and of an URL that comes in only the
// last segments count.
//
// # Flavors
//
// What differs between Amazon SQS and Yandex Message Queue stands in flavor.go, and in the
// properties that a queue gets when it is made.
//
// # What it costs
//
// Made by
//
//	go test -run - -bench . ./backends/broker/sqsd
//
// with bodies of 1 KiB, 16 clients and the server on two cores: messages a second, of one run, in
// which only ratios mean something. no-op is a handler that reads the request and answers always
// the same; it keeps nothing, and dlq has everything on disk.
//
//	                                 no-op     dlq
//	AWS SDK for Go: SendMessage       9,400   4,400
//	batches of ten                   49,000  24,800
//	signed requests on a socket:
//	SendMessage                      34,600   9,900
//	batches of ten                  313,000  42,000
//	receive and delete by tens      112,000  29,900 of 1,000 messages
//	                                         27,100 of 100,000
//	                                         16,800 of 1,000,000
//
// A send alone waits for the disk: 16 clients share a sync, which takes about half a millisecond.
package sqsd
