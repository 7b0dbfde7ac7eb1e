package sas_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"time"

	"dlq/backends/broker/sas"
)

const (
	rootKey   = "cm9vdCBrZXkgb2YgdGhlIHRlc3RzISEhISEhISEhISE="
	secondKey = "an unusual key: ünïcode, = & + and spaces, and longer than one block of the hash is, which is 64 bytes"
)

var now = time.Unix(1_800_000_000, 0)

func testKeyring() *sas.Keyring {
	return sas.NewKeyring(
		sas.Key{Name: sas.RootKeyName, Primary: sas.NewSecret(rootKey), Secondary: sas.NewSecret(secondKey), Rights: sas.Manage},
		sas.Key{Name: "Sender", Primary: sas.NewSecret("send"), Rights: sas.Send},
		sas.Key{Name: "Listener", Primary: sas.NewSecret("listen"), Rights: sas.Listen},
		sas.Key{Name: "OrdersOnly", Primary: sas.NewSecret("orders"), Rights: sas.Listen | sas.Send, Entity: "Orders"},
	)
}

func TestVerifyAcceptsWhatSDKsSign(t *testing.T) {
	k := testKeyring()
	audiences := map[string]string{
		"amqps://localhost:5671/Orders":                                  "orders",
		"amqp://localhost:5672/Orders/$management":                       "orders",
		"sb://localhost/Topic/Subscriptions/S~1(x)*'!/$DeadLetterQueue/": "topic/subscriptions/s~1(x)*'!/$deadletterqueue",
		"https://ns.servicebus.windows.net/orders?api-version=2021-05":   "orders",
		"sb://ns.servicebus.windows.net/":                                "",
		"ns.servicebus.windows.net":                                      "",
	}
	for _, s := range signers() {
		for audience, resource := range audiences {
			for _, key := range []string{rootKey, secondKey} {
				expires := now.Add(time.Hour)
				token := s.token(audience, sas.RootKeyName, key, expires.Unix())
				got, err := k.Verify(token, now)
				want := sas.Claim{KeyName: sas.RootKeyName, Resource: resource, Rights: sas.Manage, Expires: expires}
				if err != nil || got != want {
					t.Errorf("%s: Verify(%s) = %+v, %v, want %+v", s.name, token, got, err, want)
				}
			}
		}
	}
}

// A vector made with openssl dgst -sha256 -hmac, so that not all of the tests rest on Go.
func TestVerifyKnownVector(t *testing.T) {
	const token = "SharedAccessSignature sr=amqps%3a%2f%2flocalhost%2forders&sig=kQLjqQp2rtISeLRsKpru5lpcEJngE4lyfBLuw8TKjX4%3D&se=1800003600&skn=RootManageSharedAccessKey"
	if _, err := testKeyring().Verify(token, now); err != nil {
		t.Errorf("Verify: %v", err)
	}
}

func TestSignIsVerified(t *testing.T) {
	c, err := testKeyring().Verify(sas.Sign("amqps://localhost/a b+c", "Sender", "send", now.Add(time.Second)), now)
	if want := (sas.Claim{KeyName: "Sender", Resource: "a b+c", Rights: sas.Send, Expires: now.Add(time.Second)}); err != nil || c != want {
		t.Errorf("Verify(Sign()) = %+v, %v, want %+v", c, err, want)
	}
}

func TestVerifyRefuses(t *testing.T) {
	in := func(d time.Duration) int64 { return now.Add(d).Unix() }
	js := signers()[1].token
	good := js("sb://localhost/orders", "Sender", "send", in(time.Hour))
	tests := []struct {
		name, token string
		want        error
	}{
		{"the wrong key", js("sb://localhost/orders", "Sender", "listen", in(time.Hour)), sas.ErrSignature},
		{"the key decoded from base64", js("sb://localhost/orders", sas.RootKeyName, "root key of the tests!!!!!!!!!!!!", in(time.Hour)), sas.ErrSignature},
		{"no key", js("sb://localhost/orders", "Sender", "", in(time.Hour)), sas.ErrSignature},
		{"an unknown key", js("sb://localhost/orders", "Nobody", "send", in(time.Hour)), sas.ErrUnknownKey},
		{"a name in other case", js("sb://localhost/orders", "sender", "send", in(time.Hour)), sas.ErrUnknownKey},
		{"a key of another entity", js("sb://localhost/payments", "OrdersOnly", "orders", in(time.Hour)), sas.ErrUnknownKey},
		{"expired now", js("sb://localhost/orders", "Sender", "send", in(0)), sas.ErrExpired},
		{"expired, wrongly signed", js("sb://localhost/orders", "Sender", "listen", in(-time.Hour)), sas.ErrSignature},
		{"nothing", "", sas.ErrMalformed},
		{"no scheme", strings.TrimPrefix(good, "SharedAccessSignature "), sas.ErrMalformed},
		{"a field twice", good + "&skn=RootManageSharedAccessKey", sas.ErrMalformed},
		{"an unknown field", good + "&x=1", sas.ErrMalformed},
		{"an empty field", strings.Replace(good, "skn=Sender", "skn=", 1), sas.ErrMalformed},
		{"a field missing", strings.Replace(good, "&skn=Sender", "", 1), sas.ErrMalformed},
		{"a signed expiry", strings.Replace(good, "&se=", "&se=+", 1), sas.ErrMalformed},
		{"an endless expiry", strings.Replace(good, "&se=", "&se=99999", 1), sas.ErrMalformed},
		{"a broken escape", strings.Replace(good, "skn=Sender", "skn=%zz", 1), sas.ErrMalformed},
		{"a resource too long", js("sb://h/"+strings.Repeat("a/", 600), "Sender", "send", in(time.Hour)), sas.ErrMalformed},
		{"too long", good + "&x=" + strings.Repeat("x", 1<<20), sas.ErrMalformed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, err := testKeyring().Verify(test.token, now)
			if !errors.Is(err, test.want) || c != (sas.Claim{}) {
				t.Errorf("Verify(%q) = %+v, %v, want %v", test.token[:min(len(test.token), 300)], c, err, test.want)
			}
		})
	}
}

func TestExpiredErrorTellsTheTimes(t *testing.T) {
	_, err := testKeyring().Verify(sas.Sign("sb://h/orders", "Sender", "send", now), now.Add(time.Minute))
	var expired *sas.ExpiredError
	if !errors.As(err, &expired) || !expired.Expires.Equal(now) || !expired.Now.Equal(now.Add(time.Minute)) {
		t.Errorf("Verify of an expired token: %v", err)
	}
}

// TestTamperedTokens changes a valid token in one bit, in a field or in its time, 10,000 times.
// Only what decodes to the very same four values may pass: %2B and %2b are one.
func TestTamperedTokens(t *testing.T) {
	k, random := testKeyring(), rand.New(rand.NewPCG(1, 2))
	names := []string{sas.RootKeyName, "Sender", "Listener", "OrdersOnly"}
	keys := []string{rootKey, "send", "listen", "orders"}
	for tampered, same := 0, 0; tampered < 10_000; {
		s := signers()[random.IntN(len(signers()))]
		key, expires := random.IntN(len(keys)), now.Unix()+1+random.Int64N(7200)
		token := s.token("amqps://localhost:5672/orders/$management", names[key], keys[key], expires)
		if _, err := k.Verify(token, now); err != nil {
			t.Fatalf("%s: the token is not valid before it is changed: %v", s.name, err)
		}
		changed := tamper(random, token, expires)
		if equalFields(token, changed) {
			if same++; same > 1_000 {
				t.Fatal("too few changes change anything")
			}
			continue
		}
		tampered++
		if c, err := k.Verify(changed, now); err == nil {
			t.Fatalf("%s: accepted as %+v:\n%s\nmade of\n%s", s.name, c, changed, token)
		}
	}
}

func tamper(random *rand.Rand, token string, expires int64) string {
	switch random.IntN(4) {
	case 0:
		return strings.Replace(token, fmt.Sprintf("se=%d", expires), fmt.Sprintf("se=%d", expires+1+random.Int64N(1e6)), 1)
	case 1: // another resource
		return strings.Replace(token, "orders", []string{"order", "orders2", "", "payments", "*"}[random.IntN(5)], 1)
	case 2: // a character more, less or another
		i := random.IntN(len(token))
		return token[:i] + string(rune(' '+random.IntN(95))) + token[i+random.IntN(2):]
	}
	b := []byte(token)
	b[random.IntN(len(b))] ^= 1 << random.IntN(8)
	return string(b)
}

// equalFields reports whether two tokens say the same in all that matters: sr as it is written,
// which is what is signed, and the other fields decoded.
func equalFields(a, b string) bool {
	fields := func(s string) map[string]string {
		m := map[string]string{}
		for pair := range strings.SplitSeq(strings.TrimPrefix(s, "SharedAccessSignature "), "&") {
			name, value, _ := strings.Cut(pair, "=")
			if decoded, err := url.QueryUnescape(value); err == nil && name != "sr" {
				value = decoded
			}
			m[name] = value
		}
		return m
	}
	return fmt.Sprint(fields(a)) == fmt.Sprint(fields(b)) && strings.HasPrefix(b, "SharedAccessSignature ")
}

func TestRightsAndScopes(t *testing.T) {
	const inf = time.Hour
	type scope struct{ key, secret, audience string }
	none, all, listen, send, both := sas.Rights(0), sas.Manage, sas.Listen, sas.Send, sas.Listen|sas.Send
	tests := []struct {
		scope
		want map[string]sas.Rights // by entity
	}{
		{scope{sas.RootKeyName, rootKey, "sb://h/"}, map[string]sas.Rights{"": all, "orders": all, "t/Subscriptions/s/$DeadLetterQueue": all}},
		{scope{sas.RootKeyName, rootKey, "sb://h/orders"}, map[string]sas.Rights{
			"": none, "Orders": all, "orders/$DeadLetterQueue": all, "orders/$management": all, "orders2": none, "order": none, "orders-x": none,
		}},
		{scope{sas.RootKeyName, rootKey, "sb://h/T"}, map[string]sas.Rights{"t": all, "t/subscriptions/s": all, "tt/subscriptions/s": none}},
		{scope{sas.RootKeyName, rootKey, "sb://h/t/subscriptions/s"}, map[string]sas.Rights{
			"t": none, "t/subscriptions/s": all, "T/Subscriptions/S/$DeadLetterQueue": all, "t/subscriptions/s2": none,
		}},
		{scope{"Sender", "send", "sb://h"}, map[string]sas.Rights{"orders": send, "": send}},
		{scope{"Listener", "listen", "sb://h"}, map[string]sas.Rights{"orders": listen, "": listen}},
		// The key of an entity is good for the entity, whatever the token says.
		{scope{"OrdersOnly", "orders", "sb://h/"}, map[string]sas.Rights{"": none, "orders": both, "orders/x": both, "payments": none}},
		{scope{"OrdersOnly", "orders", "sb://h/orders/x"}, map[string]sas.Rights{"": none, "orders": none, "orders/x": both}},
	}
	for _, test := range tests {
		c, err := testKeyring().Verify(sas.Sign(test.audience, test.key, test.secret, now.Add(inf)), now)
		if err != nil {
			t.Errorf("%s at %s: %v", test.key, test.audience, err)
			continue
		}
		for entity, rights := range test.want {
			for _, r := range []sas.Rights{sas.Listen, sas.Send, sas.Manage} {
				if got, want := c.Allows(entity, r), rights.Has(r); got != want {
					t.Errorf("%s at %s: Allows(%q, %v) = %v, want %v", test.key, test.audience, entity, r, got, want)
				}
			}
		}
	}
}

func TestLookupFindsKeysOfEntities(t *testing.T) {
	k := testKeyring()
	k.SetLookup(func(entity, name string) (sas.Key, bool) {
		switch {
		case entity == "topic" && name == "Rule":
			return sas.Key{Primary: sas.NewSecret("of the topic"), Rights: sas.Listen}, true
		case entity == "" && name == "Rule": // a token for the namespace: any entity will do
			return sas.Key{Primary: sas.NewSecret("of the topic"), Rights: sas.Listen, Entity: "Topic"}, true
		case entity == "" && name == "NoEntity": // may not become a key of the namespace
			return sas.Key{Primary: sas.NewSecret("x"), Rights: sas.Manage}, true
		}
		return sas.Key{}, false
	})
	for audience, resource := range map[string]string{"sb://h/topic": "topic", "sb://h/": "topic", "sb://h/Topic/Subscriptions/s": "topic/subscriptions/s"} {
		c, err := k.Verify(sas.Sign(audience, "Rule", "of the topic", now.Add(1e9)), now)
		if err != nil || c.Resource != resource || c.Rights != sas.Listen || c.KeyName != "Rule" {
			t.Errorf("Verify for %s: %+v, %v, want resource %q", audience, c, err, resource)
		}
	}
	if _, err := k.Verify(sas.Sign("sb://h/orders", "Rule", "of the topic", now.Add(1e9)), now); !errors.Is(err, sas.ErrUnknownKey) &&
		!errors.Is(err, sas.ErrSignature) {
		t.Errorf("the key of a topic is good for a queue: %v", err)
	}
	if _, err := k.Verify(sas.Sign("sb://h/", "NoEntity", "x", now.Add(1e9)), now); !errors.Is(err, sas.ErrUnknownKey) {
		t.Errorf("a rule of no entity is good for the namespace: %v", err)
	}
}

func TestResource(t *testing.T) {
	for audience, want := range map[string]string{
		"":                                      "",
		"/":                                     "",
		"orders":                                "orders",
		"/Orders/":                              "orders",
		"amqps://h/orders":                      "orders",
		"amqp://h:5672//orders//x/":             "orders/x",
		"sb://h":                                "",
		"sb://[::1]:5672/q":                     "q",
		"[::1]:5672/q":                          "q",
		"::1":                                   "",
		"127.0.0.1:5300/q":                      "q",
		"localhost/q":                           "q",
		"dlq/q":                                 "dlq/q",
		"http://h/t/Subscriptions/s?x=y":        "t/subscriptions/s",
		"sb://h/q/$management":                  "q",
		"sb://h/$management":                    "",
		"sb://h/q/%24management":                "q",
		"sb://h/q/$management/x":                "q/$management/x",
		"sb://h/x$management":                   "x$management",
		"https://h/$Resources/Queues?$skip=100": "$resources/queues",
		"sb://h/100%":                           "100%",
	} {
		if got := sas.Resource(audience); got != want {
			t.Errorf("Resource(%q) = %q, want %q", audience, got, want)
		}
	}
}

func TestPlain(t *testing.T) {
	k := testKeyring()
	for _, test := range []struct {
		user, password string
		want           sas.Claim
		err            error
	}{
		{sas.RootKeyName, rootKey, sas.Claim{KeyName: sas.RootKeyName, Rights: sas.Manage}, nil},
		{sas.RootKeyName, secondKey, sas.Claim{KeyName: sas.RootKeyName, Rights: sas.Manage}, nil},
		{"OrdersOnly", "orders", sas.Claim{KeyName: "OrdersOnly", Resource: "orders", Rights: sas.Send | sas.Listen}, nil},
		{"Sender", "", sas.Claim{}, sas.ErrSignature}, // has no secondary key
		{"Sender", "sen", sas.Claim{}, sas.ErrSignature},
		{"Nobody", "send", sas.Claim{}, sas.ErrUnknownKey},
	} {
		if got, err := k.Plain(test.user, test.password); got != test.want || !errors.Is(err, test.err) {
			t.Errorf("Plain(%q, %q) = %+v, %v, want %+v, %v", test.user, test.password, got, err, test.want, test.err)
		}
	}
}

func TestParseRights(t *testing.T) {
	for _, r := range []sas.Rights{sas.Listen, sas.Send, sas.Listen | sas.Send, sas.Manage} {
		if got, err := sas.ParseRights(r.Names()...); got != r || err != nil {
			t.Errorf("ParseRights(%q) = %v, %v", r.Names(), got, err)
		}
	}
	if _, err := sas.ParseRights("Send", "Own"); err == nil {
		t.Error("ParseRights took a right that does not exist")
	}
}

func FuzzVerify(f *testing.F) {
	for _, s := range signers() {
		f.Add(s.token("amqps://localhost:5672/orders", "Sender", "send", now.Unix()+60))
	}
	f.Add("SharedAccessSignature sr=%&sig=&se=99999999999&skn=Sender")
	k := testKeyring()
	f.Fuzz(func(t *testing.T, token string) {
		c, err := k.Verify(token, now)
		if err != nil {
			if c != (sas.Claim{}) {
				t.Fatalf("refused, and yet %+v", c)
			}
			return
		}
		// Whoever found a valid token either has one of the corpus, or broke the HMAC.
		if c.KeyName != "Sender" || c.Expires.Unix() != now.Unix()+60 || c.Resource != "orders" {
			t.Fatalf("accepted as %+v: %q", c, token)
		}
	})
}
