package atomd

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"dlq/backends/broker"
	"dlq/backends/broker/sas"
)

// Keys of the tests.
const (
	rootKey, listenKey, topicKey = "root-secret", "listen-secret", "topic-secret"
)

// guarded is a fixture that verifies tokens. The authorization rules of entities count.
func guarded(t *testing.T) *fixture {
	t.Helper()
	keyring := sas.NewKeyring(
		sas.Key{Name: "Root", Primary: sas.NewSecret(rootKey), Rights: sas.Manage},
		sas.Key{Name: "Listen", Primary: sas.NewSecret(listenKey), Rights: sas.Listen},
		sas.Key{Name: "Topic", Primary: sas.NewSecret(topicKey), Rights: sas.Manage, Entity: "events"},
	)
	var f *fixture
	f = newFixture(t, func(o *Options) {
		o.Gate = &sas.Gate{Mode: sas.Keys, Keyring: keyring, Now: func() time.Time { return f.now }}
	})
	f.engineOrders()
	return f
}

// engineOrders makes the entities that orders makes, without a request.
func (f *fixture) engineOrders() {
	f.tb.Helper()
	for _, e := range []struct {
		name string
		kind broker.Kind
	}{{"orders", broker.Queue}, {"events", broker.Topic}, {"events/Subscriptions/all", broker.Subscription}} {
		if err := f.engine.Create(e.name, e.kind, broker.Defaults(e.kind, broker.ServiceBus)); err != nil {
			f.tb.Fatal(err)
		}
	}
}

func (f *fixture) token(resource, name, key string) string {
	return sas.Sign("https://contoso.example/"+resource, name, key, f.now.Add(time.Hour))
}

// TestRights holds who may do what against the service, which words its refusals by operation.
func TestRights(t *testing.T) {
	for _, tt := range []struct {
		name, method, path, key string
		status                  int
		text                    string
	}{
		{"root reads", "GET", "/orders", "Root", 200, ""},
		{"root lists", "GET", "/$Resources/queues", "Root", 200, ""},
		{"root makes", "PUT", "/new", "Root", 201, ""},
		{"root deletes", "DELETE", "/orders", "Root", 200, ""},
		{"root reads rules", "GET", "/events/Subscriptions/all/Rules", "Root", 200, ""},

		{"no key", "GET", "/orders", "", 401, "MissingToken: The authorization header was not found."},
		{"no key, health", "GET", "/health", "", 200, ""},
		{"wrong key", "GET", "/orders", "Wrong", 401, "InvalidSignature: The token has an invalid signature"},
		{"old token", "GET", "/orders", "Old", 401, "ExpiredToken: The token is expired. Expiration time: "},
		{"no token", "GET", "/orders", "Junk", 401, "401"},

		{"listener reads a queue", "GET", "/orders", "Listen", 401, ">Manage,EntityRead claims required for this operation."},
		{"listener reads a topic", "GET", "/events", "Listen", 401, ">Manage,EntityRead claims required for this operation."},
		{"listener reads a missing queue", "GET", "/none", "Listen", 404, "SubCode=40400"},
		{"listener lists queues", "GET", "/$Resources/queues", "Listen", 401, ">Manage,EntityRead claims required for this operation."},
		{"listener lists topics", "GET", "/$Resources/topics", "Listen", 401, ">Manage,EntityRead claims required for this operation."},
		{"listener reads the namespace", "GET", "/$namespaceinfo", "Listen", 401, ">Manage,EntityRead claims required for this operation."},
		{"listener makes", "PUT", "/new", "Listen", 401, "Authorization failed for specified action: Manage,EntityWrite."},
		{"listener changes", "PUT", "/orders", "Listen", 401, "Authorization failed for specified action: Manage,EntityWrite."},
		{"listener deletes", "DELETE", "/orders", "Listen", 401, "Authorization failed for specified action: Manage,EntityDelete."},
		{"listener deletes what is missing", "DELETE", "/none", "Listen", 401, "Authorization failed for specified action: Manage,EntityDelete."},
		{"listener reads a subscription", "GET", "/events/Subscriptions/all", "Listen", 401, "401 SubCode=40100: Unauthorized : Unauthorized access for 'GetSubscription' operation"},
		{"listener reads a missing subscription", "GET", "/events/Subscriptions/none", "Listen", 401, "'GetSubscription'"},
		{"listener lists subscriptions", "GET", "/events/Subscriptions", "Listen", 401, "401 SubCode=40100: Unauthorized : Unauthorized access for 'EnumerateSubscriptions' operation"},
		{"listener makes a subscription", "PUT", "/events/Subscriptions/new", "Listen", 401, "'CreateOrUpdateSubscription'"},
		{"listener deletes a subscription", "DELETE", "/events/Subscriptions/all", "Listen", 401, "'DeleteSubscription'"},
		{"listener reads a rule", "GET", "/events/Subscriptions/all/Rules/$Default", "Listen", 401, "'GetRule'"},
		{"listener lists rules", "GET", "/events/Subscriptions/all/Rules", "Listen", 401, "'EnumerateRules'"},
		{"listener makes a rule", "PUT", "/events/Subscriptions/all/Rules/r", "Listen", 401, "'CreateOrUpdateRule'"},
		{"listener deletes a rule", "DELETE", "/events/Subscriptions/all/Rules/$Default", "Listen", 401, "'DeleteRule'"},

		{"owner of a topic reads it", "GET", "/Events", "Topic", 200, ""},
		{"owner of a topic reads a subscription", "GET", "/events/Subscriptions/all", "Topic", 200, ""},
		{"owner of a topic lists subscriptions", "GET", "/events/Subscriptions", "Topic", 200, ""},
		{"owner of a topic makes a rule", "PUT", "/events/Subscriptions/all/Rules/r", "Topic", 201, ""},
		{"owner of a topic reads another", "GET", "/orders", "Topic", 401, "EntityRead"},
		{"owner of a topic lists topics", "GET", "/$Resources/topics", "Topic", 401, "EntityRead"},
		{"owner of a topic makes a queue", "PUT", "/eventsmore", "Topic", 401, "EntityWrite"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := guarded(t)
			headers := []string{"Authorization", map[string]string{
				"Root": f.token("", "Root", rootKey), "Listen": f.token("", "Listen", listenKey), "Topic": f.token("events", "Topic", topicKey),
				"Wrong": f.token("", "Root", "guess"), "Junk": "SharedAccessSignature junk",
				"Old": sas.Sign("https://contoso.example/", "Root", rootKey, f.now.Add(-time.Minute)),
			}[tt.key]}
			if tt.key == "" {
				headers = nil
			}
			body := queueBody("")
			if strings.Contains(tt.path, "Rules") {
				body = ruleBody("")
			}
			a := f.do(tt.method, tt.path, body, headers...)
			if a.status != tt.status || !strings.Contains(a.body, tt.text) {
				t.Fatalf("got %d %s\nwant %d %s", a.status, a.body, tt.status, tt.text)
			}
			if a.status == http.StatusUnauthorized {
				checkError(t, a)
				if a.header.Get("WWW-Authenticate") == "" {
					t.Error("the answer does not say how to authenticate")
				}
			}
		})
	}
}

// TestRightsToForward lets nobody forward messages to where they may not send.
func TestRightsToForward(t *testing.T) {
	const plain, dead = "ServiceBusSupplementaryAuthorization", "ServiceBusDlqSupplementaryAuthorization"
	const forward, forwardDead = "<ForwardTo>sb://contoso/orders</ForwardTo>", "<ForwardDeadLetteredMessagesTo>sb://contoso/orders</ForwardDeadLetteredMessagesTo>"
	for _, tt := range []struct {
		name, inner   string
		key, resource string
		header, other string // of the second token, and the key that signs it
		status        int
	}{
		{"a namespace's token", forward, "Root", "", "", "", 201},
		{"an entity's token alone", forward, "Root", "events", "", "", 401},
		{"an entity's token and one to send", forward, "Root", "events", plain, "Root", 201},
		{"an entity's token and one to listen", forward, "Root", "events", plain, "Listen", 401},
		{"an entity's token and a false one", forward, "Root", "events", plain, "Wrong", 401},
		{"an entity's key", forward, "Topic", "events", "", "", 401},
		{"an entity's key to both", forward, "Topic", "events", plain, "Topic", 401},
		{"dead letters, with the header of messages", forwardDead, "Root", "events", plain, "Root", 401},
		{"dead letters", forwardDead, "Root", "events", dead, "Root", 201},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := guarded(t)
			secrets := map[string]string{"Root": rootKey, "Listen": listenKey, "Topic": topicKey, "Wrong": "guess"}
			headers := []string{"Authorization", f.token(tt.resource, tt.key, secrets[tt.key])}
			if tt.header != "" {
				headers = append(headers, tt.header, f.token("orders", strings.Replace(tt.other, "Wrong", "Root", 1), secrets[tt.other]))
			}
			a := f.do("PUT", "/events/Subscriptions/new", subscriptionBody(tt.inner), headers...)
			if a.status != tt.status {
				t.Fatalf("got %d %s, want %d", a.status, a.body, tt.status)
			}
			if a.status != http.StatusCreated {
				return
			}
			update := append(headers[:2:2], "If-Match", "*")
			f.must("PUT", "/events/Subscriptions/new", subscriptionBody(tt.inner+"<MaxDeliveryCount>3</MaxDeliveryCount>"), update...)
		})
	}
}

// TestAuthorizationKeys makes keys of the authorization rules of an entity, which come back as
// they were given and can be taken away.
func TestAuthorizationKeys(t *testing.T) {
	f := newFixture(t, nil)
	f.must("PUT", "/sink", queueBody(""))
	f.must("PUT", "/orders", queueBody(everyQueue))
	keys := f.keys("orders")
	if len(keys) != 1 || keys[0].Name != "all" || !keys[0].Primary.Matches("one=") || !keys[0].Secondary.Matches("two=") || keys[0].Rights != sas.Manage || keys[0].Entity != "orders" {
		t.Fatalf("the keys are %v", keys)
	}
	f.must("PUT", "/orders", queueBody("<MaxDeliveryCount>3</MaxDeliveryCount>"), "If-Match", "*")
	if keys := f.keys("orders"); len(keys) != 1 {
		t.Errorf("an update that does not speak of them changed the keys to %v", keys)
	}
	a := f.must("PUT", "/orders", queueBody("<AuthorizationRules><AuthorizationRule><Rights><AccessRights>Send</AccessRights></Rights><KeyName>made</KeyName></AuthorizationRule></AuthorizationRules>"), "If-Match", "*")
	keys = f.keys("orders")
	if len(keys) != 1 || keys[0].Rights != sas.Send || len(keys[0].Primary.Reveal()) < 32 || keys[0].Primary.Reveal() == keys[0].Secondary.Reveal() {
		t.Fatalf("keys that were left out are %v", keys)
	}
	if !strings.Contains(a.body, "<PrimaryKey>"+keys[0].Primary.Reveal()+"</PrimaryKey>") || strings.Contains(a.body, "CreatedTime") {
		t.Errorf("the answer is %s", a.body)
	}
	f.must("PUT", "/orders", queueBody("<AuthorizationRules/>"), "If-Match", "*")
	if keys := f.keys("orders"); len(keys) != 0 {
		t.Errorf("the keys are still there: %v", keys)
	}
}

func (f *fixture) keys(name string) []sas.Key {
	f.tb.Helper()
	info, err := f.engine.Entity(name)
	if err != nil {
		f.tb.Fatal(err)
	}
	return AuthorizationKeys(info.Name, info.Properties)
}

// TestAuthorizationRulesRefused refuses what the service does not take.
func TestAuthorizationRulesRefused(t *testing.T) {
	f := newFixture(t, nil)
	send := "<Rights><AccessRights>Send</AccessRights></Rights>"
	for text, rules := range map[string]string{
		"needs Send and Listen": "<AuthorizationRule><Rights><AccessRights>Manage</AccessRights><AccessRights>Send</AccessRights></Rights><KeyName>k</KeyName></AuthorizationRule>",
		"'Own' is not one":      "<AuthorizationRule><Rights><AccessRights>Own</AccessRights></Rights><KeyName>k</KeyName></AuthorizationRule>",
		"gives no rights":       "<AuthorizationRule><KeyName>k</KeyName></AuthorizationRule>",
		"needs a KeyName":       "<AuthorizationRule>" + send + "</AuthorizationRule>",
		"at most 256 bytes":     "<AuthorizationRule>" + send + "<KeyName>k</KeyName><PrimaryKey>" + strings.Repeat("p", 257) + "</PrimaryKey></AuthorizationRule>",
		"two authorization":     strings.Repeat("<AuthorizationRule>"+send+"<KeyName>k</KeyName></AuthorizationRule>", 2),
		"is no dateTime":        "<AuthorizationRule>" + send + "<KeyName>k</KeyName><CreatedTime>once</CreatedTime></AuthorizationRule>",
		"at most 12":            manyKeys(13),
	} {
		if a := f.do("PUT", "/q", queueBody("<AuthorizationRules>"+rules+"</AuthorizationRules>")); a.status != http.StatusBadRequest || !strings.Contains(a.body, text) {
			t.Errorf("want %q, got %d %s", text, a.status, a.body)
		}
	}
}
