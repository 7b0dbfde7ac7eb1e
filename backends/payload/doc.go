// Package payload reads a message body the way a person would.
//
// It answers: what is in these bytes? [Inspect] takes off the layers that senders wrap
// around a payload (AMQP value, .NET DataContract string, gzip, zlib, deflate, base64, JSON in
// a JSON string, UTF-16) and names what is left: JSON, XML, text, protobuf or binary.
// The result serves search ([Payload.Text], [Payload.JSON], [Find]) and display
// ([Payload.Pretty]). It never serves sending: a body goes out as the bytes that came in.
//
// Detection is conservative, because a wrong guess hides what is there: text that could be
// base64 stays text unless it is long and what it decodes to makes sense.
//
// Bodies come from strangers. Work is bounded whatever they hold: at most [MaxLayers]
// layers, [MaxDecoded] bytes decompressed, and less where a body expands suspiciously.
// What comes out is as untrusted as what went in, and must be sanitised before it reaches a
// terminal.
package payload
