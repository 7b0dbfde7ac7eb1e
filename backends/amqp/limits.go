package amqp

import "errors"

// The limits of one value. They hold for encoding and decoding alike.
const (
	// MaxDepth is how many lists, maps, arrays and described types may be nested. A
	// decoder without it can be made to overflow its stack by one message.
	MaxDepth = 32
	// MaxCount is how many items one list, map (keys and values) or array may have.
	MaxCount = 65536
	// MaxZeroWidth is how many array items may take no bytes at all (such as nulls), in
	// total. Every other item costs its sender at least a byte.
	MaxZeroWidth = 1024
	// MaxSymbol is the longest symbol, in bytes.
	MaxSymbol = 1024
)

// ErrMalformed says that the bytes are not an encoded value, or not a whole one.
var ErrMalformed = errors.New("malformed amqp value")

// ErrLimit says that a value is over one of the limits of this package.
var ErrLimit = errors.New("amqp value over the limit")

// ErrUnencodable says that AMQP has no encoding for a value.
var ErrUnencodable = errors.New("value has no amqp encoding")
