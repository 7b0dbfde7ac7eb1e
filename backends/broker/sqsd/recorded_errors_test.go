package sqsd_test

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"dlq/backends/broker/sigv4"
	"dlq/backends/broker/sqsd"
)

// verifying is an exam whose server knows the key "good" alone, and whose clock for signatures is
// off by so much.
func (x *exam) verifying(off time.Duration) *exam {
	v := openExam(x.T, x.protocol, sqsd.Options{Verifier: &sigv4.Verifier{
		Secret: func(key string) (string, bool) { return "secret", key == "good" },
		Now:    func() time.Time { return time.Now().Add(off) },
	}})
	v.as("good", "secret")
	return v
}

// unsigned is an error about who calls.
func unsigned(status int, shape, code, text string) refusal {
	return refusal{status: status, shape: coral + shape, code: code, text: text}
}

// 1.8: what is said of signatures.
var recordedSignatures = []statement{
	{"1.8", secondHand, inBoth, "a signature that is right", func(x *exam) {
		v := x.verifying(0)
		q := v.queue("orders")
		v.send(q, "a", text("Foo", "String", "é\r\n+ /=&"))
		v.gives(q, "a")
	}},
	{"1.8", secondHand, inBoth, "no signature", func(x *exam) {
		v := x.verifying(0)
		v.as("", "")
		_, err := v.create("orders")
		v.refused(err, unsigned(403, "MissingAuthenticationTokenException", "MissingAuthenticationToken", ""))
	}},
	{"1.8", secondHand, inBoth, "an unknown key", func(x *exam) {
		v := x.verifying(0)
		v.as("bad", "secret")
		_, err := v.create("orders")
		v.refused(err, unsigned(403, "UnrecognizedClientException", "InvalidClientTokenId", "The security token included in the request is invalid."))
	}},
	{"1.8", secondHand, inBoth, "a signature of another secret", func(x *exam) {
		v := x.verifying(0)
		v.as("good", "other")
		_, err := v.create("orders")
		v.refused(err, unsigned(403, "InvalidSignatureException", "SignatureDoesNotMatch", ""))
		v.contains(v.wire.last(), "The request signature we calculated does not match the signature you provided.")
	}},
	{"1.8", secondHand, inBoth, "a signature that has expired", func(x *exam) {
		for _, off := range []time.Duration{16 * time.Minute, -16 * time.Minute} {
			v := x.verifying(off)
			_, err := v.create("orders")
			v.refused(err, unsigned(403, "InvalidSignatureException", "SignatureDoesNotMatch", ""))
			if off > 0 {
				v.contains(v.wire.last(), "Signature expired: ")
			}
		}
		x.verifying(14 * time.Minute).queue("orders")
	}},
	{"1.8", recorded, onlyQuery, "a GET that is signed in its query or in its header, also one that changes something", func(x *exam) {
		v := x.verifying(0)
		q := v.queue("orders")
		e := v.signedGET("/?Action=ListQueues&Version=2012-11-05", true)
		v.equal("status", e.status, 200)
		v.contains(e, "<ListQueuesResponse", "<QueueUrl>"+q+"</QueueUrl>")
		for _, presigned := range []bool{true, false} {
			v.equal("status", v.signedGET("/000000000000/orders?Action=SendMessage&MessageBody=foobar", presigned).status, 200)
			e = v.signedGET("/000000000000/orders?Action=ReceiveMessage", presigned)
			v.contains(e, "<Body>foobar</Body>", "<MD5OfBody>")
		}
		v.contains(v.signedGET("/000000000000/orders?Action=DeleteQueue", false), "<DeleteQueueResponse ")
		v.equal("left", len(v.list("")), 0)
	}},
	{"1.8", secondHand, inBoth, "a signature that cannot be read", func(x *exam) {
		v := x.verifying(0)
		header := map[string]string{"Authorization": "AWS4-HMAC-SHA256 nonsense", "Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "AmazonSQS.ListQueues"}
		body := "{}"
		if v.query() {
			header = map[string]string{"Authorization": "AWS4-HMAC-SHA256 nonsense", "Content-Type": "application/x-www-form-urlencoded"}
			body = "Action=ListQueues"
		}
		e := v.raw("POST", "/", header, body)
		v.equal("status", e.status, 400)
		v.contains(e, "IncompleteSignature")
	}},
}

// signedGET sends a GET that is signed in its query, or else in its header.
func (x *exam) signedGET(path string, presigned bool) exchange {
	x.Helper()
	if presigned {
		path += "&X-Amz-Expires=300"
	}
	request, err := http.NewRequestWithContext(x.Context(), http.MethodGet, x.base+path, nil)
	x.ok(err)
	key, err := keys("good", "secret").Retrieve(x.Context())
	x.ok(err)
	empty := sha256.Sum256(nil)
	hash := hex.EncodeToString(empty[:])
	if presigned {
		signed, _, err := v4.NewSigner().PresignHTTP(x.Context(), key, request, hash, "sqs", x.region, time.Now())
		x.ok(err)
		return x.raw(http.MethodGet, strings.TrimPrefix(signed, x.base), nil, "")
	}
	x.ok(v4.NewSigner().SignHTTP(x.Context(), key, request, hash, "sqs", x.region, time.Now()))
	header := map[string]string{}
	for name := range request.Header {
		header[name] = request.Header.Get(name)
	}
	return x.raw(http.MethodGet, path, header, "")
}

// 2.0 and 3: identifiers, and the errors of the table that no other section is about.
var recordedErrors = []statement{
	{"2.0", documented, inBoth, "ids of messages are UUIDs of version 4, sequence numbers have 20 digits", func(x *exam) {
		out := x.send(x.fifo("orders"), "a", group("g"))
		if !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(*out.MessageId) {
			x.Errorf("an id %s", *out.MessageId)
		}
		if !regexp.MustCompile(`^[0-9]{20}$`).MatchString(*out.SequenceNumber) {
			x.Errorf("a sequence number %s", *out.SequenceNumber)
		}
	}},
	{"3", observed, inBoth, "throttling, which clients try again on", func(x *exam) {
		v := x.struck(sqsd.FaultThrottle)
		_, err := v.trySend(v.queue("orders"), "a")
		v.refused(err, plainly(400, "RequestThrottled", ""))
	}},
	{"3", observed, inBoth, "a failure of the server, in the protocol of the request", func(x *exam) {
		v := x.struck(sqsd.FaultError)
		_, err := v.trySend(v.queue("orders"), "a")
		v.refused(err, refusal{status: 500, shape: coral + "InternalFailure", code: "InternalFailure"})
	}},
	{"3", recorded, inBoth, "every action on a missing queue", func(x *exam) {
		q := x.base + "/000000000000/none"
		_, err := x.tryReceive(q)
		x.refused(err, noQueue())
		x.refused(x.tryDelete(q, garbage()), noQueue())
		x.refused(x.tryHide(q, garbage(), 1), noQueue())
		x.refused(x.tryPurge(q), noQueue())
		x.refused(x.drop(q), noQueue())
		x.refused(x.tag(q, "a", "b"), noQueue())
		x.refused(x.set(q, "DelaySeconds", "1"), noQueue())
		x.refused(x.permit(q, "a", []string{"668614515564"}, []string{"SendMessage"}), noQueue())
		x.refused(x.forbid(q, "a"), noQueue())
		_, err = x.batch(q, entry("a"))
		x.refused(err, noQueue())
		_, err = x.api.GetQueueAttributes(x.ctx(), &sqs.GetQueueAttributesInput{QueueUrl: &q})
		x.refused(err, noQueue())
		_, err = x.api.ListQueueTags(x.ctx(), &sqs.ListQueueTagsInput{QueueUrl: &q})
		x.refused(err, noQueue())
		_, err = x.api.ListDeadLetterSourceQueues(x.ctx(), &sqs.ListDeadLetterSourceQueuesInput{QueueUrl: &q})
		x.refused(err, noQueue())
		_, err = x.api.UntagQueue(x.ctx(), &sqs.UntagQueueInput{QueueUrl: &q, TagKeys: []string{"a"}})
		x.refused(err, noQueue())
	}},
	{"3", inferred, inBoth, "text of an error with what both protocols escape", func(x *exam) {
		q := x.queue("orders")
		m := garbage()
		m.ReceiptHandle = aws.String(`<a & "b">` + "\t\\ é")
		x.refused(x.tryDelete(q, m), plainly(404, "ReceiptHandleIsInvalid", `The input receipt handle "`+*m.ReceiptHandle+`" is not a valid receipt handle.`))
	}},
	{"4.2", documented, inBoth, "a dead-letter queue of another region or account is none", func(x *exam) {
		x.queue("dlq")
		for _, arn := range []string{"arn:aws:sqs:eu-west-1:000000000000:dlq", "arn:aws:sqs:us-east-1:111122223333:dlq"} {
			policy := strings.Replace(x.policy("dlq", 1), x.arn("dlq"), arn, 1)
			_, err := x.create("orders", "RedrivePolicy", policy)
			x.refused(err, invalidParameter(""))
		}
	}},
	{"3", inferred, onlyJSON, "characters of control in the text of an error", func(x *exam) {
		m := garbage()
		m.ReceiptHandle = aws.String("\x01\x1f\b\f\u007f\u2028")
		x.refused(x.tryDelete(x.queue("orders"), m), plainly(404, "ReceiptHandleIsInvalid", `The input receipt handle "`+*m.ReceiptHandle+`" is not a valid receipt handle.`))
	}},
	{"2.2", inferred, inBoth, "a receive that waits ends when its queue is deleted", func(x *exam) {
		v, come := x.announcing()
		q := v.queue("orders")
		done := make(chan time.Duration)
		begin := time.Now()
		go func() {
			_, _ = v.api.ReceiveMessage(v.Context(), &sqs.ReceiveMessageInput{QueueUrl: &q, WaitTimeSeconds: 20})
			done <- time.Since(begin)
		}()
		<-come
		v.ok(v.drop(q))
		if took := <-done; took > 15*time.Second {
			v.Errorf("it took %v", took)
		}
	}},
	{"2.11", secondHand, inBoth, "in a batch, a visibility timeout that is absent is not zero", func(x *exam) {
		q := x.queue("orders")
		x.send(q, "a")
		handle := *x.one(q).ReceiptHandle
		if x.query() {
			x.rawForm("/000000000000/orders", "Action=ChangeMessageVisibilityBatch&ChangeMessageVisibilityBatchRequestEntry.1.Id=a"+
				"&ChangeMessageVisibilityBatchRequestEntry.1.ReceiptHandle="+strings.ReplaceAll(handle, "+", "%2B"))
		} else {
			x.rawJSON("/", "AmazonSQS.ChangeMessageVisibilityBatch", `{"QueueUrl":"`+q+`","Entries":[{"Id":"a","ReceiptHandle":"`+handle+`"}]}`)
		}
		x.contains(x.wire.last(), "MissingParameter")
		x.gives(q)
	}},
	{"1.5", observed, onlyQuery, "indexes of a batch and inside it may have gaps", func(x *exam) {
		q := x.queue("orders")
		const key = "&SendMessageBatchRequestEntry."
		x.rawForm("/000000000000/orders", "Action=SendMessageBatch"+key+"10.Id=b"+key+"10.MessageBody=second"+key+"3.Id=a"+key+"3.MessageBody=first"+
			key+"3.MessageAttribute.4.Name=n"+key+"3.MessageAttribute.4.Value.DataType=Number"+key+"3.MessageAttribute.4.Value.StringValue=7"+
			key+"3.MessageAttribute.2.Name=s"+key+"3.MessageAttribute.2.Value.DataType=String"+key+"3.MessageAttribute.2.Value.StringValue=x%20y%2Bz")
		got := x.receive(q, messageNames("All"))
		x.equal("bodies", bodies(got), []string{"first", "second"})
		x.equal("attributes", []string{*got[0].MessageAttributes["n"].StringValue, *got[0].MessageAttributes["s"].StringValue}, []string{"7", "x y+z"})
	}},
	{"2.3", documented, inBoth, "a thousand queues and no token for who asks for no pages", func(x *exam) {
		for i := range 1001 {
			x.queue("q" + strings.Repeat("0", 4-len(strconv.Itoa(i))) + strconv.Itoa(i))
		}
		out, err := x.api.ListQueues(x.ctx(), &sqs.ListQueuesInput{})
		x.ok(err)
		x.equal("queues", len(out.QueueUrls), 1000)
		x.equal("token", out.NextToken, (*string)(nil))
	}},
	{"2.3", documented, inBoth, "ListDeadLetterSourceQueues has pages, too", func(x *exam) {
		dlq := x.queue("dlq")
		var all, got []string
		for i := range 3 {
			all = append(all, x.queue("q"+strconv.Itoa(i), "RedrivePolicy", x.policy("dlq", 1)))
		}
		var token *string
		for range 2 {
			out, err := x.api.ListDeadLetterSourceQueues(x.ctx(), &sqs.ListDeadLetterSourceQueuesInput{QueueUrl: &dlq, MaxResults: aws.Int32(2), NextToken: token})
			x.ok(err)
			got, token = append(got, out.QueueUrls...), out.NextToken
		}
		x.equal("pages", got, all)
		x.equal("token of the last", token, (*string)(nil))
	}},
}

// struck is an exam whose server has a fault in every send.
func (x *exam) struck(kind sqsd.FaultKind) *exam {
	return openExam(x.T, x.protocol, sqsd.Options{Fault: func(op sqsd.FaultOp, _ string) (sqsd.Fault, bool) {
		return sqsd.Fault{Kind: kind}, op == sqsd.OpSend
	}})
}
