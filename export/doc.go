// Package export writes messages to files and reads them back.
//
// It answers: how does a message look outside of a broker, without losing anything?
// NDJSON ([JSONL], one message a line) and [JSON] (an array) are exact: a message that is
// written and read back is equal in every section and every type (message.Diff is empty),
// body bytes included, and what the broker owned is read back into message.Broker. [CSV]
// is for spreadsheets, and out only.
//
// # One message
//
// (Broken into lines here; NDJSON has it in one.)
//
//	{"sequenceNumber":42,"enqueuedTime":"2026-03-01T09:15:02.123Z","deliveryCount":10,"state":"active",
//	 "messageId":"order-7","subject":"OrderPlaced","contentType":"application/json","sessionId":"acme","ttl":"336h0m0s",
//	 "annotations":{"x-opt-partition-key":"acme"},
//	 "properties":{"tenant":"acme","attempt":{"type":"int","value":3},"DeadLetterReason":"MaxDeliveryCountExceeded"},
//	 "body":"{\"orderId\":7}"}
//
// A key that is absent means that the message has no such field. Keys may come in any
// order, but the order inside of properties, annotations and maps is kept. An unknown or
// repeated key is an error: skipping it would lose data silently.
//
// Header: durable, priority, ttl (as 1h2m3s), firstAcquirer. Properties section:
// messageId, userId, to, subject, replyTo, correlationId, contentType, contentEncoding,
// absoluteExpiry, created, sessionId, groupSequence, replyToSessionId. Sections:
// deliveryAnnotations, annotations, properties, footer. Further: scheduledEnqueueTime,
// system (what only one service has). Times are RFC 3339 in UTC, or a text of milliseconds
// since the epoch for years that it cannot write.
//
// The broker owns sequenceNumber, enqueuedSequenceNumber, enqueuedTime, expiresAt,
// deliveryCount, state, lockToken, lockedUntil, deadLetterSource, bodyOmitted and
// bodySize. They inform; sending the message ignores them. A message with bodyOmitted
// was read without its body and must not be sent.
//
// # Body
//
// A body of one data section is "body" if it is UTF-8, else "bodyBase64". Any other body
// is "bodyKind" (data, value or sequence) and "bodySectionsBase64", an array with each
// section: for value and sequence the AMQP encoding. No body key at all is a message
// without a body section, which is not the same as "body":"".
//
// Wherever a key holds text, the same key with Base64 appended holds text that is not
// UTF-8: toBase64, userIdBase64 and so on.
//
// # Typed values
//
// The values of properties, annotations and identifiers have AMQP types. A JSON string,
// true, false and null are an AMQP string, boolean and null; everything else says its
// type:
//
//	{"type":"int","value":5}                  any integer type; beyond 2^53 the number is a string
//	{"type":"double","value":1.5}             float and double; "NaN", "Infinity", "-Infinity" as strings;
//	{"type":"double","bits":"fff8000000000001"} any other NaN
//	{"type":"decimal64","value":"22300000…"}  the bits in hexadecimal
//	{"type":"char","value":"é"}               a number if no character has that code point
//	{"type":"timestamp","value":"2026-01-02T15:04:05.000Z"}  "253402300800000" (milliseconds) beyond year 9999
//	{"type":"uuid","value":"…"}  {"type":"symbol","value":"…"}  {"type":"binary","base64":"…"}
//	{"type":"string","base64":"…"}            a string or symbol that is not UTF-8
//	{"type":"list","value":[…]}               typed values
//	{"type":"map","value":{"a":…}}            keys are strings; otherwise [{"key":…,"value":…}]
//	{"type":"array","elem":"int","value":[1,2]}  "descriptor" if it has one; items without their type where they have a "value"
//	{"type":"described","descriptor":…,"value":…}
//
// In annotations, deliveryAnnotations and footer, whose keys are symbols by the standard,
// the keys of an object are symbols; if a key is anything else, the section is written as
// [{"key":…,"value":…}]. Properties and system become [{"name":…,"value":…}] if a name is
// not UTF-8 ("nameBase64") or comes twice.
//
// # CSV
//
// One row a message, with these columns: sequenceNumber, enqueuedTime, deliveryCount, state,
// deadLetterReason, deadLetterErrorDescription, deadLetterSource, messageId, correlationId,
// subject, contentType, sessionId, to, replyTo, properties (as JSON, in the form above),
// bodyKind, body (text) or bodyBase64 (one for each section, joined by spaces). Nothing is cut
// off, but a cell that a spreadsheet would take for a formula gets a ' in front, and invisible
// characters are written as \u escapes: for exact copies use JSONL.
//
// # Safety
//
// Control, format and line-separator characters are written as \u escapes, so that the
// output can go to a terminal as it is. [Reader] is bounded in size and depth. [CreateFile]
// never leaves half a file behind. [CSV] disarms cells that a spreadsheet would compute.
package export
