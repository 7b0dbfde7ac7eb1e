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
package sqsd
