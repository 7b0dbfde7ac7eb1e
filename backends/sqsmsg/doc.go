// Package sqsmsg says what a message of Amazon SQS and of Yandex Message Queue is.
//
// It answers: what is a message of SQS on the wire, and how is it kept without losing anything?
// On the wire it is a text and up to ten attributes. Which texts and attributes are allowed, how
// many bytes they count for, which MD5 sums prove them, and which attributes a reader has asked
// for is decided here, once for the server and for the driver, so that they cannot disagree.
//
// # How an attribute is kept
//
// An attribute has a type with an optional label ("Number.int") and a value that is text or bytes.
// It is kept as an application property. The usual ones become values that filters and people
// understand, and only those that come back as exactly the same text:
//
//	String                                message.String
//	Binary                                message.Binary
//	Number, as an int64 is written        message.Long
//	everything else, such as a label,     message.Described, whose descriptor is the type behind
//	a fraction or a leading zero          "sqs:" and whose value is the text or the bytes
//
// So [ToAttribute] of [FromAttribute] is the attribute again, with the MD5 sum that its sender
// has computed. AWS documents that it trims zeroes off a number; nothing is trimmed here, since
// clients that check the sum would then throw the message away.
//
// The body is kept as its bytes.
//
// # Sources
//
// The rules are those of
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-metadata.html
// and of https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
// where no recorded answer of the service says otherwise; the rules of Yandex Message Queue are
// those of its open source, https://github.com/ydb-platform/ydb/tree/main/ydb/core/ymq.
package sqsmsg
