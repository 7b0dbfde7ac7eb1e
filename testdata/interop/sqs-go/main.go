// Command sqs-go tries dlq serve with the AWS SDK for Go, as a user of SQS does. The endpoint is
// that of AWS_ENDPOINT_URL_SQS. It prints a line for each check, and how many passed.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// check is one thing that is tried, with queues of its own.
type check struct {
	name string
	run  func(t *trial) error
}

// trial is a client, and the name of the check in the names of its queues.
type trial struct {
	*sqs.Client
	ctx  context.Context
	name string
}

func main() {
	only := ""
	if len(os.Args) > 1 {
		only = os.Args[1]
	}
	passed, failed := 0, 0
	for _, c := range checks() {
		if !strings.Contains(c.name, only) {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		t := &trial{Client: client("us-east-1", "test"), ctx: ctx, name: strings.NewReplacer(" ", "-", ",", "").Replace(c.name)}
		if err := c.run(t); err != nil {
			failed++
			fmt.Printf("FAIL  sqs-go %s: %v\n", c.name, err)
		} else {
			passed++
			fmt.Printf("ok    sqs-go %s\n", c.name)
		}
		cancel()
	}
	fmt.Printf("sqs-go: %d passed, %d failed\n", passed, failed)
	if failed > 0 || passed == 0 {
		os.Exit(1)
	}
}

// client is one of a region, with the access key of an account.
func client(region, key string, set ...func(*sqs.Options)) *sqs.Client {
	return sqs.New(sqs.Options{
		Region: region, BaseEndpoint: aws.String(os.Getenv("AWS_ENDPOINT_URL_SQS")),
		Credentials: credentials.NewStaticCredentialsProvider(key, "test", ""),
	}, set...)
}

// queue makes a queue for the check.
func (t *trial) queue(suffix string, attributes map[string]string) (url, arn string, err error) {
	made, err := t.CreateQueue(t.ctx, &sqs.CreateQueueInput{QueueName: aws.String(t.name + suffix), Attributes: attributes})
	if err != nil {
		return "", "", err
	}
	got, err := t.GetQueueAttributes(t.ctx, &sqs.GetQueueAttributesInput{QueueUrl: made.QueueUrl, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn}})
	if err != nil {
		return "", "", err
	}
	return *made.QueueUrl, got.Attributes["QueueArn"], nil
}

func (t *trial) send(url, body string) error {
	_, err := t.SendMessage(t.ctx, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body})
	return err
}

// receive takes up to ten messages with everything that they have.
func (t *trial) receive(url string, set ...func(*sqs.ReceiveMessageInput)) ([]types.Message, error) {
	in := &sqs.ReceiveMessageInput{
		QueueUrl: &url, MaxNumberOfMessages: 10, MessageAttributeNames: []string{"All"},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
	}
	for _, f := range set {
		f(in)
	}
	out, err := t.ReceiveMessage(t.ctx, in)
	if err != nil {
		return nil, err
	}
	return out.Messages, nil
}

// one is receive for a queue that has just one message to give.
func (t *trial) one(url string, set ...func(*sqs.ReceiveMessageInput)) (types.Message, error) {
	got, err := t.receive(url, set...)
	if err == nil && len(got) != 1 {
		err = fmt.Errorf("%d messages, want 1", len(got))
	}
	if err != nil {
		return types.Message{}, err
	}
	return got[0], nil
}

func bodies(msgs []types.Message) string {
	var all []string
	for _, m := range msgs {
		all = append(all, *m.Body)
	}
	return strings.Join(all, " ")
}

// same is an error if two values differ.
func same[T comparable](what string, got, want T) error {
	if got != want {
		return fmt.Errorf("%s: %v, want %v", what, got, want)
	}
	return nil
}

// refused is an error unless err has the code of the Query protocol, and, if a type is given, is of
// it.
func refused[T error](err error, code string) error {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return fmt.Errorf("%w, want %s", err, code)
	}
	var typed T
	if !errors.As(err, &typed) {
		return fmt.Errorf("%w is no %T", err, typed)
	}
	return same("code", api.ErrorCode(), code)
}

// eventually tries until there is no error.
func (t *trial) eventually(try func() error) error {
	for {
		err := try()
		if err == nil || t.ctx.Err() != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// gone is an HTTP client whose requests end after a while.
func gone(after time.Duration) func(*sqs.Options) {
	return func(o *sqs.Options) {
		o.HTTPClient = &http.Client{Timeout: after}
		o.RetryMaxAttempts = 1
	}
}
