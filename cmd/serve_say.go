package cmd

import (
	"fmt"
	"net"
	"os"
	"path/filepath"

	"dlq/backends/broker/port"
	"dlq/backends/broker/sas"
)

// defaultNamespace is the official emulator's name for its one namespace.
const defaultNamespace = "sbemulatorns"

func (s serving) namespace() string {
	if s.config != nil {
		return s.config.Namespace
	}
	return defaultNamespace
}

// authority is the local certificate authority, one for all data directories: whoever trusts it
// once has done so for good.
func (a *app) authority() (*port.Authority, error) {
	dir, err := a.userDir("XDG_DATA_HOME", ".local/share")
	if err != nil {
		return nil, err
	}
	dir = filepath.Join(dir, "authority")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	authority, err := port.OpenAuthority(dir)
	if err != nil {
		return nil, fmt.Errorf("open the local certificate authority: %w", err)
	}
	return authority, nil
}

// announce prints what to set, a line each, and says how to use it.
func (s serving) announce(a *app, opts serveOptions, srv *server, keys []sas.Key) {
	lines := connectionStrings(endpoint(opts.calledBy(opts.serviceBus), srv.listeners[0].Addr()), keys, !opts.tls)
	if len(srv.sqsOn) > 0 {
		at := endpoint(opts.calledBy(opts.sqs), srv.sqsOn[0].Addr())
		lines = append(lines, s.sqsVariables(at, opts.tls, newAccessKeys(keys, s.lenient()))...)
	}
	for _, line := range lines {
		a.printf("%s\n", line)
	}
	if srv.authority != nil {
		srv.announceTrust(a)
	}
	if s.faults != nil {
		a.say("faults on purpose: %s", opts.fault)
	}
	where := "in memory"
	if s.dir != "" {
		where = "of " + s.dir
	}
	for _, l := range srv.listeners {
		a.say("serving the data %s on %s", where, l.Addr())
	}
	for _, l := range srv.adminOn {
		a.say("the same on %s, where clients of the official emulator look for the management API", l.Addr())
	}
	for _, l := range srv.sqsOn {
		a.say("%s on %s", s.flavor.title, l.Addr())
	}
	a.printf("dlq: ready\n")
}

// announceTrust prints the variables by which SDKs trust the certificates, and says what else does.
func (srv *server) announceTrust(a *app) {
	file := srv.authority.CertFile()
	a.printf("SSL_CERT_FILE=%s\n", file)
	if len(srv.sqsOn) > 0 {
		a.printf("AWS_CA_BUNDLE=%s\n", file)
	}
	a.say("TLS: each SDK has to trust the local authority %s", file)
	for _, hint := range trustHints(file) {
		a.say("  %s", hint)
	}
}

// endpoint is what clients connect to, by the name of the host.
func endpoint(host string, addr net.Addr) string {
	_, number, err := net.SplitHostPort(addr.String())
	if err != nil { // no TCP
		return addr.String()
	}
	return net.JoinHostPort(host, number)
}

// connectionStrings returns a NAME=value line for each kind of right that a key of the namespace
// gives.
func connectionStrings(endpoint string, keys []sas.Key, plain bool) []string {
	var lines []string
	for _, want := range []struct {
		name   string
		rights sas.Rights
	}{
		{"SERVICEBUS_CONNECTION_STRING", sas.Manage},
		{"SERVICEBUS_CONNECTION_STRING_SEND_ONLY", sas.Send},
		{"SERVICEBUS_CONNECTION_STRING_LISTEN_ONLY", sas.Listen},
	} {
		for _, k := range keys {
			if k.Entity != "" || k.Rights != want.rights {
				continue
			}
			line := fmt.Sprintf("%s=Endpoint=sb://%s;SharedAccessKeyName=%s;SharedAccessKey=%s", want.name, endpoint, k.Name, k.Primary.Reveal())
			if plain {
				line += ";UseDevelopmentEmulator=true"
			}
			lines = append(lines, line)
			break
		}
	}
	return lines
}

// trustHints tell how the SDK of each language trusts a certificate authority. Of AWS's, those for
// Python and Go read AWS_CA_BUNDLE, and the others what their platforms do.
func trustHints(certFile string) []string {
	return []string{
		"Go, on Linux:    export SSL_CERT_FILE=" + certFile,
		"JavaScript:      export NODE_EXTRA_CA_CERTS=" + certFile,
		"Python:          ServiceBusClient.from_connection_string(…, connection_verify='" + certFile + "'); its admin client: export REQUESTS_CA_BUNDLE=" + certFile,
		"boto3, AWS CLI:  export AWS_CA_BUNDLE=" + certFile,
		".NET, on Linux:  export SSL_CERT_FILE=" + certFile,
		"Java:            keytool -importcert -noprompt -alias dlq -file " + certFile + " -keystore dlq.p12 -storepass changeit, then -Djavax.net.ssl.trustStore=dlq.p12",
	}
}
