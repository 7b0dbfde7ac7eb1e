package sqsd_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"dlq/backends/broker/sqsd"
)

// TestGolden plays the exchanges of testdata/sqs against a new server for each file, one after the
// other, and compares every answer to the byte.
//
// Exchanges begin with "###" and what they are about. The request stands before the answer, and
// both are written as on the wire, but for the lengths of bodies and headers that do not matter.
// In answers {uuid} stands for an id, {handle} for a receipt handle and {resource} for the part of a
// queue's URL by which YMQ tells it from an earlier one of its name.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("../../../testdata/sqs/*.http")
	if err != nil || len(files) == 0 {
		t.Fatalf("no exchanges: %v", err)
	}
	exchanges := 0
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var o sqsd.Options
			if strings.HasPrefix(filepath.Base(file), "ymq") {
				o.Flavor = sqsd.YMQ
			}
			x := openExam(t, "json", o)
			for _, part := range strings.Split("\n"+string(text), "\n### ")[1:] {
				exchanges++
				title, rest, _ := strings.Cut(part, "\n")
				x.play(title, rest)
			}
		})
	}
	t.Logf("%d exchanges in %d files", exchanges, len(files))
}

// placeholders are what stands for values that differ from run to run.
var placeholders = strings.NewReplacer(
	`\{uuid\}`, `[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`, `\{handle\}`, `[A-Za-z0-9+/=]+`, `\{resource\}`, `dj6[0-9a-v]{17}`,
)

// play sends a request and compares the answer.
func (x *exam) play(title, text string) {
	x.Helper()
	request, answer, found := strings.Cut(text, "\nHTTP/1.1 ")
	if !found {
		x.Fatalf("%s: no answer", title)
	}
	first, header, body := splitMessage(request)
	method, path, _ := strings.Cut(strings.TrimSuffix(first, " HTTP/1.1"), " ")
	got := x.raw(method, path, header, body)
	status, wanted, want := splitMessage(answer)
	if s := strings.TrimSpace(http.StatusText(got.status)); !strings.HasSuffix(status, s) || status[:3] != itoa(got.status) {
		x.Errorf("%s: status %d, want %s", title, got.status, status)
	}
	for name, value := range wanted {
		if have := got.header.Get(name); !matches(value, have) {
			x.Errorf("%s: %s: %s, want %s", title, name, have, value)
		}
	}
	if !matches(want, strings.TrimSuffix(string(got.body), "\n")) {
		x.Errorf("%s:\n%s\nwant\n%s", title, got.body, want)
	}
}

func itoa(status int) string {
	return string([]byte{'0' + byte(status/100), '0' + byte(status/10%10), '0' + byte(status%10)})
}

func matches(pattern, s string) bool {
	return regexp.MustCompile("^" + placeholders.Replace(regexp.QuoteMeta(pattern)) + "$").MatchString(s)
}

// splitMessage takes a message of HTTP apart.
func splitMessage(text string) (first string, header map[string]string, body string) {
	head, body, _ := strings.Cut(strings.TrimSpace(text), "\n\n")
	lines := strings.Split(head, "\n")
	header = map[string]string{}
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ": ")
		header[name] = value
	}
	return lines[0], header, body
}
