package sqsmsg

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

func text(name, kind, value string) Attribute {
	return Attribute{Name: name, Type: kind, Value: []byte(value)}
}

func TestMD5(t *testing.T) {
	for body, want := range map[string]string{
		"":             "d41d8cd98f00b204e9800998ecf8427e",
		"0":            "cfcd208495d565ef66e7dff9f98764da",
		"Test Message": "d1d4180b7e411c4be86b00fb2ee103eb",
		"Привет":       "8a669e9418750c81ab90ae159a8ec410",
	} {
		if got := MD5([]byte(body)); got != want {
			t.Errorf("MD5(%q) = %s, want %s", body, got, want)
		}
	}
}

func TestAttributesMD5(t *testing.T) {
	for _, tt := range []struct {
		from string // who says so
		as   []Attribute
		want string
	}{
		{"none", nil, ""},
		{"AWS", []Attribute{text("Foo", "String", "Bar")}, "ae7155c6026991b6d54b11589678bf9c"},
		{"AWS", []Attribute{text("timestamp", "Number", "1493147359900")}, "235c5c510d26fb653d073faed50ae77c"},
		{
			"AWS",
			[]Attribute{text("attr1", "Binary", "traceparent\x1e00-774062d6c37081a5a0b9b5b88e30627c-2d2482211f6489da-01")},
			"8cbe4db156db8a94db8b801b7addb984",
		},
		{
			"AWS, as a system attribute",
			[]Attribute{text("AWSTraceHeader", "String", "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1")},
			"5ae4d5d7636402d80f4eb6d213245a88",
		},
		{"AWS, to a Lambda", []Attribute{text("sample-attribute", "String", "sample-value")}, "7c815262be77a62f56671125069ca888"},
		{"the SDK for JavaScript", []Attribute{text("UserId", "Number.bigint", "1234567890123456789012")}, "797ab158d73dcb5242dedc4412c8e855"},
		{
			"LocalStack, not in the order of the names",
			[]Attribute{text("Hello", "String", "There"), text("General", "String", "Kenobi")},
			"fca026605781cb4126a1e9044df24232",
		},
		{
			"moto, all together",
			[]Attribute{
				text("b.raw", "Binary.gif", "\x00\xff\x80"), text("Alpha", "Number.int", "-7"), text("a-b", "String", "значение"),
				text("a", "String.json", `{"x":1}`), text("a_b", "Binary", "text"),
			},
			"01bb9c3b2f0e793f6ee2184f0f05e83c",
		},
	} {
		before := slices.Clone(tt.as)
		if got := AttributesMD5(tt.as); got != tt.want {
			t.Errorf("%s: the sum of %v is %s, want %s", tt.from, tt.as, got, tt.want)
		}
		if !slices.EqualFunc(before, tt.as, func(a, b Attribute) bool { return a.Name == b.Name }) {
			t.Errorf("%s: the order of the attributes was changed", tt.from)
		}
	}
}

// The sum depends on each part and on where one ends and the next begins.
func TestAttributesMD5Differ(t *testing.T) {
	seen := make(map[string]Attribute)
	for _, a := range []Attribute{
		text("ab", "String", "c"), text("a", "String", "bc"), text("ab", "String", "d"), text("ab", "String.x", "c"),
		text("ab", "Binary", "c"), text("ab", "Binary.x", "c"), text("ab", "Number", "c"),
	} {
		sum := AttributesMD5([]Attribute{a})
		if other, ok := seen[sum]; ok {
			t.Errorf("%v and %v have the same sum", a, other)
		}
		seen[sum] = a
	}
}

func TestContentID(t *testing.T) {
	const want = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // FIPS 180-2, appendix B.1
	if got := ContentID([]byte("abc")); got != want {
		t.Errorf("the content id of abc is %s, want %s", got, want)
	}
}

func TestSize(t *testing.T) {
	for _, tt := range []struct {
		body string
		as   []Attribute
		want int
	}{
		{"", nil, 0},
		{"body", nil, 4},
		{"тело", nil, 8}, // bytes, not characters
		{"body", []Attribute{text("n", "String", "v")}, 4 + 1 + 6 + 1},
		{"b", []Attribute{text("ø", "Binary.gif", "\x00\xff"), text("i", "Number", "10")}, 1 + 2 + 10 + 2 + 1 + 6 + 2},
	} {
		if got := Size([]byte(tt.body), tt.as); got != tt.want {
			t.Errorf("the size of %q with %v is %d, want %d", tt.body, tt.as, got, tt.want)
		}
	}
}

func BenchmarkAttributesMD5(b *testing.B) {
	for _, n := range []int{1, 10} {
		as := make([]Attribute, n)
		for i := range as {
			as[i] = text("attribute-"+strconv.Itoa(n-i), "String", strings.Repeat("v", 32))
		}
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if AttributesMD5(as) == "" {
					b.Fatal("no sum")
				}
			}
		})
	}
}
