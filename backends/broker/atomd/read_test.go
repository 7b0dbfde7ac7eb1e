package atomd

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestForms reads one description in the forms that XML writers choose.
func TestForms(t *testing.T) {
	const space = "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"
	const inner = `<MaxDeliveryCount>7</MaxDeliveryCount><UserMetadata>a &lt; b</UserMetadata>`
	for name, body := range map[string]string{
		"as it is":      queueBody(inner),
		"byte order":    "\xef\xbb\xbf" + `<?xml version="1.0" encoding="utf-8"?>` + queueBody(inner),
		"CDATA":         queueBody(`<MaxDeliveryCount><![CDATA[7]]></MaxDeliveryCount><UserMetadata><![CDATA[a < ]]>b</UserMetadata>`),
		"white space":   "\n" + strings.ReplaceAll(queueBody("\n\t<MaxDeliveryCount>\n7 </MaxDeliveryCount><UserMetadata>a &lt; b</UserMetadata>\n"), "><", ">\n <"),
		"comments":      queueBody(`<!-- seven --><MaxDeliveryCount>7<!-- really --></MaxDeliveryCount><UserMetadata>a &#x3c; b</UserMetadata>`),
		"other order":   queueBody(`<UserMetadata>a &lt; b</UserMetadata><MaxDeliveryCount>7</MaxDeliveryCount>`),
		"unknown":       queueBody(`<FromTheFuture><MaxDeliveryCount>8</MaxDeliveryCount></FromTheFuture>` + inner),
		"nil":           queueBody(inner + `<LockDuration i:nil="true"/><ForwardTo i:nil="true"/><MaxSizeInMegabytes i:nil="true"/>`),
		"prefixes":      `<a:entry xmlns:a="http://www.w3.org/2005/Atom"><a:content type="application/xml"><b:QueueDescription xmlns:b="` + space + `"><b:MaxDeliveryCount>7</b:MaxDeliveryCount><b:UserMetadata>a &lt; b</b:UserMetadata></b:QueueDescription></a:content></a:entry>`,
		"more in entry": strings.Replace(queueBody(inner), "<content", `<title type="text">orders</title><updated>2024-01-01T00:00:00Z</updated><author><name/></author><id/><content`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, nil)
			a := f.must("PUT", "/orders", body)
			for _, want := range []string{"<MaxDeliveryCount>7<", "<UserMetadata>a &lt; b<", "<LockDuration>PT1M<", "<MaxSizeInMegabytes>1024<"} {
				if !strings.Contains(a.body, want) {
					t.Errorf("the answer has no %q: %s", want, a.body)
				}
			}
		})
	}
}

// TestBombs refuses bodies that are made to hurt, and answers afterwards.
func TestBombs(t *testing.T) {
	f := newFixture(t, nil)
	for name, tt := range map[string]struct {
		body   string
		status int
	}{
		"too deep":        {queueBody(strings.Repeat("<a>", 61) + strings.Repeat("</a>", 61)), http.StatusBadRequest},
		"too many":        {queueBody(strings.Repeat("<a/>", 5000)), http.StatusBadRequest},
		"too long":        {queueBody("<UserMetadata>" + strings.Repeat("m", 1<<20) + "</UserMetadata>"), http.StatusRequestEntityTooLarge},
		"entities":        {`<!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;">]>` + queueBody("<UserMetadata>&c;</UserMetadata>"), http.StatusBadRequest},
		"a file":          {`<!DOCTYPE a [<!ENTITY f SYSTEM "file:///etc/passwd">]>` + queueBody("<UserMetadata>&f;</UserMetadata>"), http.StatusBadRequest},
		"unknown entity":  {queueBody("<UserMetadata>&nbsp;</UserMetadata>"), http.StatusBadRequest},
		"not closed":      {strings.TrimSuffix(queueBody(""), "</entry>"), http.StatusBadRequest},
		"two roots":       {queueBody("") + queueBody(""), http.StatusBadRequest},
		"other encoding":  {`<?xml version="1.0" encoding="utf-7"?>` + queueBody(""), http.StatusBadRequest},
		"no UTF-8":        {queueBody("<UserMetadata>\xff</UserMetadata>"), http.StatusBadRequest},
		"null":            {queueBody("<UserMetadata>\x00</UserMetadata>"), http.StatusBadRequest},
		"many attributes": {queueBody("<UserMetadata" + manyAttributes(30_000) + ">m</UserMetadata>"), http.StatusCreated},
		"many keys":       {queueBody("<AuthorizationRules>" + manyKeys(13) + "</AuthorizationRules>"), http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			f.do("DELETE", "/bomb", "")
			if a := f.do("PUT", "/bomb", tt.body); a.status != tt.status {
				t.Errorf("got %d %.300s, want %d", a.status, a.body, tt.status)
			}
		})
	}
	f.must("GET", "/$Resources/queues", "")
}

func manyAttributes(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, ` a%d="v"`, i)
	}
	return b.String()
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "<AuthorizationRule><Rights><AccessRights>Send</AccessRights></Rights><KeyName>k%d</KeyName></AuthorizationRule>", i)
	}
	return b.String()
}

// TestEscape writes every text so that a reader gets it back, or as near as XML can come.
func TestEscape(t *testing.T) {
	for text, want := range map[string]string{
		"it's": "it's", `<&>"`: "&lt;&amp;&gt;&quot;", "a\tb\r\n": "a&#9;b&#13;&#10;", "\x00\x1b": "\ufffd\ufffd", "\xff": "\ufffd", "\uffff": "\ufffd", "ж\U0001f40c": "ж\U0001f40c",
	} {
		w := newWriter()
		w.text("a", text)
		if got := string(w.bytes()); got != "<a>"+want+"</a>" {
			t.Errorf("%q is written %s, want %s", text, got, want)
		}
	}
}

// FuzzAtom sends any body to any path. Whatever is asked, the answer is XML that can be read, no
// failure of the server, and what a PUT answered can be got and put again.
func FuzzAtom(f *testing.F) {
	methods := []string{"GET", "PUT", "DELETE", "POST", "HEAD"}
	for _, path := range []string{"/orders", "/$Resources/queues?$skip=1&$top=1", "/events/Subscriptions/all/Rules/r", "/events/Subscriptions/s", "//a%2F/b", "/$namespaceinfo", "/?api-version=%00"} {
		for m := range methods {
			f.Add(byte(m), path, queueBody(everyQueue), false)
			f.Add(byte(m), path, subscriptionBody(everySubscription), true)
			f.Add(byte(m), path, ruleBody(everyRule), m%2 == 0)
			f.Add(byte(m), path, topicBody("<DefaultMessageTimeToLive>P1D</DefaultMessageTimeToLive>"), m%2 == 0)
		}
	}
	f.Fuzz(func(t *testing.T, m byte, path, body string, update bool) {
		if _, err := http.NewRequest("GET", "http://contoso.example"+path, nil); err != nil || !strings.HasPrefix(path, "/") || strings.ContainsAny(path, " \t\r\n") {
			return // no client could ask it
		}
		s := newFixture(t, nil)
		s.orders()
		headers := []string{"If-Match", "*"}
		if !update {
			headers = nil
		}
		method := methods[int(m)%len(methods)]
		a := s.do(method, path, body, headers...)
		if a.status >= 500 {
			t.Fatalf("%s %q: %d %s", method, path, a.status, a.body)
		}
		if method == "HEAD" || a.body == "" || strings.HasPrefix(a.header.Get("Content-Type"), "text/plain") {
			return
		}
		if err := xml.Unmarshal([]byte(a.body), new(struct{})); err != nil {
			t.Fatalf("%s %q: the answer is no XML: %v: %s", method, path, err, a.body)
		}
		if method != "PUT" || a.status >= 400 || strings.Contains(path, "ules") {
			return
		}
		if got := s.must("GET", path, ""); got.body != a.body {
			t.Errorf("GET %q:\n%s\nafter PUT:\n%s", path, got.body, a.body)
		}
		again := s.must("PUT", path, a.body, "If-Match", "*")
		if again.body != a.body {
			t.Errorf("PUT %q again:\n%s\nfirst:\n%s", path, again.body, a.body)
		}
	})
}
