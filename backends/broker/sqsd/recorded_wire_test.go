package sqsd_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// Number 1: how requests and answers are written.
var recordedWire = []statement{
	{"1.1", recorded, onlyJSON, "JSON may be posted to the path of a queue", func(x *exam) {
		q := x.queue("orders")
		e := x.rawJSON("/000000000000/orders", "AmazonSQS.SendMessage", `{"QueueUrl":"`+q+`","MessageBody":"a"}`)
		x.equal("status", e.status, 200)
		x.contains(e, `"MD5OfMessageBody":"`+md5Hex("a")+`"`)
		x.gives(q, "a")
	}},
	{"1.1", recorded, onlyQuery, "a GET without Action is a 404 in XML, whatever it accepts", func(x *exam) {
		x.queue("orders")
		for _, path := range []string{"/", "/000000000000/orders"} {
			for _, accept := range []string{"", "application/json"} {
				e := x.raw(http.MethodGet, path, map[string]string{"Accept": accept}, "")
				x.equal("status", e.status, 404)
				root, err := parseXML(e.body)
				x.ok(err)
				x.equal("root", root.XMLName.Local, "UnknownOperationException")
			}
		}
	}},
	{"1.1", recorded, onlyQuery, "a GET with Action is the Query protocol, without Version too", func(x *exam) {
		x.queue("orders")
		e := x.raw(http.MethodGet, "/000000000000/orders?Action=GetQueueAttributes&AttributeName.1=QueueArn", nil, "")
		x.equal("status", e.status, 200)
		x.contains(e, "<GetQueueAttributesResponse", "<Attribute><Name>QueueArn</Name><Value>"+x.arn("orders")+"</Value></Attribute>")
		x.lacks(e, "VisibilityTimeout")
	}},
	{"1.1", secondHand, onlyJSON, "a target that is unknown or missing", func(x *exam) {
		for _, target := range []string{"AmazonSQS.FooBar", "Other.ListQueues", ""} {
			e := x.rawJSON("/", target, "{}")
			x.equal("status", e.status, 400)
			x.equal("x-amzn-query-error", e.header.Get("X-Amzn-Query-Error"), "InvalidAction;Sender")
			x.contains(e, `"__type":"com.amazon.coral.service#UnknownOperationException"`)
		}
	}},
	{"1.1", recorded, onlyQuery, "an unknown action", func(x *exam) {
		x.queue("orders")
		for _, path := range []string{"/", "/000000000000/orders"} {
			e := x.raw(http.MethodGet, path+"?Action=FooBar&Version=2012-11-05", nil, "")
			x.refusedXML(e, refusal{status: 400, code: "InvalidAction", text: "The action FooBar is not valid for this endpoint."})
			x.equal("status", e.status, 400)
			x.contains(e, "<Code>InvalidAction</Code>", "<Type>Sender</Type>")
		}
	}},
	{"1.1", recorded, onlyQuery, "a missing parameter of a GET", func(x *exam) {
		x.queue("orders")
		e := x.raw(http.MethodPost, "/000000000000/orders?Action=SendMessage", map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, "")
		x.equal("status", e.status, 400)
		x.contains(e, "<Code>MissingParameter</Code>", "<Type>Sender</Type>", "<Message>The request must contain the parameter MessageBody.</Message>")
	}},
	{"1.1", recorded, onlyQuery, "a GET of an unknown attribute and of a deleted queue", func(x *exam) {
		q := x.queue("orders")
		e := x.raw(http.MethodGet, "/000000000000/orders?Action=GetQueueAttributes&AttributeName.1=Foobar", nil, "")
		x.contains(e, "<Type>Sender</Type>", "<Code>InvalidAttributeName</Code>", "<Message>Unknown Attribute Foobar.</Message>")
		x.ok(x.drop(q))
		e = x.raw(http.MethodGet, "/000000000000/orders?Action=GetQueueAttributes&AttributeName.1=QueueArn", nil, "")
		x.equal("status", e.status, 400)
		x.contains(e, "<Code>AWS.SimpleQueueService.NonExistentQueue</Code>", "<Message>The specified queue does not exist for this wsdl version")
	}},
	{"1.1", inferred, onlyJSON, "X-Amz-Target decides before the content type, and members that no action has are ignored", func(x *exam) {
		q := x.queue("orders")
		e := x.raw(http.MethodPost, "/", map[string]string{"x-amz-target": "AmazonSQS.GetQueueAttributes", "Content-Type": "application/x-www-form-urlencoded"},
			`{"QueueUrl":"`+q+`","AttributeNames":["QueueArn"],"AttributeName.1":"All","Nested":{"a":[1,{"b":null}]}}`)
		x.equal("status", e.status, 200)
		x.equal("body", string(e.body), `{"Attributes":{"QueueArn":"`+x.arn("orders")+`"}}`)
	}},
	{"1.1", inferred, onlyQuery, "form keys that no action has are ignored", func(x *exam) {
		q := x.queue("orders")
		e := x.rawForm("/", "Action=GetQueueAttributes&Nonsense=1&Entry.1.Id=x&QueueUrl="+url.QueryEscape(q)+"&AttributeName.1=QueueArn")
		x.contains(e, "<Value>"+x.arn("orders")+"</Value>")
	}},
	{"1.2", inferred, onlyJSON, "a body that is empty is as good as an empty object", func(x *exam) {
		for _, body := range []string{"", " ", "{}", " { } "} {
			e := x.rawJSON("/", "AmazonSQS.ListQueues", body)
			x.equal("status of "+body, e.status, 200)
			x.equal("body", string(e.body), "{}")
		}
	}},
	{"1.2", secondHand, onlyJSON, "a body that is no object", func(x *exam) {
		for _, body := range []string{"[]", "1", `"a"`, `{"QueueName":`, "null x"} {
			e := x.rawJSON("/", "AmazonSQS.CreateQueue", body)
			x.equal("status of "+body, e.status, 400)
			x.equal("x-amzn-query-error", e.header.Get("X-Amzn-Query-Error"), "MalformedInput;Sender")
			x.contains(e, `"__type":"com.amazon.coral.service#SerializationException"`)
		}
	}},
	{"1.2", inferred, onlyJSON, "numbers and truth values are taken for attributes, and texts for numbers", func(x *exam) {
		e := x.rawJSON("/", "AmazonSQS.CreateQueue", `{"QueueName":"a.fifo","Attributes":{"VisibilityTimeout":31,"FifoQueue":true,"SqsManagedSseEnabled":false}}`)
		x.equal("status", e.status, 200)
		q := x.base + "/000000000000/a.fifo"
		x.has(q, "VisibilityTimeout", "31", "FifoQueue", "true", "SqsManagedSseEnabled", "false")
		e = x.rawJSON("/", "AmazonSQS.ReceiveMessage", `{"QueueUrl":"`+q+`","MaxNumberOfMessages":"10","WaitTimeSeconds":"0"}`)
		x.equal("body", string(e.body), "{}")
	}},
	{"1.2", secondHand, inBoth, "list values are not supported", func(x *exam) {
		q := x.queue("orders")
		if x.query() {
			for _, value := range []string{"DataType=String&MessageAttribute.1.Value.StringListValue.1=x", "DataType=Binary&MessageAttribute.1.Value.BinaryListValue.1=AQ%3D%3D"} {
				e := x.rawForm("/", "Action=SendMessage&MessageBody=a&QueueUrl="+url.QueryEscape(q)+"&MessageAttribute.1.Name=a&MessageAttribute.1.Value."+value)
				x.contains(e, "<Code>AWS.SimpleQueueService.UnsupportedOperation</Code>")
				x.equal("status", e.status, 400)
			}
			return
		}
		_, err := x.trySend(q, "a", func(in *sqs.SendMessageInput) {
			in.MessageAttributes = map[string]types.MessageAttributeValue{"a": {DataType: aws.String("String"), StringListValues: []string{"x"}}}
		})
		x.refused(err, prefixed(400, "UnsupportedOperation", ""))
		_, err = x.trySend(q, "a", func(in *sqs.SendMessageInput) {
			in.MessageAttributes = map[string]types.MessageAttributeValue{"a": {DataType: aws.String("Binary"), BinaryListValues: [][]byte{{1}}}}
		})
		x.refused(err, prefixed(400, "UnsupportedOperation", ""))
	}},
	{"1.2", inferred, inBoth, "a body over the limit is a 413", func(x *exam) {
		q := x.queue("orders")
		_, err := x.trySend(q, strings.Repeat("x", 20<<20))
		if err == nil {
			x.Error("no error")
		}
		x.equal("status", x.wire.last().status, 413)
	}},
	{"1.3", recorded, onlyJSON, "content type, request id and no checksum header", func(x *exam) {
		x.queue("orders")
		h := x.wire.last().header
		x.equal("Content-Type", h.Get("Content-Type"), "application/x-amz-json-1.0")
		x.equal("length of x-amzn-RequestId", len(h.Get("X-Amzn-Requestid")), 36)
		x.equal("x-amz-crc32", h.Get("X-Amz-Crc32"), "")
		if h.Get("Date") == "" || h.Get("Content-Length") == "" {
			x.Errorf("no Date or no Content-Length in %v", h)
		}
	}},
	{"1.3", observed, inBoth, "actions without an answer", func(x *exam) {
		q := x.queue("orders")
		empty := func() {
			x.Helper()
			if b := string(x.wire.last().body); !x.query() && b != "" && b != "{}" {
				x.Errorf("an answer: %s", b)
			}
		}
		x.send(q, "a")
		m := x.one(q)
		x.hide(q, m, 1)
		empty()
		x.delete(q, m)
		empty()
		x.ok(x.set(q, "DelaySeconds", "1"))
		empty()
		x.ok(x.tag(q, "a", "b"))
		empty()
		_, err := x.api.UntagQueue(x.ctx(), &sqs.UntagQueueInput{QueueUrl: &q, TagKeys: []string{"a"}})
		x.ok(err)
		empty()
		x.ok(x.tryPurge(q))
		empty()
		x.ok(x.drop(q))
		empty()
	}},
	{"1.3", recorded, inBoth, "an empty receive has no list", func(x *exam) {
		x.receive(x.queue("orders"))
		if !x.query() {
			x.equal("body", string(x.wire.last().body), "{}")
			return
		}
		x.contains(x.wire.last(), "<ReceiveMessageResult/>")
	}},
	{"1.3", recorded, inBoth, "ListQueues without a match has no list", func(x *exam) {
		x.queue("orders")
		x.list("nothing")
		if !x.query() {
			x.equal("body", string(x.wire.last().body), "{}")
		}
		x.lacks(x.wire.last(), "QueueUrl")
	}},
	{"1.3", recorded, inBoth, "GetQueueAttributes with nothing to return has no list", func(x *exam) {
		x.attributes(x.queue("orders"), "RedrivePolicy")
		if !x.query() {
			x.equal("body", string(x.wire.last().body), "{}")
		}
		x.lacks(x.wire.last(), "<Attribute>")
	}},
	{"1.3", recorded, inBoth, "ListQueueTags without tags has no list", func(x *exam) {
		x.tags(x.queue("orders"))
		if !x.query() {
			x.equal("body", string(x.wire.last().body), "{}")
		}
		x.lacks(x.wire.last(), "<Tag>")
	}},
	{"1.3", recorded, inBoth, "a batch has only the list that is not empty", func(x *exam) {
		q := x.queue("orders")
		_, err := x.batch(q, entry("a"))
		x.ok(err)
		x.lacks(x.wire.last(), "Failed", "BatchResultErrorEntry")
		_, err = x.batch(q, entry("\x01"))
		x.ok(err)
		x.lacks(x.wire.last(), "Successful", "SendMessageBatchResultEntry")
	}},
	{"1.3", secondHand, inBoth, "ListDeadLetterSourceQueues with none", func(x *exam) {
		q := x.queue("orders")
		out, err := x.api.ListDeadLetterSourceQueues(x.ctx(), &sqs.ListDeadLetterSourceQueuesInput{QueueUrl: &q})
		x.ok(err)
		x.equal("queues", len(out.QueueUrls), 0)
		x.lacks(x.wire.last(), "null", "<QueueUrl>")
	}},
	{"1.4", recorded, inBoth, "a missing queue", func(x *exam) {
		_, err := x.trySend(x.base+"/000000000000/none", "a")
		x.refused(err, noQueue())
	}},
	{"1.5", observed, onlyQuery, "indexes may have gaps and start anywhere", func(x *exam) {
		e := x.rawForm("/", "Action=CreateQueue&QueueName=orders&Attribute.7.Name=DelaySeconds&Attribute.7.Value=3"+
			"&Attribute.2.Name=VisibilityTimeout&Attribute.2.Value=31&Attribute.12.Name=MessageRetentionPeriod&Attribute.12.Value=60")
		x.equal("status", e.status, 200)
		x.has(x.base+"/000000000000/orders", "DelaySeconds", "3", "VisibilityTimeout", "31", "MessageRetentionPeriod", "60")
	}},
	{"1.5", observed, onlyQuery, "names and attributes without an index", func(x *exam) {
		x.rawForm("/", "Action=CreateQueue&QueueName=orders&Attribute.Name=DelaySeconds&Attribute.Value=3")
		q := x.base + "/000000000000/orders"
		e := x.rawForm("/", "Action=GetQueueAttributes&AttributeName=DelaySeconds&QueueUrl="+url.QueryEscape(q))
		x.contains(e, "<GetQueueAttributesResult><Attribute><Name>DelaySeconds</Name><Value>3</Value></Attribute></GetQueueAttributesResult>")
		x.ok(x.set(q, "DelaySeconds", "0"))
		x.send(q, "a")
		e = x.rawForm("/000000000000/orders", "Action=ReceiveMessage&AttributeName=ApproximateReceiveCount")
		x.contains(e, "<Attribute><Name>ApproximateReceiveCount</Name><Value>1</Value></Attribute>")
	}},
	{"1.5", observed, onlyQuery, "both names of system attributes are taken", func(x *exam) {
		x.send(x.queue("orders"), "a")
		e := x.rawForm("/000000000000/orders", "Action=ReceiveMessage&AttributeName.1=ApproximateReceiveCount&MessageSystemAttributeName.1=SentTimestamp")
		x.contains(e, "<Name>ApproximateReceiveCount</Name>", "<Name>SentTimestamp</Name>")
	}},
	{"1.6", observed, onlyQuery, "root, namespace, result and metadata, in text/xml", func(x *exam) {
		x.queue("orders") // the client checks root, namespace and metadata of every answer
		x.equal("Content-Type", x.wire.last().header.Get("Content-Type"), "text/xml")
		root, err := parseXML(x.wire.last().body)
		x.ok(err)
		x.equal("elements", root.names(), []string{"CreateQueueResult", "ResponseMetadata"})
	}},
	{"1.6", observed, onlyQuery, "lists are flat", func(x *exam) {
		a, b := x.queue("a"), x.queue("b")
		x.list("")
		x.contains(x.wire.last(), "<ListQueuesResult><QueueUrl>"+a+"</QueueUrl><QueueUrl>"+b+"</QueueUrl></ListQueuesResult>")
		x.ok(x.tag(a, "k", "v"))
		x.tags(a)
		x.contains(x.wire.last(), "<ListQueueTagsResult><Tag><Key>k</Key><Value>v</Value></Tag></ListQueueTagsResult>")
		x.send(a, "body", text("t", "String", "v"), bytesOf("u", "Binary", []byte{1, 2}))
		x.receive(a, allSystem, messageNames("All"))
		root, err := parseXML(x.wire.last().body)
		x.ok(err)
		m := root.kid("ReceiveMessageResult").kid("Message")
		x.equal("elements of the message", m.names(), []string{
			"MessageId", "ReceiptHandle", "MD5OfBody", "Body", "Attribute", "Attribute", "Attribute", "Attribute",
			"MD5OfMessageAttributes", "MessageAttribute", "MessageAttribute",
		})
		x.contains(x.wire.last(),
			"<MessageAttribute><Name>t</Name><Value><DataType>String</DataType><StringValue>v</StringValue></Value></MessageAttribute>",
			"<MessageAttribute><Name>u</Name><Value><DataType>Binary</DataType><BinaryValue>AQI=</BinaryValue></Value></MessageAttribute>")
	}},
	{"1.6", recorded, onlyQuery, "quotes and carriage returns are escaped", func(x *exam) {
		q := x.queue("orders")
		body := "{\r\n\"machineID\" : \"d357\"}"
		x.send(q, body)
		m := x.one(q)
		x.contains(x.wire.last(), "<Body>{&#xD;\n&quot;machineID&quot; : &quot;d357&quot;}</Body>")
		x.equal("body", *m.Body, body)
	}},
	{"1.6", recorded, inBoth, "carriage returns, quotes, entities and other planes come back as they were", func(x *exam) {
		q := x.queue("orders")
		body := "{\r\n" + `"a":"<b>&amp;` + "\t' é ∞ \U0001F600 \ufffd" + `"}`
		x.send(q, body, text("a", "String", body))
		m := x.one(q, messageNames("All"))
		x.equal("body", *m.Body, body)
		x.equal("attribute", *m.MessageAttributes["a"].StringValue, body)
	}},
	{"1.6", recorded, onlyQuery, "a GET that accepts JSON gets the same document in JSON", func(x *exam) {
		q := x.queue("orders")
		e := x.raw(http.MethodGet, "/?Action=ListQueues", map[string]string{"Accept": "application/json"}, "")
		var list struct {
			ListQueuesResponse struct {
				ListQueuesResult struct {
					QueueUrls []string `json:"queueUrls"`
				}
			}
		}
		x.ok(json.Unmarshal(e.body, &list))
		x.equal("queues in "+string(e.body), list.ListQueuesResponse.ListQueuesResult.QueueUrls, []string{q})
	}},
	{"1.6", recorded, onlyQuery, "in that JSON, attributes are a list of names and values", func(x *exam) {
		x.queue("orders")
		e := x.raw(http.MethodGet, "/000000000000/orders?Action=GetQueueAttributes&AttributeName.1=QueueArn", map[string]string{"Accept": "application/json"}, "")
		var doc struct {
			GetQueueAttributesResponse struct {
				GetQueueAttributesResult struct {
					Attributes []struct{ Name, Value string }
				}
			}
		}
		if err := json.Unmarshal(e.body, &doc); err != nil {
			x.Fatalf("%v in %s", err, e.body)
		}
		x.equal("attributes", doc.GetQueueAttributesResponse.GetQueueAttributesResult.Attributes, []struct{ Name, Value string }{{"QueueArn", x.arn("orders")}})
	}},
	{"1.6", recorded, onlyQuery, "an error for who accepts JSON", func(x *exam) {
		x.queue("orders")
		e := x.raw(http.MethodGet, "/000000000000/orders?Action=ListQueues", map[string]string{"Accept": "application/json"}, "")
		x.equal("status", e.status, 400)
		var doc struct {
			Error struct{ Code, Message string }
		}
		if err := json.Unmarshal(e.body, &doc); err != nil {
			x.Fatalf("%v in %s", err, e.body)
		}
		x.equal("code", doc.Error.Code, "InvalidAction")
		x.equal("message", doc.Error.Message, "The action ListQueues is not valid for this endpoint.")
	}},
	{"1.6", recorded, onlyQuery, "an error has a type, a code, a text and an empty detail", func(x *exam) {
		_, err := x.trySend(x.base+"/000000000000/none", "a")
		x.refused(err, noQueue()) // which checks them all
		x.contains(x.wire.last(), "<Detail/>", "for this wsdl version.")
	}},
	{"1.7", inferred, inBoth, "a queue's URL has the host of the request that asked", func(x *exam) {
		q := x.queue("orders")
		x.equal("URL", q, x.base+"/000000000000/orders")
		e := x.raw(http.MethodGet, "/?Action=GetQueueUrl&QueueName=orders", map[string]string{"Host": "queues.example:12345"}, "")
		x.contains(e, "<QueueUrl>http://queues.example:12345/000000000000/orders</QueueUrl>")
	}},
	{"1.7", recorded, inBoth, "a bare name is taken for the URL", func(x *exam) {
		q := x.queue("orders")
		x.send("orders", "Using name instead of URL")
		x.gives(q, "Using name instead of URL")
	}},
	{"1.7", inferred, inBoth, "other hosts, trailing slashes and the forms of other emulators", func(x *exam) {
		x.queue("orders")
		for _, u := range []string{
			"https://sqs.us-east-1.amazonaws.com/000000000000/orders", "http://other:1/000000000000/orders/",
			"/000000000000/orders", "http://localhost:4566/queue/us-east-1/000000000000/orders", "http://localhost:9324/queue/orders",
		} {
			x.send(u, u)
		}
		x.equal("sent", len(x.receive("orders")), 5)
	}},
	{"1.7", recorded, onlyQuery, "the parameter QueueUrl wins over the path", func(x *exam) {
		x.queue("one")
		two := x.queue("two")
		e := x.raw(http.MethodGet, "/000000000000/one?Action=GetQueueAttributes&AttributeName.1=QueueArn&QueueUrl="+url.QueryEscape(two), nil, "")
		x.contains(e, x.arn("two"))
		x.lacks(e, x.arn("one"))
	}},
	{"1.7", recorded, onlyQuery, "the path routes what has no QueueUrl", func(x *exam) {
		x.queue("one")
		x.queue("two")
		form := map[string]string{"Content-Type": "application/x-www-form-urlencoded"}
		x.equal("status", x.raw(http.MethodPost, "/000000000000/one", form, "Action=SendMessage&MessageBody=foobar").status, 200)
		e := x.raw(http.MethodPost, "/000000000000/two", form, "Action=ReceiveMessage")
		x.contains(e, "<ReceiveMessageResult/>")
		e = x.raw(http.MethodPost, "/000000000000/one", form, "Action=ReceiveMessage")
		x.contains(e, "<Body>foobar</Body>", "<MD5OfBody>")
		e = x.raw(http.MethodPost, "/000000000000/two", form, "Action=DeleteQueue")
		x.contains(e, "<DeleteQueueResponse ")
		x.equal("left", x.list(""), []string{x.base + "/000000000000/one"})
	}},
	{"1.7", recorded, onlyQuery, "CreateQueue and ListQueues are not valid on the path of a queue", func(x *exam) {
		x.queue("orders")
		for _, action := range []string{"CreateQueue&QueueName=other", "ListQueues"} {
			e := x.rawForm("/000000000000/orders", "Action="+action)
			name, _, _ := strings.Cut(action, "&")
			x.equal("status", e.status, 400)
			x.contains(e, "<Code>InvalidAction</Code>", "<Message>The action "+name+" is not valid for this endpoint.</Message>")
		}
		x.equal("queues", len(x.list("")), 1)
	}},
	{"1.7", recorded, onlyQuery, "GetQueueUrl is allowed on the path of any queue", func(x *exam) {
		one, two := x.queue("one"), x.queue("two")
		for name, u := range map[string]string{"one": one, "two": two} {
			e := x.raw(http.MethodGet, "/000000000000/one?Action=GetQueueUrl&QueueName="+name, nil, "")
			x.equal("status", e.status, 200)
			x.contains(e, "<QueueUrl>"+u+"</QueueUrl>")
		}
	}},
	{"1.7", secondHand, onlyJSON, "a QueueUrl that is missing or empty is a missing queue", func(x *exam) {
		_, err := x.trySend("", "a")
		x.refused(err, noQueue())
		_, err = x.api.SendMessage(x.ctx(), &sqs.SendMessageInput{MessageBody: aws.String("a")})
		x.refused(err, noQueue())
	}},
	{"1.7", documented, inBoth, "names compare with case", func(x *exam) {
		x.queue("orders")
		_, err := x.trySend(x.base+"/000000000000/Orders", "a")
		x.refused(err, noQueue())
	}},
}

// 1.9: the check sums that clients calculate, too.
var recordedMD5 = []statement{
	{"1.9", recorded, inBoth, "the recorded check sums", func(x *exam) {
		q := x.queue("orders")
		x.equal("of a body", *x.send(q, "Using name instead of URL").MD5OfMessageBody, "86a83f96652a1bfad3891e7d523750cb")
		x.equal("of a String", *x.send(q, "a", text("Foo", "String", "Bar")).MD5OfMessageAttributes, "ae7155c6026991b6d54b11589678bf9c")
		x.equal("of a Number", *x.send(q, "a", text("timestamp", "Number", "1493147359900")).MD5OfMessageAttributes, "235c5c510d26fb653d073faed50ae77c")
		x.receive(q)
	}},
	{"1.9", recorded, inBoth, "the check sum of a binary attribute, sent and received", func(x *exam) {
		q := x.queue("orders")
		value := []byte("traceparent\x1e00-774062d6c37081a5a0b9b5b88e30627c-2d2482211f6489da-01")
		out := x.send(q, "a", bytesOf("attr1", "Binary", value))
		x.equal("sent", *out.MD5OfMessageAttributes, "8cbe4db156db8a94db8b801b7addb984")
		m := x.one(q, messageNames("All"))
		x.equal("received", *m.MD5OfMessageAttributes, "8cbe4db156db8a94db8b801b7addb984")
		x.equal("value", m.MessageAttributes["attr1"].BinaryValue, value)
	}},
	{"1.9", recorded, inBoth, "the check sum of system attributes stands alone", func(x *exam) {
		q := x.queue("orders")
		const header = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"
		without := x.send(q, "a", text("timestamp", "Number", "1493147359900"))
		out := x.send(q, "a", text("timestamp", "Number", "1493147359900"), trace(header))
		x.equal("MD5OfMessageSystemAttributes", aws.ToString(out.MD5OfMessageSystemAttributes), "5ae4d5d7636402d80f4eb6d213245a88")
		x.equal("MD5OfMessageAttributes", out.MD5OfMessageAttributes, without.MD5OfMessageAttributes)
		x.equal("without", without.MD5OfMessageSystemAttributes, (*string)(nil))
	}},
	{"1.9", recorded, inBoth, "without attributes there is no check sum of them", func(x *exam) {
		q := x.queue("orders")
		x.equal("sent", x.send(q, "a").MD5OfMessageAttributes, (*string)(nil))
		x.lacks(x.wire.last(), "MD5OfMessageAttributes", "MD5OfMessageSystemAttributes")
		x.one(q, messageNames("All"))
		x.lacks(x.wire.last(), "MD5OfMessageAttributes", "MessageAttribute")
	}},
	{"1.9", recorded, inBoth, "the check sum of a receive is of what is returned", func(x *exam) {
		q := x.queue("orders")
		x.send(q, "a", text("Hello", "String", "1"), text("Foo", "Number.int", "2"), bytesOf("Bin", "Binary.gif", []byte{0, 255}))
		for _, names := range [][]string{{"Hello"}, {"Foo", "Bin"}, {"nothing"}, {}} {
			messages := x.open(q, messageNames(names...)) // which checks the sums
			if len(names) != len(messages[0].MessageAttributes) && names[0] != "nothing" {
				x.Errorf("%v gives %v", names, show(messages[0].MessageAttributes))
			}
		}
	}},
	{"1.9", recorded, inBoth, "the recorded check sums of what is returned", func(x *exam) {
		q := x.queue("orders")
		out := x.send(q, "msg", text("Help.Me", "String", "Me"), text("Hello", "String", "There"), text("General", "String", "Kenobi"))
		x.equal("sent", *out.MD5OfMessageAttributes, "4c360f3fdafd970e05fae2f149d997f5")
		x.equal("body", *out.MD5OfMessageBody, "6e2baaf3b97dbeef01c0043275f9a0e7")
		for _, c := range []struct {
			names []string
			sum   *string
		}{
			{[]string{"All"}, aws.String("4c360f3fdafd970e05fae2f149d997f5")},
			{[]string{"*"}, aws.String("4c360f3fdafd970e05fae2f149d997f5")},
			{[]string{".*"}, aws.String("4c360f3fdafd970e05fae2f149d997f5")},
			{[]string{"Hello", "General"}, aws.String("fca026605781cb4126a1e9044df24232")},
			{[]string{"Hello", "Foo"}, aws.String("a311262e065454b75da111d535b8dacd")},
			{[]string{"Hel.*"}, aws.String("83fee93c1bcd8b9a5a923ffacdc636c7")},
			{[]string{"Foo", "Help"}, nil},
			{nil, nil},
		} {
			x.equal(show(c.names), x.open(q, messageNames(c.names...))[0].MD5OfMessageAttributes, c.sum)
		}
	}},
	{"1.9", recorded, inBoth, "custom labels count in the check sum", func(x *exam) {
		q := x.queue("orders")
		x.send(q, "a", text("n", "Number.int", "007"), text("s", "String.json", "{}"), bytesOf("b", "Binary.png", []byte("\x89PNG")), text("big", "Number", "1.50E+10"))
		m := x.one(q, messageNames("All"))
		x.equal("label", *m.MessageAttributes["n"].DataType, "Number.int")
		x.equal("number", *m.MessageAttributes["n"].StringValue, "007")
		x.equal("large number", *m.MessageAttributes["big"].StringValue, "1.50E+10")
	}},
}
