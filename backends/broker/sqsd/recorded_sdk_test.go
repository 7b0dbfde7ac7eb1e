package sqsd_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// extras are members of one call that the SDK's types cannot say: a zero that it takes for absent,
// or, with nil, that a member is absent which it always sends.
type extras map[string]any

type extrasKey struct{}

// newSDK returns the client of the AWS SDK. It neither tries again nor checks what it is asked
// for: both are for the server to show.
func newSDK(base, region string, keys aws.CredentialsProvider, transport http.RoundTripper) *sqs.Client {
	return sqs.New(sqs.Options{
		BaseEndpoint: aws.String(base),
		Region:       region,
		Credentials:  keys,
		HTTPClient:   &http.Client{Transport: transport},
		Retryer:      aws.NopRetryer{},
		APIOptions:   []func(*middleware.Stack) error{unchecked, sayExtras},
	})
}

// keys are an access key with its secret; "" signs nothing.
func keys(access, secret string) aws.CredentialsProvider {
	if access == "" {
		return aws.AnonymousCredentials{}
	}
	return aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: access, SecretAccessKey: secret}, nil
	})
}

// unchecked lets calls through that lack a member.
func unchecked(stack *middleware.Stack) error {
	_, _ = stack.Initialize.Remove("OperationInputValidation") // not every operation has it
	return nil
}

// sayExtras puts the extras of a call into its body.
func sayExtras(stack *middleware.Stack) error {
	return stack.Serialize.Add(middleware.SerializeMiddlewareFunc("Extras", func(
		ctx context.Context, in middleware.SerializeInput, next middleware.SerializeHandler,
	) (middleware.SerializeOutput, middleware.Metadata, error) {
		more, _ := ctx.Value(extrasKey{}).(extras)
		request, ok := in.Request.(*smithyhttp.Request)
		if len(more) == 0 || !ok {
			return next.HandleSerialize(ctx, in)
		}
		body, err := io.ReadAll(request.GetStream())
		if err != nil {
			return middleware.SerializeOutput{}, middleware.Metadata{}, err
		}
		if body, err = merge(body, more); err != nil {
			return middleware.SerializeOutput{}, middleware.Metadata{}, err
		}
		if in.Request, err = request.SetStream(bytes.NewReader(body)); err != nil {
			return middleware.SerializeOutput{}, middleware.Metadata{}, err
		}
		return next.HandleSerialize(ctx, in)
	}), middleware.After)
}

// merge puts members into a JSON object, or takes them out of it.
func merge(object []byte, more extras) ([]byte, error) {
	members := map[string]any{}
	if err := json.Unmarshal(object, &members); err != nil {
		return nil, err
	}
	maps.Copy(members, more)
	maps.DeleteFunc(members, func(_ string, v any) bool { return v == nil })
	return json.Marshal(members)
}

// api is the part of the SDK's client that the statements use.
type api interface {
	AddPermission(context.Context, *sqs.AddPermissionInput, ...func(*sqs.Options)) (*sqs.AddPermissionOutput, error)
	CancelMessageMoveTask(context.Context, *sqs.CancelMessageMoveTaskInput, ...func(*sqs.Options)) (*sqs.CancelMessageMoveTaskOutput, error)
	ChangeMessageVisibility(context.Context, *sqs.ChangeMessageVisibilityInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error)
	ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error)
	CreateQueue(context.Context, *sqs.CreateQueueInput, ...func(*sqs.Options)) (*sqs.CreateQueueOutput, error)
	DeleteMessage(context.Context, *sqs.DeleteMessageInput, ...func(*sqs.Options)) (*sqs.DeleteMessageOutput, error)
	DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
	DeleteQueue(context.Context, *sqs.DeleteQueueInput, ...func(*sqs.Options)) (*sqs.DeleteQueueOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
	GetQueueUrl(context.Context, *sqs.GetQueueUrlInput, ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error)
	ListDeadLetterSourceQueues(context.Context, *sqs.ListDeadLetterSourceQueuesInput, ...func(*sqs.Options)) (*sqs.ListDeadLetterSourceQueuesOutput, error)
	ListMessageMoveTasks(context.Context, *sqs.ListMessageMoveTasksInput, ...func(*sqs.Options)) (*sqs.ListMessageMoveTasksOutput, error)
	ListQueueTags(context.Context, *sqs.ListQueueTagsInput, ...func(*sqs.Options)) (*sqs.ListQueueTagsOutput, error)
	ListQueues(context.Context, *sqs.ListQueuesInput, ...func(*sqs.Options)) (*sqs.ListQueuesOutput, error)
	PurgeQueue(context.Context, *sqs.PurgeQueueInput, ...func(*sqs.Options)) (*sqs.PurgeQueueOutput, error)
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	RemovePermission(context.Context, *sqs.RemovePermissionInput, ...func(*sqs.Options)) (*sqs.RemovePermissionOutput, error)
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
	SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
	SetQueueAttributes(context.Context, *sqs.SetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.SetQueueAttributesOutput, error)
	StartMessageMoveTask(context.Context, *sqs.StartMessageMoveTaskInput, ...func(*sqs.Options)) (*sqs.StartMessageMoveTaskOutput, error)
	TagQueue(context.Context, *sqs.TagQueueInput, ...func(*sqs.Options)) (*sqs.TagQueueOutput, error)
	UntagQueue(context.Context, *sqs.UntagQueueInput, ...func(*sqs.Options)) (*sqs.UntagQueueOutput, error)
}
