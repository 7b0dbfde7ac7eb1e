package namespace

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestParseJSON(t *testing.T) {
	n, err := parseJSON([]byte("\ufeff// first\n{ /* a */ \"a\": [1, -2.5e3, true, null, \"x\\u00e9//\",], // last\n}\n/* end */"))
	if err != nil {
		t.Fatal(err)
	}
	items := n.members[0].value.items
	var got []string
	for _, i := range items {
		got = append(got, string(i.kind)+" "+i.text)
	}
	want := "a number 1|a number -2.5e3|true or false true|null null|text xé//"
	if strings.Join(got, "|") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestParseJSONRefuses(t *testing.T) {
	for src, want := range map[string]string{
		"":                           "line 1, column 1: the file ends",
		"{":                          "line 1, column 2: want a name",
		"{\"a\" 1}":                  "line 1, column 6: want a colon",
		"{\"a\": 1 \"b\": 2}":        "line 1, column 9: want a comma or }",
		"{\n\"a\": 1,\n\"A\": 2}":    "line 3, column 1: \"A\" stands here twice",
		"[1 2]":                      "line 1, column 4: want a comma or ]",
		"[,]":                        "line 1, column 2: want a value here",
		"{} x":                       "line 1, column 4: there is more",
		"\"abc":                      "line 1, column 1: the text has no end",
		"\"a\nb\"":                   "line 1, column 1: text with a line break",
		"/* a":                       "line 1, column 1: the comment has no end",
		"/*/":                        "line 1, column 1: the comment has no end",
		"yes":                        "line 1, column 1: \"yes\" is no value",
		"[1, 0x5]":                   "line 1, column 5: \"0x5\" is no value",
		"\xff":                       "not UTF-8",
		strings.Repeat("[", 100):     "line 1, column 33: objects and lists are nested",
		"{\"a\": {\"b\": [1,\n 2, }": "line 2, column 5: want a value here",
	} {
		_, err := parseJSON([]byte(src))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("parseJSON(%.20q) = %v, want …%s…", src, err, want)
		}
	}
}

// FuzzParseConfig: what is not refused is read without a panic, and JSON that the standard library
// reads is read here too.
func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(inNamespace(`"Queues": [{"Name": "q", "Properties": {"LockDuration": "PT1M"}}]`)))
	f.Add([]byte("// c\n{\"a\": [1, /* c */ null, \"\\u00e9\",],}"))
	f.Fuzz(func(t *testing.T, src []byte) {
		_, err := parseJSON(src)
		var strict any
		if json.Unmarshal(src, &strict) == nil && err != nil {
			excused := []string{"stands here twice", "nested more than", "not UTF-8"}
			for _, e := range excused {
				if strings.Contains(err.Error(), e) {
					return
				}
			}
			t.Errorf("%q is JSON: %v", src, err)
		}
		tr := Tiers()[0]
		if _, err := ParseConfig(src, tr); err != nil {
			var where *SyntaxError
			if errors.As(err, &where) && (where.Line < 1 || where.Column < 1) {
				t.Errorf("%v is nowhere", err)
			}
		}
	})
}
