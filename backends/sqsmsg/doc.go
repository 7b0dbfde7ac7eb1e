// Package sqsmsg says what a message of Amazon SQS is on the wire, and how it is kept as a
// [message.Message] without losing anything.
//
// It answers: which attribute is which value, how many bytes does a message have by the
// service's count, which characters may it have, and what are its MD5 sums? The server and the
// driver share it, so that they cannot disagree.
//
// # Attributes
//
// An attribute of SQS has a type with an optional label ("Number.int") and a value that is text
// or bytes. The common ones are values that filters and people understand:
//
//	String                            message.String
//	Binary                            message.Binary
//	Number, as an int64 is written    message.Long
//	everything else                   message.Described, with the type behind "sqs:" as its
//	                                  descriptor and the text or the bytes as its value
//
// The sources of the rules are
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-metadata.html
// and https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-attributes.html
package sqsmsg
