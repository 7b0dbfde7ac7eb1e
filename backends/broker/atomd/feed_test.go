package atomd

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"dlq/backends/broker"
)

// feedXML is what clients read of a feed.
type feedXML struct {
	XMLName xml.Name `xml:"http://www.w3.org/2005/Atom feed"`
	ID      string   `xml:"id"`
	Title   string   `xml:"title"`
	Links   []struct {
		Rel  string `xml:"rel,attr"`
		Href string `xml:"href,attr"`
	} `xml:"link"`
	Entries []struct {
		ID    string `xml:"id"`
		Title string `xml:"title"`
	} `xml:"entry"`
}

func (f *fixture) feed(path string) feedXML {
	f.tb.Helper()
	var feed feedXML
	if err := xml.Unmarshal([]byte(f.must("GET", path, "").body), &feed); err != nil {
		f.tb.Fatal(err)
	}
	return feed
}

// next returns the path of the next page, "" if there is none.
func (f *fixture) next(feed feedXML) string {
	f.tb.Helper()
	if len(feed.Links) == 0 || feed.Links[0].Rel != "self" {
		f.tb.Fatalf("the first link is not to the page itself: %v", feed.Links)
	}
	if len(feed.Links) == 1 {
		return ""
	}
	u, err := url.Parse(feed.Links[1].Href)
	if err != nil || feed.Links[1].Rel != "next" || !u.IsAbs() || !u.Query().Has("$skip") || !u.Query().Has("$top") {
		f.tb.Fatalf("the second link is to no next page: %v, %v", feed.Links, err)
	}
	return u.RequestURI()
}

// TestPages follows the links of every feed, with the default size and others.
func TestPages(t *testing.T) {
	const n = 230
	f := newFixture(t, nil)
	f.orders()
	for i := range n {
		name := fmt.Sprintf("%03d", i)
		for _, e := range []struct {
			name string
			kind broker.Kind
		}{{"q" + name, broker.Queue}, {"t" + name, broker.Topic}, {"events/Subscriptions/s" + name, broker.Subscription}} {
			if err := f.engine.Create(e.name, e.kind, broker.Defaults(e.kind, broker.ServiceBus)); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.engine.AddRule("events/Subscriptions/all", broker.Rule{Name: "r" + name}); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		path, title string
		more        []string // beside the n
	}{
		{"/$Resources/queues", "Queues", []string{"orders"}},
		{"/%24resources/Topics/", "Topics", []string{"events"}},
		{"/EVENTS/subscriptions/", "Subscriptions", []string{"all"}},
		{"/events/Subscriptions/ALL/Rules/", "Rules", []string{"$Default", "big"}},
	} {
		for query, want := range map[string]int{
			"": 100, "?": 100, "?&$top=": 100, "?&$top=20&api-version=2024-05": 20, "?%24top=100&$skip=0": 100, "?$top=1000": 100,
		} {
			t.Run(tt.title+query, func(t *testing.T) {
				var names []string
				for path, pages := tt.path+query, 0; path != ""; pages++ {
					feed := f.feed(path)
					if feed.Title != tt.title || pages > n {
						t.Fatalf("page %d is called %s", pages, feed.Title)
					}
					for _, e := range feed.Entries {
						names = append(names, e.Title)
					}
					path = f.next(feed)
					if path != "" && len(feed.Entries) != want {
						t.Fatalf("page %d has %d entries, want %d", pages, len(feed.Entries), want)
					}
					if path != "" && strings.Contains(query, "api-version") && !strings.Contains(path, "api-version=2024-05") {
						t.Fatalf("the next page is of another version: %s", path)
					}
				}
				slices.Sort(names)
				if total := len(names); total != n+len(tt.more) || len(slices.Compact(names)) != total {
					t.Errorf("there are %d entries, want %d, each once", total, n+len(tt.more))
				}
				for _, name := range tt.more {
					if !slices.Contains(names, name) {
						t.Errorf("%s is not listed", name)
					}
				}
			})
		}
		for _, query := range []string{"?$skip=232", "?$skip=1000000", "?$skip=9223372036854775807", "?$top=0"} {
			if feed := f.feed(tt.path + query); len(feed.Entries) != 0 || f.next(feed) != "" {
				t.Errorf("%s%s has %d entries and the next page %q", tt.path, query, len(feed.Entries), f.next(feed))
			}
		}
	}
}

// TestIDs holds the ids of entries to the form that a client takes names from.
func TestIDs(t *testing.T) {
	f := newFixture(t, nil)
	f.orders()
	f.must("PUT", "/team/Orders", queueBody(""))
	for path, want := range map[string]string{
		"/$Resources/queues?api-version=2021-05&$skip=1":      "http://contoso.example/team/Orders?api-version=2021-05",
		"/$Resources/topics?api-version=2021-05":              "http://contoso.example/events?api-version=2021-05",
		"/events/subscriptions?api-version=2021-05":           "http://contoso.example/events/Subscriptions/all?api-version=2021-05",
		"/events/subscriptions/all/rules?api-version=2021-05": "http://contoso.example/events/Subscriptions/all/Rules/$Default?api-version=2021-05",
	} {
		if got := f.feed(path).Entries[0].ID; got != want {
			t.Errorf("%s has the id %s, want %s", path, got, want)
		}
	}
}

// TestQueuesOfSQS keeps what another dialect has made out of the API.
func TestQueuesOfSQS(t *testing.T) {
	f := newFixture(t, nil)
	if err := f.engine.Create("foreign", broker.Queue, broker.Defaults(broker.Queue, broker.SQS)); err != nil {
		t.Fatal(err)
	}
	if feed := f.feed("/$Resources/queues"); len(feed.Entries) != 0 {
		t.Errorf("it is listed: %v", feed.Entries)
	}
	for method, want := range map[string]int{"GET": http.StatusNotFound, "DELETE": http.StatusNotFound, "PUT": http.StatusConflict} {
		if a := f.do(method, "/foreign", queueBody("")); a.status != want {
			t.Errorf("%s: %d %s, want %d", method, a.status, a.body, want)
		}
	}
}

// BenchmarkPage lists one page out of many queues.
func BenchmarkPage(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			f := newFixture(b, nil)
			for i := range n {
				if err := f.engine.Create(fmt.Sprintf("q%05d", i), broker.Queue, broker.Defaults(broker.Queue, broker.ServiceBus)); err != nil {
					b.Fatal(err)
				}
			}
			path := fmt.Sprintf("/$Resources/queues?$skip=%d", n-pageSize)
			b.ReportAllocs()
			for b.Loop() {
				f.must("GET", path, "")
			}
		})
	}
}
