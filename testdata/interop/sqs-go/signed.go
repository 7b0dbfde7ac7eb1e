package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
)

// signedGET: a link that receives, for who has no key. It is the Query protocol, whose answers
// are XML.
func signedGET(t *trial) error {
	queue, _, err := t.queue("", nil)
	if err != nil {
		return err
	}
	if err := t.send(queue, "a \"quoted\"\r\nline"); err != nil {
		return err
	}
	to, err := url.Parse(queue)
	if err != nil {
		return err
	}
	to.RawQuery = url.Values{"Action": {"ReceiveMessage"}, "VisibilityTimeout": {"0"}}.Encode()
	r, err := http.NewRequestWithContext(t.ctx, http.MethodGet, to.String(), http.NoBody)
	if err != nil {
		return err
	}
	who, err := t.Options().Credentials.Retrieve(t.ctx)
	if err != nil {
		return err
	}
	none := sha256.Sum256(nil)
	link, _, err := v4.NewSigner().PresignHTTP(t.ctx, who, r, hex.EncodeToString(none[:]), "sqs", "us-east-1", time.Now())
	if err != nil {
		return err
	}
	status, got, err := get(t.ctx, link)
	if err := errors.Join(err, same("status", status, 200)); err != nil {
		return err
	}
	if want := "<Body>a &quot;quoted&quot;&#xD;\nline</Body>"; !strings.Contains(got, want) {
		return errors.New("no " + want + " in " + got)
	}
	// Another parameter is another request, which nobody has signed.
	status, got, err = get(t.ctx, strings.Replace(link, "VisibilityTimeout=0", "VisibilityTimeout=1", 1))
	return errors.Join(err, same("status of another request", status, 403),
		same("code "+got, strings.Contains(got, "<Code>SignatureDoesNotMatch</Code>"), true))
}

func get(ctx context.Context, link string) (status int, body string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, link, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	all, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(all), err
}

// wrongSecret: what is signed with another secret is refused, with the code that clients know.
func wrongSecret(t *trial) error {
	other := client("us-east-1", "test", func(o *sqs.Options) {
		o.Credentials = credentials.NewStaticCredentialsProvider("test", "another", "")
	})
	_, err := other.ListQueues(t.ctx, &sqs.ListQueuesInput{})
	return refused[smithy.APIError](err, "SignatureDoesNotMatch")
}
