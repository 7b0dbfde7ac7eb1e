// Package amqp is the AMQP 1.0 codec: pure bytes, no connection and no policy.
//
// It answers: which bytes stand for a value, and which value do these bytes stand for?
// [AppendValue] and [DecodeValue] cover the whole type system of the standard (part 1,
// section 1.6): every primitive, list, map, array and described type, in every
// constructor. Decoding what was encoded gives an equal value (see
// message.EqualValues); the bytes may differ from those of another encoder, because
// the standard leaves the choice between short and long forms to the sender.
//
// Above values stand messages with their sections ([DecodeMessage], [AppendMessage]: part 3),
// and frames with what they say ([ParseFrameHeader], [DecodePerformative], [AppendFrame]:
// parts 2, 4 and 5). A body is never decoded and encoded again: it keeps its bytes.
//
// Bytes come from strangers, so decoding is bounded before it allocates: see the limits
// in limits.go. Whatever is over a limit is refused with [ErrLimit], in both directions,
// so that nothing can be written that could not be read back.
//
// The package depends on backends/message and the standard library alone.
package amqp
