package payload

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	const doc = ` {"a":{"b":[10,{"c":"x"},[]],"":1},"big":12345678901234567890.123,"esc\u0061pe":true,"dup":{"x":1},"dup":{"y":2},"n":null} `
	key := func(k string) Step { return Step{Key: k} }
	at := func(i int) Step { return Step{Index: i, IsIndex: true} }
	for _, tt := range []struct {
		path []Step
		want string // "": nothing there
	}{
		{nil, strings.TrimSpace(doc)},
		{[]Step{key("a"), key("b"), at(0)}, "10"},
		{[]Step{key("a"), key("b"), at(1), key("c")}, `"x"`},
		{[]Step{key("a"), key("b"), at(2)}, "[]"},
		{[]Step{key("a"), key("")}, "1"},
		{[]Step{key("big")}, "12345678901234567890.123"},
		{[]Step{key("escape")}, "true"},
		{[]Step{key("n")}, "null"},
		{[]Step{key("dup"), key("y")}, "2"},
		{[]Step{key("dup"), key("x")}, ""}, // the last one counts
		{[]Step{key("a"), key("b"), at(3)}, ""},
		{[]Step{key("a"), key("b"), at(-1)}, ""},
		{[]Step{key("a"), at(0)}, ""},
		{[]Step{key("a"), key("b"), key("c")}, ""},
		{[]Step{key("big"), key("x")}, ""},
		{[]Step{key("A")}, ""},
	} {
		raw, ok := Find([]byte(doc), tt.path)
		if ok != (tt.want != "") || string(raw) != tt.want {
			t.Errorf("%v: %q, %v; want %q", tt.path, raw, ok, tt.want)
		}
	}
	if raw, ok := Find([]byte(`{"a":1,}`), []Step{key("a")}); ok {
		t.Errorf("found %q in what is no JSON", raw)
	}
}

func FuzzJSON(f *testing.F) {
	for _, s := range []string{order, `[1,-0.5e+3,"\u00e9\\",{"a":[]}]`, `{"a":1,"a":2}`, "01", "-", "1.", "1e", `"\x"`, "[1,]", "nul", "\"\x01\"", "{}x", " ", "[[[["} {
		f.Add([]byte(s), "a")
	}
	f.Fuzz(func(t *testing.T, doc []byte, key string) {
		if got, want := validJSON(doc), json.Valid(doc); got != want {
			t.Fatalf("validJSON(%q) = %v", doc, got)
		}
		raw, ok := Find(doc, []Step{{Key: key}})
		var m map[string]json.RawMessage
		if json.Unmarshal(doc, &m) != nil {
			if ok {
				t.Fatalf("found %q in %q", raw, doc)
			}
			return
		}
		if want, there := m[key]; there != ok || !bytes.Equal(want, raw) {
			t.Fatalf("%q in %q: %q, want %q", key, doc, raw, want)
		}
	})
}

func TestDepthOfJSON(t *testing.T) {
	nested := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	if !validJSON(nested(maxJSONDepth)) || validJSON(nested(maxJSONDepth+2)) || validJSON(bytes.Repeat([]byte("["), 10_000_000)) {
		t.Error("the depth is not bounded where it should be")
	}
}

// BenchmarkFind looks up one member that encoding/json would have to build the whole document for.
func BenchmarkFind(b *testing.B) {
	doc := []byte(`{"orderId":7,"lines":[` + strings.Repeat(`{"sku":"A-1042","quantity":3,"price":19.99},`, 24) + `{}],"tenant":"acme"}`)
	b.Run("encodingjson", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		b.ReportAllocs()
		for b.Loop() {
			var v any
			if json.Unmarshal(doc, &v) != nil || v.(map[string]any)["tenant"] != "acme" {
				b.Fatal(v)
			}
		}
	})
	b.Run("find", func(b *testing.B) {
		path := []Step{{Key: "tenant"}}
		b.SetBytes(int64(len(doc)))
		b.ReportAllocs()
		for b.Loop() {
			if raw, ok := Find(doc, path); !ok || string(raw) != `"acme"` {
				b.Fatal(string(raw))
			}
		}
	})
}
