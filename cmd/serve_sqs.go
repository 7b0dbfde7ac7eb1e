package cmd

import (
	"slices"
	"strings"
	"sync"
	"time"

	"dlq/backends/broker/amqpd"
	"dlq/backends/broker/port"
	"dlq/backends/broker/sas"
	"dlq/backends/broker/sigv4"
	"dlq/backends/broker/sqsd"
)

// flavor is a service that the port of SQS stands for.
type flavor struct {
	name, title string
	region      string // that its clients are to name
	is          sqsd.Flavor
}

func flavors() []flavor {
	return []flavor{{"aws", "Amazon SQS", "us-east-1", sqsd.AWS}, {"ymq", "Yandex Message Queue", "ru-central1", sqsd.YMQ}}
}

func flavorNamed(name string) (flavor, error) {
	var names []string
	for _, f := range flavors() {
		if strings.EqualFold(f.name, name) {
			return f, nil
		}
		names = append(names, f.name)
	}
	return flavor{}, usagef("--flavor: there is no flavor %q; there are %s", name, strings.Join(names, " and "))
}

// The credentials that everybody's samples for emulators of SQS have. An access key of 12 digits
// with the same secret is the account of that number.
const (
	developmentAccessKey = "test"
	developmentSecret    = "test"
)

// buildSQS joins the server of SQS to the engine, behind a port of its own.
func (srv *server) buildSQS(a *app, s serving, keys accessKeys) {
	o := sqsd.Options{
		Engine: srv.engine, Flavor: s.flavor.is, Account: account, Unsigned: s.lenient(),
		Now: a.now, Limits: s.bounds.sqs, Fault: sqsFault(s.faults), Short: srv.memory.short, Log: a.say,
	}
	if s.mode != sas.Any {
		o.Verifier = &sigv4.Verifier{Secret: keys.secretOrSay(a.say), Now: a.now}
		o.Allowed = keys.allowed
	}
	srv.sqs = sqsd.New(o)
	srv.sqsFront = &port.Server{HTTP: srv.sqs, Hosts: s.hosts, Limits: patient(s.bounds.port), Log: a.say}
}

// longestWait is longer than SQS lets a receive wait, by what an answer may take.
const longestWait = 20*time.Second + 5*time.Second

// patient are the limits of a port whose clients may wait for a message: no time to read or to
// answer may be shorter than that.
func patient(l port.Limits) port.Limits {
	l.Read, l.Write = max(l.Read, longestWait), max(l.Write, longestWait)
	return l
}

// accessKeys are the keys of the namespace as credentials of SQS: the access key is the name, the
// secret the primary value. One without an entity counts before another of its name.
type accessKeys struct {
	named       map[string]sas.Key
	root        string // the first that may do everything; "": none
	development bool   // the development credentials count, too
}

func newAccessKeys(keys []sas.Key, development bool) accessKeys {
	out := accessKeys{named: make(map[string]sas.Key, len(keys)), development: development}
	for _, k := range keys { // those of the configuration come last
		if before, ok := out.named[k.Name]; !ok || k.Entity == "" || before.Entity != "" {
			out.named[k.Name] = k
		}
	}
	for _, k := range slices.Backward(keys) {
		if counts := out.named[k.Name]; counts.Entity == "" && counts.Rights == sas.Manage {
			out.root = k.Name
		}
	}
	return out
}

// secret returns the secret of an access key.
func (k accessKeys) secret(accessKey string) (string, bool) {
	if k.isDevelopment(accessKey) {
		return developmentSecret, true
	}
	key, ok := k.named[accessKey]
	return key.Primary.Reveal(), ok
}

// secretOrSay is secret, and tells of the first key that is unknown: an SDK that finds the user's own
// credentials before ours only says that they are invalid.
func (k accessKeys) secretOrSay(say func(format string, args ...any)) func(accessKey string) (string, bool) {
	var once sync.Once
	return func(accessKey string) (string, bool) {
		secret, ok := k.secret(accessKey)
		if !ok {
			once.Do(func() {
				say("a client of SQS signs with the access key %q, which is unknown here; it has to use the AWS_ACCESS_KEY_ID above", accessKey)
			})
		}
		return secret, ok
	}
}

// allowed reports whether an access key has a right at an entity, "" for all of them.
func (k accessKeys) allowed(accessKey, entity string, right sqsd.Right) bool {
	if k.isDevelopment(accessKey) {
		return true
	}
	key, ok := k.named[accessKey]
	if !ok || key.Entity != "" && key.Entity != entity {
		return false
	}
	return key.Rights.Has(map[sqsd.Right]sas.Rights{sqsd.Send: sas.Send, sqsd.Listen: sas.Listen, sqsd.Manage: sas.Manage}[right])
}

// isDevelopment reports whether an access key is one of those with the development secret. A key
// that somebody has made goes before.
func (k accessKeys) isDevelopment(accessKey string) bool {
	if _, made := k.named[accessKey]; made || !k.development {
		return false
	}
	return accessKey == developmentAccessKey || account(accessKey) != ""
}

// credentials returns what a client may sign with to do everything; ok is false if there is nothing.
func (k accessKeys) credentials() (accessKey, secret string, ok bool) {
	if k.development {
		return developmentAccessKey, developmentSecret, true
	}
	root, ok := k.named[k.root]
	return root.Name, root.Primary.Reveal(), ok
}

// account is the account that an access key stands for: its own digits, or "" for the default.
func account(accessKey string) string {
	const digits = 12
	if len(accessKey) != digits || strings.Trim(accessKey, "0123456789") != "" {
		return ""
	}
	return accessKey
}

// sqsFault is what the faults on purpose do to SQS.
func sqsFault(faults *amqpd.Faults) func(sqsd.FaultOp, string) (sqsd.Fault, bool) {
	faults = faults.Without(amqpd.FaultDetach)
	if faults == nil {
		return nil
	}
	ops := map[sqsd.FaultOp]amqpd.Op{
		sqsd.OpSend: amqpd.OpSend, sqsd.OpReceive: amqpd.OpReceive, sqsd.OpSettle: amqpd.OpSettle, sqsd.OpManage: amqpd.OpManage,
	}
	kinds := map[amqpd.FaultKind]sqsd.FaultKind{
		amqpd.FaultDelay: sqsd.FaultDelay, amqpd.FaultThrottle: sqsd.FaultThrottle, amqpd.FaultError: sqsd.FaultError,
		amqpd.FaultDisconnect: sqsd.FaultDisconnect, amqpd.FaultLockLost: sqsd.FaultLockLost, amqpd.FaultDuplicate: sqsd.FaultDuplicate,
	}
	return func(op sqsd.FaultOp, entity string) (sqsd.Fault, bool) {
		f, struck := faults.Next(ops[op], entity)
		return sqsd.Fault{Kind: kinds[f.Kind], Delay: f.Delay}, struck
	}
}

// sqsVariables are the lines that make an SDK of AWS a client of the server. boto3 reads the region
// from AWS_DEFAULT_REGION, the other SDKs from AWS_REGION.
func (s serving) sqsVariables(endpoint string, withTLS bool, keys accessKeys) []string {
	scheme := "http://"
	if withTLS {
		scheme = "https://"
	}
	lines := []string{"AWS_ENDPOINT_URL_SQS=" + scheme + endpoint}
	if accessKey, secret, ok := keys.credentials(); ok {
		lines = append(lines, "AWS_ACCESS_KEY_ID="+accessKey, "AWS_SECRET_ACCESS_KEY="+secret)
	}
	return append(lines, "AWS_REGION="+s.flavor.region, "AWS_DEFAULT_REGION="+s.flavor.region)
}
