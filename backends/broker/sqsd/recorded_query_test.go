package sqsd_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
)

// queryClient speaks the Query protocol with the types of the SDK, which speaks JSON alone. It is
// strict: an element that the answer has no member for is an error.
type queryClient struct {
	http            *http.Client
	base, namespace string
	region          string
	keys            aws.CredentialsProvider
}

const queryNamespace = "http://queue.amazonaws.com/doc/2012-11-05/"

// flat says how the items of a member are called where lists are flat.
var flat = map[string]string{
	"Attributes": "Attribute", "Tags": "Tag", "MessageAttributes": "MessageAttribute", "MessageSystemAttributes": "MessageSystemAttribute",
	"AttributeNames": "AttributeName", "MessageSystemAttributeNames": "AttributeName", "MessageAttributeNames": "MessageAttributeName",
	"TagKeys": "TagKey", "AWSAccountIds": "AWSAccountId", "Actions": "ActionName",
	"QueueUrls": "QueueUrl", "Messages": "Message", "Failed": "BatchResultErrorEntry", "Results": "ListMessageMoveTasksResultEntry",
}

// flatName is the name of a member's items.
func flatName(op, member string) string {
	switch member {
	case "Entries":
		return op + "RequestEntry"
	case "Successful":
		return op + "ResultEntry"
	}
	if name, ok := flat[member]; ok {
		return name
	}
	return member
}

// call makes a request and reads its answer.
func call[Out any](ctx context.Context, q *queryClient, op string, in any) (*Out, error) {
	form := url.Values{"Action": {op}, "Version": {"2012-11-05"}}
	flatten(form, op, "", reflect.ValueOf(in).Elem())
	more, _ := ctx.Value(extrasKey{}).(extras)
	for name, value := range more {
		form.Del(name)
		if value != nil {
			form.Set(name, fmt.Sprint(value))
		}
	}
	response, err := q.post(ctx, form.Encode())
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	root, err := parseXML(body)
	if err != nil {
		return nil, fmt.Errorf("%w in %s", err, body)
	}
	if response.StatusCode != http.StatusOK {
		e := root.kid("Error")
		return nil, &smithy.GenericAPIError{Code: e.kid("Code").Text, Message: e.kid("Message").Text}
	}
	out := new(Out)
	return out, readAnswer(root, q.namespace, op, reflect.ValueOf(out).Elem())
}

// post sends a form, signed as the SDK signs.
func (q *queryClient) post(ctx context.Context, form string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, q.base+"/", strings.NewReader(form))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	if aws.IsCredentialsProvider(q.keys, aws.AnonymousCredentials{}) {
		return q.http.Do(request)
	}
	key, err := q.keys.Retrieve(ctx)
	if err != nil {
		return nil, err
	}
	hash := sha256.Sum256([]byte(form))
	if err := v4.NewSigner().SignHTTP(ctx, key, request, hex.EncodeToString(hash[:]), "sqs", q.region, time.Now()); err != nil {
		return nil, err
	}
	return q.http.Do(request)
}

// readAnswer reads an answer, in which nothing else may be.
func readAnswer(root *node, namespace, op string, out reflect.Value) error {
	if want := (xml.Name{Space: namespace, Local: op + "Response"}); root.XMLName != want {
		return fmt.Errorf("the root is %v, not %v", root.XMLName, want)
	}
	want := []string{op + "Result", "ResponseMetadata"}
	if out.NumField() <= 2 && out.Field(0).Type().Name() == "Metadata" { // it answers with nothing
		want = want[1:]
	}
	if got := root.names(); !slices.Equal(got, want) {
		return fmt.Errorf("the answer has %v, not %v", got, want)
	}
	if root.kid("ResponseMetadata").kid("RequestId").Text == "" {
		return fmt.Errorf("the answer has no RequestId")
	}
	return read(root.kid(op+"Result"), op, out)
}

// flatten writes a value of the SDK into a form.
func flatten(form url.Values, op, key string, v reflect.Value) {
	switch {
	case v.Kind() == reflect.Pointer && v.IsNil():
	case v.Kind() == reflect.Pointer:
		flatten(form, op, key, v.Elem())
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			flattenMember(form, op, key, v.Type().Field(i), v.Field(i))
		}
	case v.Type() == reflect.TypeFor[[]byte]():
		form.Set(key, base64.StdEncoding.EncodeToString(v.Bytes()))
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			flatten(form, op, key+"."+strconv.Itoa(i+1), v.Index(i))
		}
	case v.Kind() == reflect.Map:
		flattenMap(form, op, key, v)
	default:
		form.Set(key, fmt.Sprint(v.Interface()))
	}
}

func flattenMember(form url.Values, op, key string, field reflect.StructField, v reflect.Value) {
	if !field.IsExported() {
		return
	}
	// The SDK takes zero for absent, but where a member is required.
	required := field.Name == "VisibilityTimeout" && strings.HasPrefix(op, "ChangeMessageVisibility")
	if v.IsZero() && !required {
		return
	}
	name := flatName(op, field.Name)
	if key != "" {
		name = key + "." + name
	}
	flatten(form, op, name, v)
}

func flattenMap(form url.Values, op, key string, v reflect.Value) {
	names := v.MapKeys()
	slices.SortFunc(names, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	nameKey := "Name"
	if strings.HasSuffix(key, "Tag") {
		nameKey = "Key"
	}
	for i, name := range names {
		item := key + "." + strconv.Itoa(i+1)
		form.Set(item+"."+nameKey, name.String())
		flatten(form, op, item+".Value", v.MapIndex(name))
	}
}

// node is an element.
type node struct {
	XMLName xml.Name
	Attrs   []xml.Attr `xml:",any,attr"`
	Text    string     `xml:",chardata"`
	Kids    []*node    `xml:",any"`
}

func parseXML(b []byte) (*node, error) {
	var n node
	return &n, xml.Unmarshal(b, &n)
}

// kid is the first element of a name; one without content if there is none.
func (n *node) kid(name string) *node {
	for _, k := range n.Kids {
		if k.XMLName.Local == name {
			return k
		}
	}
	return &node{}
}

func (n *node) names() []string {
	var names []string
	for _, k := range n.Kids {
		names = append(names, k.XMLName.Local)
	}
	return names
}

// read reads an element into a value of the SDK.
func read(n *node, op string, v reflect.Value) error {
	switch {
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return read(n, op, v.Elem())
	case v.Kind() == reflect.Struct:
		for _, kid := range n.Kids {
			if err := readMember(kid, op, v); err != nil {
				return err
			}
		}
		return nil
	case v.Type() == reflect.TypeFor[[]byte]():
		b, err := base64.StdEncoding.DecodeString(n.Text)
		v.SetBytes(b)
		return err
	case v.Kind() == reflect.String:
		v.SetString(n.Text)
		return nil
	case v.Kind() == reflect.Bool:
		b, err := strconv.ParseBool(n.Text)
		v.SetBool(b)
		return err
	}
	i, err := strconv.ParseInt(n.Text, 10, 64)
	v.SetInt(i)
	return err
}

// readMember reads an element that is a member, or one item of a member.
func readMember(n *node, op string, v reflect.Value) error {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !field.IsExported() || flatName(op, field.Name) != n.XMLName.Local {
			continue
		}
		to := v.Field(i)
		switch {
		case to.Kind() == reflect.Map:
			return readPair(n, op, to)
		case to.Kind() == reflect.Slice && to.Type().Elem().Kind() != reflect.Uint8:
			item := reflect.New(to.Type().Elem()).Elem()
			err := read(n, op, item)
			to.Set(reflect.Append(to, item))
			return err
		}
		return read(n, op, to)
	}
	return fmt.Errorf("%v has no member for the element %s", v.Type(), n.XMLName.Local)
}

func readPair(n *node, op string, to reflect.Value) error {
	name := "Name"
	if n.XMLName.Local == "Tag" {
		name = "Key"
	}
	if got := n.names(); !slices.Equal(got, []string{name, "Value"}) {
		return fmt.Errorf("an element %s of %v", n.XMLName.Local, got)
	}
	if to.IsNil() {
		to.Set(reflect.MakeMap(to.Type()))
	}
	value := reflect.New(to.Type().Elem()).Elem()
	err := read(n.kid("Value"), op, value)
	to.SetMapIndex(reflect.ValueOf(n.kid(name).Text), value)
	return err
}

func (q *queryClient) AddPermission(ctx context.Context, in *sqs.AddPermissionInput, _ ...func(*sqs.Options)) (*sqs.AddPermissionOutput, error) {
	return call[sqs.AddPermissionOutput](ctx, q, "AddPermission", in)
}

func (q *queryClient) CancelMessageMoveTask(ctx context.Context, in *sqs.CancelMessageMoveTaskInput, _ ...func(*sqs.Options)) (*sqs.CancelMessageMoveTaskOutput, error) {
	return call[sqs.CancelMessageMoveTaskOutput](ctx, q, "CancelMessageMoveTask", in)
}

func (q *queryClient) ChangeMessageVisibility(ctx context.Context, in *sqs.ChangeMessageVisibilityInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error) {
	return call[sqs.ChangeMessageVisibilityOutput](ctx, q, "ChangeMessageVisibility", in)
}

func (q *queryClient) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	return call[sqs.ChangeMessageVisibilityBatchOutput](ctx, q, "ChangeMessageVisibilityBatch", in)
}

func (q *queryClient) CreateQueue(ctx context.Context, in *sqs.CreateQueueInput, _ ...func(*sqs.Options)) (*sqs.CreateQueueOutput, error) {
	return call[sqs.CreateQueueOutput](ctx, q, "CreateQueue", in)
}

func (q *queryClient) DeleteMessage(ctx context.Context, in *sqs.DeleteMessageInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageOutput, error) {
	return call[sqs.DeleteMessageOutput](ctx, q, "DeleteMessage", in)
}

func (q *queryClient) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	return call[sqs.DeleteMessageBatchOutput](ctx, q, "DeleteMessageBatch", in)
}

func (q *queryClient) DeleteQueue(ctx context.Context, in *sqs.DeleteQueueInput, _ ...func(*sqs.Options)) (*sqs.DeleteQueueOutput, error) {
	return call[sqs.DeleteQueueOutput](ctx, q, "DeleteQueue", in)
}

func (q *queryClient) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, _ ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return call[sqs.GetQueueAttributesOutput](ctx, q, "GetQueueAttributes", in)
}

//nolint:staticcheck // as the SDK names it
func (q *queryClient) GetQueueUrl(ctx context.Context, in *sqs.GetQueueUrlInput, _ ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error) {
	return call[sqs.GetQueueUrlOutput](ctx, q, "GetQueueUrl", in)
}

func (q *queryClient) ListDeadLetterSourceQueues(ctx context.Context, in *sqs.ListDeadLetterSourceQueuesInput, _ ...func(*sqs.Options)) (*sqs.ListDeadLetterSourceQueuesOutput, error) {
	return call[sqs.ListDeadLetterSourceQueuesOutput](ctx, q, "ListDeadLetterSourceQueues", in)
}

func (q *queryClient) ListMessageMoveTasks(ctx context.Context, in *sqs.ListMessageMoveTasksInput, _ ...func(*sqs.Options)) (*sqs.ListMessageMoveTasksOutput, error) {
	return call[sqs.ListMessageMoveTasksOutput](ctx, q, "ListMessageMoveTasks", in)
}

func (q *queryClient) ListQueueTags(ctx context.Context, in *sqs.ListQueueTagsInput, _ ...func(*sqs.Options)) (*sqs.ListQueueTagsOutput, error) {
	return call[sqs.ListQueueTagsOutput](ctx, q, "ListQueueTags", in)
}

func (q *queryClient) ListQueues(ctx context.Context, in *sqs.ListQueuesInput, _ ...func(*sqs.Options)) (*sqs.ListQueuesOutput, error) {
	return call[sqs.ListQueuesOutput](ctx, q, "ListQueues", in)
}

func (q *queryClient) PurgeQueue(ctx context.Context, in *sqs.PurgeQueueInput, _ ...func(*sqs.Options)) (*sqs.PurgeQueueOutput, error) {
	return call[sqs.PurgeQueueOutput](ctx, q, "PurgeQueue", in)
}

func (q *queryClient) RemovePermission(ctx context.Context, in *sqs.RemovePermissionInput, _ ...func(*sqs.Options)) (*sqs.RemovePermissionOutput, error) {
	return call[sqs.RemovePermissionOutput](ctx, q, "RemovePermission", in)
}

func (q *queryClient) SendMessage(ctx context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	return call[sqs.SendMessageOutput](ctx, q, "SendMessage", in)
}

func (q *queryClient) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	return call[sqs.SendMessageBatchOutput](ctx, q, "SendMessageBatch", in)
}

func (q *queryClient) SetQueueAttributes(ctx context.Context, in *sqs.SetQueueAttributesInput, _ ...func(*sqs.Options)) (*sqs.SetQueueAttributesOutput, error) {
	return call[sqs.SetQueueAttributesOutput](ctx, q, "SetQueueAttributes", in)
}

func (q *queryClient) StartMessageMoveTask(ctx context.Context, in *sqs.StartMessageMoveTaskInput, _ ...func(*sqs.Options)) (*sqs.StartMessageMoveTaskOutput, error) {
	return call[sqs.StartMessageMoveTaskOutput](ctx, q, "StartMessageMoveTask", in)
}

func (q *queryClient) TagQueue(ctx context.Context, in *sqs.TagQueueInput, _ ...func(*sqs.Options)) (*sqs.TagQueueOutput, error) {
	return call[sqs.TagQueueOutput](ctx, q, "TagQueue", in)
}

func (q *queryClient) UntagQueue(ctx context.Context, in *sqs.UntagQueueInput, _ ...func(*sqs.Options)) (*sqs.UntagQueueOutput, error) {
	return call[sqs.UntagQueueOutput](ctx, q, "UntagQueue", in)
}

// ReceiveMessage checks the MD5 of every body, as the SDK does.
func (q *queryClient) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	out, err := call[sqs.ReceiveMessageOutput](ctx, q, "ReceiveMessage", in)
	if err != nil {
		return nil, err
	}
	for _, m := range out.Messages {
		if md5Hex(aws.ToString(m.Body)) != aws.ToString(m.MD5OfBody) {
			return nil, fmt.Errorf("the MD5 of %q is not %s", *m.Body, aws.ToString(m.MD5OfBody))
		}
	}
	return out, nil
}
