package sqlfilter

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// decimalFormat is an IEEE 754-2008 decimal in the binary integer encoding, which AMQP
// prescribes: a sign, an exponent of ten and an integer coefficient. A coefficient that needs
// one bit more than it has room for is marked by two bits behind the sign, and its leading
// bits 100 are not stored.
type decimalFormat struct {
	exponentBits, coefficientBits int
	bias                          int
	digits                        int // that the coefficient may have
}

// decimalOf returns the format of so many bytes: 4, 8 or 16.
func decimalOf(size int) decimalFormat {
	switch size {
	case 4:
		return decimalFormat{8, 23, 101, 7}
	case 8:
		return decimalFormat{10, 53, 398, 16}
	}
	return decimalFormat{14, 113, 6176, 34}
}

// fromDecimal reads a big-endian decimal of 4, 8 or 16 bytes as the nearest double. It
// allocates only for a coefficient beyond 64 bits.
func fromDecimal(b []byte) value {
	f := decimalOf(len(b))
	var all uint128
	for _, x := range b {
		all = all.shiftLeft(8).or(uint128{lo: uint64(x)})
	}
	head := b[0] & 0x7f // behind the sign
	if head>>3 == 0xf {
		return value{kind: otherKind} // infinity and NaN, which no sender has a use for
	}
	stored := f.coefficientBits
	large := head>>5 == 3
	if large {
		stored -= 2
	}
	exponent := int(all.shiftRight(stored).low(f.exponentBits).lo) - f.bias
	coefficient := all.low(stored)
	if large {
		coefficient = coefficient.or(uint128{lo: 1}.shiftLeft(stored + 2))
	}
	var buf [48]byte
	s := buf[:0]
	if b[0]&0x80 != 0 {
		s = append(s, '-')
	}
	s = strconv.AppendInt(append(coefficient.append(s), 'e'), int64(exponent), 10)
	d, err := strconv.ParseFloat(string(s), 64)
	if err != nil {
		return value{kind: otherKind} // beyond the range of a double
	}
	return doubleValue(d)
}

// toDecimal writes a number as a big-endian decimal of so many bytes. A double is rounded
// where it has more digits. The result is nil for a long with more digits than fit, and for
// what is beyond the range.
func toDecimal(x value, size int) []byte {
	f := decimalOf(size)
	digits, exponent := decimalDigits(x, f.digits)
	for ; exponent > 0 && len(digits) < min(f.digits, 18); exponent-- {
		digits += "0" // .NET has no decimals with a positive exponent
	}
	biased := exponent + f.bias
	coefficient, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || len(digits) > f.digits || biased < 0 || biased >= 3<<(f.exponentBits-2) {
		return nil
	}
	bits, all := f.coefficientBits, uint128{lo: coefficient}
	if all.shiftRight(bits).lo != 0 {
		bits -= 2
		all = all.low(bits).or(uint128{lo: 3}.shiftLeft(8*size - 3))
	}
	all = all.or(uint128{lo: uint64(biased)}.shiftLeft(bits))
	if x.asDouble() < 0 {
		all = all.or(uint128{lo: 1}.shiftLeft(8*size - 1))
	}
	b := binary.BigEndian.AppendUint64(nil, all.hi)
	return binary.BigEndian.AppendUint64(b, all.lo)[16-size:]
}

// decimalDigits returns the digits of the absolute value, without zeros at the end, and the
// power of ten that they are to be multiplied with.
func decimalDigits(x value, precision int) (digits string, exponent int) {
	if x.kind == longKind {
		digits = strings.TrimPrefix(strconv.FormatInt(x.a, 10), "-")
	} else {
		d := math.Abs(x.double())
		s := strconv.FormatFloat(d, 'e', -1, 64)
		if strings.IndexByte(s, 'e') > precision+1 { // a digit and a point, then the others
			s = strconv.FormatFloat(d, 'e', precision-1, 64)
		}
		mantissa, power, _ := strings.Cut(s, "e") // NaN and Inf have none and fail as digits
		whole, fraction, _ := strings.Cut(mantissa, ".")
		exponent, _ = strconv.Atoi(power)
		digits, exponent = whole+fraction, exponent-len(fraction)
	}
	trimmed := strings.TrimRight(digits[1:], "0")
	return digits[:1] + trimmed, exponent + len(digits) - 1 - len(trimmed)
}

// uint128 is as much of 128-bit arithmetic as decimals need.
type uint128 struct{ hi, lo uint64 }

func (u uint128) or(v uint128) uint128 { return uint128{u.hi | v.hi, u.lo | v.lo} }

func (u uint128) shiftLeft(n int) uint128 {
	if n >= 64 {
		return uint128{u.lo << (n - 64), 0}
	}
	return uint128{u.hi<<n | u.lo>>(64-n), u.lo << n}
}

func (u uint128) shiftRight(n int) uint128 {
	if n >= 64 {
		return uint128{0, u.hi >> (n - 64)}
	}
	return uint128{u.hi >> n, u.lo>>n | u.hi<<(64-n)}
}

// low keeps the lowest n bits.
func (u uint128) low(n int) uint128 { return u.shiftLeft(128 - n).shiftRight(128 - n) }

// append writes u in decimal. It must be below 2⁶⁴ × 10¹⁹.
func (u uint128) append(dst []byte) []byte {
	if u.hi == 0 {
		return strconv.AppendUint(dst, u.lo, 10)
	}
	q, r := bits.Div64(u.hi, u.lo, 1e19) // the largest power of ten in 64 bits
	dst = strconv.AppendUint(dst, q, 10)
	for unit := uint64(1e18); unit > 0; unit /= 10 {
		dst = append(dst, '0'+byte(r/unit%10))
	}
	return dst
}
