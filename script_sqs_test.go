package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/rogpeppe/go-internal/testscript"
)

// background is the dlq serve that a script has running.
type background struct {
	run  *exec.Cmd
	said bytes.Buffer // on standard error
	rest chan error   // from reading its standard output to the end
}

// backgroundKey is where a script has its [background].
type backgroundKey struct{}

func backgroundOf(ts *testscript.TestScript) *background {
	return ts.Value(backgroundKey{}).(*background)
}

// serve is the script command "serve ARGS...": it runs dlq serve on free ports until interrupt, and
// waits until it is ready. What it prints, NAME=value, is in the environment then, as if one had copied it.
func serve(ts *testscript.TestScript, neg bool, args []string) {
	b := backgroundOf(ts)
	if neg || b.run != nil {
		ts.Fatalf("usage: serve ARGS..., after interrupt if a server runs")
	}
	b.said.Reset()
	b.run = exec.Command("dlq", append([]string{"serve", "--servicebus", "127.0.0.1:0", "--admin", "none", "--sqs", "127.0.0.1:0"}, args...)...)
	b.run.Dir, b.run.Stderr = ts.MkAbs("."), &b.said
	for _, name := range []string{"PATH", "HOME", "TERM", "XDG_DATA_HOME", "XDG_STATE_HOME"} {
		b.run.Env = append(b.run.Env, name+"="+ts.Getenv(name))
	}
	out, err := b.run.StdoutPipe()
	ts.Check(err)
	ts.Check(b.run.Start())
	ts.Defer(func() { _, _ = b.stop() })
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "dlq: ready" {
		name, value, _ := strings.Cut(lines.Text(), "=")
		ts.Setenv(name, value)
		_, err := fmt.Fprintln(ts.Stdout(), lines.Text())
		ts.Check(err)
	}
	ready := lines.Text() == "dlq: ready"
	b.rest = make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, out) // lest it waits for a reader
		b.rest <- err
	}()
	if !ready {
		said, err := b.stop()
		ts.Fatalf("it did not become ready: %v\n%s", err, said)
	}
}

// interrupt is the script command "interrupt": it ends what serve has started, as Ctrl-C does. What
// the server said is the command's standard error.
func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: interrupt")
	}
	said, err := backgroundOf(ts).stop()
	_, writeErr := io.WriteString(ts.Stderr(), said)
	ts.Check(errors.Join(err, writeErr))
}

// stop ends the server, if one runs, and returns what it said.
func (b *background) stop() (said string, err error) {
	if b.run == nil {
		return "", nil
	}
	run := b.run
	b.run = nil
	if err := run.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return "", err
	}
	err = errors.Join(<-b.rest, run.Wait())
	return b.said.String(), err
}

// sqs is the script command "sqs ACTION NAME=VALUE...": it calls the server of SQS that serve has
// started, in its JSON protocol, signed as the environment says if that has an access key. VALUE is
// a string, with NAME:=VALUE it is JSON. The answer is the standard output; MessageId and
// ReceiptHandle of a message in it are in the environment. With "!" the server has to refuse the
// call, and what it says is the standard error.
func sqs(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 {
		ts.Fatalf("usage: sqs ACTION NAME=VALUE... NAME:=JSON...")
	}
	members := map[string]any{}
	for _, arg := range args[1:] {
		name, value, ok := strings.Cut(arg, "=")
		if !ok {
			ts.Fatalf("%q: want NAME=VALUE or NAME:=JSON", arg)
		}
		members[name] = value
		if jsonName, ok := strings.CutSuffix(name, ":"); ok {
			delete(members, name)
			members[jsonName] = json.RawMessage(value)
		}
	}
	body, err := json.Marshal(members)
	ts.Check(err)
	request, err := http.NewRequest(http.MethodPost, ts.Getenv("AWS_ENDPOINT_URL_SQS"), bytes.NewReader(body))
	ts.Check(err)
	request.Header.Set("Content-Type", "application/x-amz-json-1.0")
	request.Header.Set("X-Amz-Target", "AmazonSQS."+args[0])
	if id := ts.Getenv("AWS_ACCESS_KEY_ID"); id != "" {
		who := aws.Credentials{AccessKeyID: id, SecretAccessKey: ts.Getenv("AWS_SECRET_ACCESS_KEY")}
		sum := sha256.Sum256(body)
		ts.Check(v4.NewSigner().SignHTTP(request.Context(), who, request, hex.EncodeToString(sum[:]), "sqs", ts.Getenv("AWS_REGION"), time.Now()))
	}
	response, err := sqsClient(ts).Do(request)
	ts.Check(err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	ts.Check(err)
	refused := response.StatusCode != http.StatusOK
	to := ts.Stdout()
	if refused {
		to = ts.Stderr()
	}
	_, err = fmt.Fprintf(to, "%s\n", answer)
	ts.Check(err)
	if refused != neg {
		ts.Fatalf("%s: %s", args[0], response.Status)
	}
	exportMessage(ts, answer)
}

// sqsClient trusts the authority that the server has printed, if it serves TLS, and no other.
func sqsClient(ts *testscript.TestScript) *http.Client {
	if !strings.HasPrefix(ts.Getenv("AWS_ENDPOINT_URL_SQS"), "https:") {
		return http.DefaultClient
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(ts.ReadFile(ts.Getenv("AWS_CA_BUNDLE")))) {
		ts.Fatalf("there is no certificate in AWS_CA_BUNDLE")
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}}
}

// exportMessage puts the ids of an answer, or of the first message in it, into the environment.
func exportMessage(ts *testscript.TestScript, answer []byte) {
	type ids struct {
		ID     string `json:"MessageId"`
		Handle string `json:"ReceiptHandle"`
	}
	var got struct {
		ids
		Messages []ids
	}
	if json.Unmarshal(answer, &got) != nil { // an answer without members is empty
		return
	}
	if len(got.Messages) > 0 {
		got.ids = got.Messages[0]
	}
	if got.ID != "" {
		ts.Setenv("MessageId", got.ID)
		ts.Setenv("ReceiptHandle", got.Handle)
	}
}
