package amqp

import "dlq/backends/message"

// The constructors of part 1, section 1.6. The high half byte says how wide the payload
// is: 4 nothing, 5 to 9 one to sixteen bytes, A and B a length and bytes, C and D a size,
// a count and items, E and F the same with one constructor for all items.
const (
	codeDescribed  = 0x00
	codeNull       = 0x40
	codeTrue       = 0x41
	codeFalse      = 0x42
	codeUint0      = 0x43
	codeUlong0     = 0x44
	codeList0      = 0x45
	codeUbyte      = 0x50
	codeByte       = 0x51
	codeSmallUint  = 0x52
	codeSmallUlong = 0x53
	codeSmallInt   = 0x54
	codeSmallLong  = 0x55
	codeBool       = 0x56
	codeUshort     = 0x60
	codeShort      = 0x61
	codeUint       = 0x70
	codeInt        = 0x71
	codeFloat      = 0x72
	codeChar       = 0x73
	codeDecimal32  = 0x74
	codeUlong      = 0x80
	codeLong       = 0x81
	codeDouble     = 0x82
	codeTimestamp  = 0x83
	codeDecimal64  = 0x84
	codeDecimal128 = 0x94
	codeUUID       = 0x98
	codeBinary8    = 0xa0
	codeString8    = 0xa1
	codeSymbol8    = 0xa3
	codeBinary32   = 0xb0
	codeString32   = 0xb1
	codeSymbol32   = 0xb3
	codeList8      = 0xc0
	codeMap8       = 0xc1
	codeList32     = 0xd0
	codeMap32      = 0xd1
	codeArray8     = 0xe0
	codeArray32    = 0xf0
)

// kindOfCode returns the kind that a constructor makes, or 0 for a constructor that the
// standard does not define.
func kindOfCode(code byte) message.Kind {
	switch code {
	case codeNull:
		return message.KindNull
	case codeTrue, codeFalse, codeBool:
		return message.KindBool
	case codeUbyte:
		return message.KindUbyte
	case codeByte:
		return message.KindByte
	case codeUshort:
		return message.KindUshort
	case codeShort:
		return message.KindShort
	case codeUint0, codeSmallUint, codeUint:
		return message.KindUint
	case codeSmallInt, codeInt:
		return message.KindInt
	case codeUlong0, codeSmallUlong, codeUlong:
		return message.KindUlong
	case codeSmallLong, codeLong:
		return message.KindLong
	case codeFloat:
		return message.KindFloat
	case codeDouble:
		return message.KindDouble
	case codeChar:
		return message.KindChar
	case codeTimestamp:
		return message.KindTimestamp
	case codeDecimal32:
		return message.KindDecimal32
	case codeDecimal64:
		return message.KindDecimal64
	case codeDecimal128:
		return message.KindDecimal128
	case codeUUID:
		return message.KindUUID
	}
	return kindOfWideCode(code)
}

func kindOfWideCode(code byte) message.Kind {
	switch code {
	case codeBinary8, codeBinary32:
		return message.KindBinary
	case codeString8, codeString32:
		return message.KindString
	case codeSymbol8, codeSymbol32:
		return message.KindSymbol
	case codeList0, codeList8, codeList32:
		return message.KindList
	case codeMap8, codeMap32:
		return message.KindMap
	case codeArray8, codeArray32:
		return message.KindArray
	}
	return 0
}
