package amqpd

import (
	"strings"
	"testing"
	"time"

	"dlq/backends/broker/sas"
	"dlq/backends/message"
)

// putToken puts a token and checks the form of the reply.
func (d *desk) putToken(kind, audience string, token message.Value) (status int, condition, text string) {
	d.Helper()
	req := d.request("put-token", token,
		message.Attribute{Name: "type", Value: message.String(kind)}, message.Attribute{Name: "name", Value: message.String(audience)},
		message.Attribute{Name: "expiration", Value: message.TimestampOf(d.now.Add(time.Hour))})
	reply := d.overTheWire(d.server.putToken(d, req))
	for _, p := range reply.Properties {
		switch v := p.Value.(type) {
		case message.Int:
			status = int(v)
		case message.String:
			text = string(v)
		case message.Symbol:
			condition = string(v)
		}
	}
	want := []string{"status-code", "status-description"}
	if status >= 300 {
		want = append(want, "error-condition")
	}
	var got []string
	for _, p := range reply.Properties {
		got = append(got, p.Name)
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		d.Errorf("with status %d the reply has %v", status, got)
	}
	return status, condition, text
}

func guarded(t *testing.T, mode sas.Mode) *desk {
	d := newDesk(t)
	d.server.gate = &sas.Gate{Mode: mode, Loopback: true, Now: func() time.Time { return d.now }, Keyring: sas.NewKeyring(
		sas.Key{Name: "root", Primary: sas.NewSecret("rootkey"), Rights: sas.Manage},
		sas.Key{Name: "mine", Primary: sas.NewSecret("minekey"), Rights: sas.Send, Entity: "orders"},
	)}
	return d
}

func TestPutToken(t *testing.T) {
	const kind = "servicebus.windows.net:sastoken"
	sign := func(audience, name, key string, expires time.Time) message.Value {
		return message.String(sas.Sign(audience, name, key, expires))
	}
	valid, over := start.Add(time.Hour), start.Add(-time.Hour)
	for _, c := range []struct {
		name      string
		kind      string
		audience  string
		token     message.Value
		status    int
		condition string
		text      string
		resource  string
	}{
		{name: "namespace key", kind: kind, audience: "amqps://ns/orders", token: sign("amqps://ns/orders", "root", "rootkey", valid), status: 202, text: "Accepted", resource: "orders"},
		{name: "wider token", kind: kind, audience: "sb://ns:5671/orders/$management", token: sign("sb://ns/", "root", "rootkey", valid), status: 202, text: "Accepted"},
		{name: "entity key", kind: kind, audience: "sb://ns/Orders/$DeadLetterQueue", token: sign("sb://ns/orders", "mine", "minekey", valid), status: 202, text: "Accepted", resource: "orders"},
		{name: "namespace", kind: kind, audience: "sb://ns/", token: sign("sb://ns/", "root", "rootkey", valid), status: 202, text: "Accepted"},
		{name: "as binary", kind: kind, audience: "sb://ns/orders", token: message.Binary(sas.Sign("sb://ns/", "root", "rootkey", valid)), status: 202, text: "Accepted"},
		{name: "missing entity", kind: kind, audience: "amqps://ns/nowhere", token: sign("sb://ns/", "root", "rootkey", valid), status: 404, condition: "amqp:not-found", text: "The messaging entity 'sb://ns/nowhere' could not be found. To know more visit https://aka.ms/sbResourceMgrExceptions. TrackingId:"},
		{name: "missing subscription", kind: kind, audience: "amqps://ns/news/subscriptions/nobody/$management", token: sign("sb://ns/", "root", "rootkey", valid), status: 404, condition: "amqp:not-found", text: "The messaging entity 'sb://ns/news/Subscriptions/nobody' could not be found."},
		{name: "another entity", kind: kind, audience: "sb://ns/visits", token: sign("sb://ns/orders", "mine", "minekey", valid), status: 401, condition: "com.microsoft:auth-failed", text: "InvalidAudience:"},
		{name: "wrong key", kind: kind, audience: "sb://ns/orders", token: sign("sb://ns/orders", "root", "x", valid), status: 401, condition: "com.microsoft:auth-failed", text: "InvalidSignature: The token has an invalid signature. TrackingId:"},
		{name: "unknown key", kind: kind, audience: "sb://ns/orders", token: sign("sb://ns/orders", "who", "x", valid), status: 401, condition: "com.microsoft:auth-failed", text: "InvalidSignature: "},
		{name: "expired", kind: kind, audience: "sb://ns/orders", token: sign("sb://ns/orders", "root", "rootkey", over), status: 401, condition: "com.microsoft:auth-failed", text: "ExpiredToken: The token is expired. Expiration time: Sat, 21 Nov 2026 08:00:00 UTC, Current time: Sat, 21 Nov 2026 09:00:00 UTC. TrackingId:"},
		{name: "no token", kind: kind, audience: "sb://ns/orders", token: message.String("hello"), status: 401, condition: "com.microsoft:auth-failed", text: "MalformedToken: "},
		{name: "not a string", kind: kind, audience: "sb://ns/orders", token: message.Int(1), status: 400, condition: "amqp:invalid-field", text: "The body of put-token has to be the token as a string."},
		{name: "no body", kind: kind, audience: "sb://ns/orders", status: 400, condition: "amqp:invalid-field"},
		{name: "unknown kind", kind: "kerberos", audience: "sb://ns/orders", token: message.String("x"), status: 401, condition: "com.microsoft:auth-failed"},
		{name: "bearer", kind: "jwt", audience: "sb://ns/orders", token: message.String("e30.e30.x"), status: 202, text: "Accepted"},
		{name: "bearer of AMQP", kind: "amqp:jwt", audience: "sb://ns/orders", token: message.String("e30.e30.x"), status: 202, text: "Accepted"},
		{name: "simple web token", kind: "amqp:swt", audience: "sb://ns/orders", token: message.String("e30.e30.x"), status: 202, text: "Accepted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := guarded(t, sas.Keys)
			d.TB = t
			status, condition, text := d.putToken(c.kind, c.audience, c.token)
			if status != c.status || condition != c.condition || !strings.HasPrefix(text, c.text) {
				t.Fatalf("%d %s %q, want %d %s %q", status, condition, text, c.status, c.condition, c.text)
			}
			if status != 202 {
				if !suffix.MatchString(text) {
					t.Errorf("the text is %q", text)
				}
				return
			}
			if len(d.granted) != 1 || d.granted[0].Resource != c.resource {
				t.Errorf("granted %v", d.granted)
			}
		})
	}
}

// TestPutTokenModes checks what the mode of the server makes of tokens that prove nothing.
func TestPutTokenModes(t *testing.T) {
	for mode, want := range map[sas.Mode][2]int{sas.Keys: {202, 401}, sas.Require: {401, 401}, sas.Any: {202, 202}} {
		d := guarded(t, mode)
		bearer, _, text := d.putToken("jwt", "sb://ns/orders", message.String("e30.e30.x"))
		wrong, _, _ := d.putToken("servicebus.windows.net:sastoken", "sb://ns/orders", message.String(sas.Sign("sb://ns/", "root", "x", start.Add(time.Hour))))
		if got := [2]int{bearer, wrong}; got != want {
			t.Errorf("mode %s: a bearer token and a wrong signature get %v, want %v", mode, got, want)
		}
		if mode == sas.Require && !strings.Contains(text, "use a shared access key") {
			t.Errorf("a bearer token is refused with %q", text)
		}
	}
	d := newDesk(t) // no gate at all
	if status, _, _ := d.putToken("", "sb://ns/orders", nil); status != 202 {
		t.Errorf("without a gate: %d", status)
	}
	if status, _, _ := d.putToken("", "sb://ns/nowhere", nil); status != 404 {
		t.Errorf("without a gate, for an entity that is missing: %d", status)
	}
	reply := d.server.putToken(d, d.request("drop-token", nil))
	if v, _ := reply.Properties.Get("status-code"); v != message.Int(400) {
		t.Errorf("another operation: %v", v)
	}
}
