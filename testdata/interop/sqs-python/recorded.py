"""What Amazon SQS was recorded to answer, statement by statement, as boto3 sees it.

Each statement has the number of its topic: 1 the protocols, 2 the actions (2.1 CreateQueue, 2.2
DeleteQueue, 2.3 the lists, 2.4 GetQueueUrl, 2.5 and 2.6 attributes, 2.7 and 2.8 sending, 2.9
receiving, 2.10 deleting, 2.11 visibility, 2.12 purging, 2.13 tags and permissions, 2.14 moving), 3
errors, 4 how messages behave. Not among them is what takes longer than a check may: retention, and
the five minutes of deduplication.
"""

import base64
import json
import time
import uuid
from itertools import count
from urllib.parse import urlencode

from client import (
    ACCOUNT,
    ENDPOINT,
    JSON,
    REGION,
    SYSTEM,
    arn,
    attributes,
    binary,
    bodies,
    change,
    client,
    counts,
    delete,
    name,
    number,
    one,
    queue,
    raw,
    receive,
    redrive_policy,
    refused,
    release,
    send,
    sqs,
    string,
    take,
    with_dlq,
)
from harness import check, equal, eventually, true, unique

_statements, _expectations = count(), count()


def recorded(topic, statement, protocol=None):
    """Adds a statement, which holds in both protocols unless one is named."""

    def add(fn):
        if protocol in (None, "json" if JSON else "query"):
            next(_statements)
            check(f"recorded {topic}: {statement}")(fn)

    return add


def summary():
    return f"recorded: {next(_statements)} statements, {next(_expectations)} expectations"


def expect(got, want, what):
    next(_expectations)
    equal(got, want, what)


def refuses(shape, text, fn, *args, **kwargs):
    """Expects the error of a shape, with a text unless that was not recorded."""
    next(_expectations)
    return refused(shape, fn, *args, text=text, **kwargs)


# boto3 without its own look at what it is given.
blind = client(parameter_validation=False)

PARAMETER, MISSING = "InvalidParameterValueException", "MissingRequiredParameterException"
NAME, VALUE = "InvalidAttributeName", "InvalidAttributeValue"
NO_QUEUE = "The specified queue does not exist." if JSON else "The specified queue does not exist for this wsdl version."


def create(name_=None, **attributes_):
    return sqs.create_queue(QueueName=name_ or unique("q"), Attributes=attributes_)["QueueUrl"]


def setting(url, **attributes_):
    sqs.set_queue_attributes(QueueUrl=url, Attributes=attributes_)


def has(url, **want):
    """Expects attributes of a queue; None for one that is absent."""
    got = attributes(url)
    expect({k: got.get(k) for k in want}, want, "attributes")


def reason(value, parameter, why):
    return f"Value {value} for parameter {parameter} is invalid. Reason: {why}"


def fifo(**attributes_):
    return queue(fifo=True, **attributes_)


def put(url, body, group="g", **kwargs):
    """Sends to a FIFO queue, with an id of its own unless one is given."""
    kwargs.setdefault("MessageDeduplicationId", str(uuid.uuid4()))
    return send(url, body, MessageGroupId=group, **kwargs)


def entries(n, body="x", **more):
    return [{"Id": f"id_{i}", "MessageBody": body} | more for i in range(n)]


def batch(url, entries_):
    return sqs.send_message_batch(QueueUrl=url, Entries=entries_)


def form(url="", accept=None, method="POST", path="/", **parameters):
    """Sends a request of AWS Query that boto3 would not."""
    headers = {"Accept": accept} if accept else {}
    text = urlencode(parameters)
    if method == "GET":
        return raw("GET", f"{url or ENDPOINT + path}?{text}", headers)
    headers["Content-Type"] = "application/x-www-form-urlencoded"
    return raw("POST", url or ENDPOINT + path, headers, text.encode())


def post(action, body, url=ENDPOINT + "/", **headers):
    """Sends a request of AWS JSON that boto3 would not."""
    headers |= {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "AmazonSQS." + action}
    return raw("POST", url, headers, body.encode() if isinstance(body, str) else json.dumps(body).encode())


# --- 1: the protocols --------------------------------------------------------------------------


@recorded("1.1", "AWS JSON is taken on the path of a queue, too", "json")
def _():
    q = queue()
    status, headers, text = post("SendMessage", {"QueueUrl": q, "MessageBody": "hello"}, url=q)
    expect((status, headers["Content-Type"]), (200, "application/x-amz-json-1.0"), "status and type")
    expect(json.loads(text)["MD5OfMessageBody"], "5d41402abc4b2a76b9719d911017c592", "digest")
    expect(bodies(receive(q)), ["hello"], "messages")


@recorded("1.1", "GET without an action is an unknown operation, in XML", "query")
def _():
    for accept in [None, "application/json"]:
        status, _, text = raw("GET", ENDPOINT + "/", {"Accept": accept} if accept else {})
        expect((status, "<UnknownOperationException/>" in text), (404, True), f"answer {text}")


@recorded("1.3", "empty collections are left out", "json")
def _():
    q = queue()
    for action, body in [
        ("ReceiveMessage", {"QueueUrl": q}),
        ("ListQueues", {"QueueNamePrefix": unique("absent")}),
        ("GetQueueAttributes", {"QueueUrl": q, "AttributeNames": ["Policy"]}),
        ("ListQueueTags", {"QueueUrl": q}),
    ]:
        status, headers, text = post(action, body)
        expect((status, headers["Content-Type"], json.loads(text)), (200, "application/x-amz-json-1.0", {}), action)
        true(headers["x-amzn-RequestId"], "no id of the request")


@recorded("1.3", "a batch has the list alone that is not empty")
def _():
    q = queue(MaximumMessageSize=1024)
    expect(sorted(batch(q, entries(1)).keys() - {"ResponseMetadata"}), ["Successful"], "lists")
    failed = batch(q, entries(1, "x" * 1025))
    expect(failed.get("Successful", []), [], "successes")
    expect(len(failed["Failed"]), 1, "failures")


@recorded("1.4", "a missing queue, in AWS JSON", "json")
def _():
    status, headers, text = post("SendMessage", {"QueueUrl": f"{ENDPOINT}/{ACCOUNT}/{unique('absent')}", "MessageBody": "x"})
    expect(status, 400, "status")
    expect(json.loads(text), {"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "The specified queue does not exist."}, "body")
    expect(headers["x-amzn-query-error"], "AWS.SimpleQueueService.NonExistentQueue;Sender", "x-amzn-query-error")
    expect(headers["Content-Type"], "application/x-amz-json-1.0", "type")


@recorded("1.4", "every error has the code of AWS Query in a header", "json")
def _():
    q = queue()
    for action, body, want in [
        ("GetQueueAttributes", {"QueueUrl": q, "AttributeNames": ["x"]}, ("com.amazonaws.sqs#InvalidAttributeName", "InvalidAttributeName;Sender")),
        ("ReceiveMessage", {"QueueUrl": q, "MaxNumberOfMessages": 11}, ("com.amazon.coral.service#InvalidParameterValueException", "InvalidParameterValue;Sender")),
        ("SendMessage", {"QueueUrl": q, "MessageBody": ""}, ("com.amazon.coral.service#MissingRequiredParameterException", "MissingParameter;Sender")),
    ]:
        status, headers, text = post(action, body)
        expect((status, json.loads(text)["__type"], headers["x-amzn-query-error"]), (400, *want), action)


@recorded("1.5", "Version may be missing, also of a GET", "query")
def _():
    q = queue()
    for method in ["GET", "POST"]:
        status, headers, text = form(method=method, Action="GetQueueUrl", QueueName=name(q))
        expect((status, headers["Content-Type"].split(";")[0], f"<QueueUrl>{q}</QueueUrl>" in text), (200, "text/xml", True), f"answer {text}")


@recorded("1.5", "AttributeNames and MessageSystemAttributeNames are the same parameter", "query")
def _():
    q = queue()
    send(q, "hello")
    _, _, text = form(q, Action="ReceiveMessage", **{"AttributeName.1": "SenderId"})
    expect((text.count("<Attribute>"), "<Name>SenderId</Name>" in text), (1, True), "attributes")


@recorded("1.6", "an error in XML has an empty Detail", "query")
def _():
    status, _, text = form(Action="GetQueueUrl", QueueName=unique("absent"))
    expect(status, 400, "status")
    want = (
        '<ErrorResponse xmlns="http://queue.amazonaws.com/doc/2012-11-05/"><Error><Type>Sender</Type>'
        "<Code>AWS.SimpleQueueService.NonExistentQueue</Code>"
        "<Message>The specified queue does not exist for this wsdl version.</Message><Detail/></Error><RequestId>"
    )
    expect(want in text, True, f"answer {text}")


@recorded("1.6", "an empty receive has an empty result", "query")
def _():
    _, _, text = form(queue(), Action="ReceiveMessage")
    expect("<ReceiveMessageResult/>" in text or "<ReceiveMessageResult></ReceiveMessageResult>" in text, True, f"answer {text}")


@recorded("1.6", "quotes and carriage returns are written as entities", "query")
def _():
    q = queue()
    send(q, 'a"b\r\n<&>')
    _, _, text = form(q, Action="ReceiveMessage")
    expect("<Body>a&quot;b&#xD;\n&lt;&amp;&gt;</Body>" in text, True, f"answer {text}")


@recorded("1.6", "what a client sends comes back as it was")
def _():
    q = queue()
    body = 'a"b\r\n<&>\r\t\U0001f600'
    send(q, body)
    expect(bodies(receive(q)), [body], "messages")


@recorded("1.6", "Accept: application/json turns the document of AWS Query into JSON", "query")
def _():
    q = queue()
    _, headers, text = form(method="GET", accept="application/json", Action="ListQueues", QueueNamePrefix=name(q))
    listed = json.loads(text)["ListQueuesResponse"]["ListQueuesResult"]
    expect(listed["QueueUrls"], [q], f"answer {text}")
    true("json" in headers["Content-Type"], f"type {headers['Content-Type']}")


@recorded("1.7", "a bare name is taken for the URL")
def _():
    q = queue()
    if JSON:
        sqs.send_message(QueueUrl=name(q), MessageBody="hello")
    else:  # this botocore takes QueueUrl for where to send to
        expect(form(Action="SendMessage", QueueUrl=name(q), MessageBody="hello")[0], 200, "status")
    expect(bodies(receive(q)), ["hello"], "messages")


@recorded("1.7", "the parameter QueueUrl goes before the path", "query")
def _():
    q, other = queue(), queue()
    expect(form(other, Action="SendMessage", QueueUrl=q, MessageBody="hello")[0], 200, "status")
    expect((counts(q)[0], counts(other)[0]), (1, 0), "messages")
    expect(form(other, Action="SendMessage", MessageBody="hello")[0], 200, "status")
    expect((counts(q)[0], counts(other)[0]), (1, 1), "messages")


@recorded("1.7", "actions that are of no queue are not valid at the URL of one; GetQueueUrl is", "query")
def _():
    q = queue()
    for action in ["CreateQueue", "ListQueues", "FooBar"]:
        status, _, text = form(q, Action=action, QueueName="x")
        expect((status, "<Code>InvalidAction</Code>" in text), (400, True), f"answer {text}")
        expect(f"<Message>The action {action} is not valid for this endpoint.</Message>" in text, True, f"answer {text}")
    expect(form(q, Action="GetQueueUrl", QueueName=name(q))[0], 200, "status")


@recorded("1.9", "the recorded digests of message attributes")
def _():
    q = queue()
    for attrs, want in [
        ({"Foo": string("Bar")}, "ae7155c6026991b6d54b11589678bf9c"),
        ({"timestamp": number("1493147359900")}, "235c5c510d26fb653d073faed50ae77c"),
    ]:
        expect(send(q, "x", MessageAttributes=attrs)["MD5OfMessageAttributes"], want, "digest of what was sent")
        m = one(q)
        expect((m["MessageAttributes"], m["MD5OfMessageAttributes"]), (attrs, want), "attributes and digest of what was received")
        delete(q, m)


@recorded("1.9", "the recorded digest of a trace header, which is not in that of the attributes")
def _():
    trace = {"AWSTraceHeader": string("Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1")}
    sent = send(queue(), "x", MessageSystemAttributes=trace)
    expect(sent["MD5OfMessageSystemAttributes"], "5ae4d5d7636402d80f4eb6d213245a88", "digest")
    expect("MD5OfMessageAttributes" in sent, False, "a digest without attributes")


@recorded("1.9", "without attributes there is no digest, and with some it is of those that are returned")
def _():
    q = queue()
    expect("MD5OfMessageAttributes" in send(q, "plain"), False, "digest")
    expect("MD5OfMessageAttributes" in one(q), False, "digest")
    send(q, "x", MessageAttributes={"Foo": string("Bar"), "other": string("x")})
    m = one(q, MessageAttributeNames=["Foo"])
    expect(m["MD5OfMessageAttributes"], "ae7155c6026991b6d54b11589678bf9c", "digest")
    release(q, m)
    m = one(q, MessageAttributeNames=[])
    expect({"MessageAttributes", "MD5OfMessageAttributes"} & m.keys(), set(), "members")


# --- 2.1 to 2.6: queues and their attributes ---------------------------------------------------


@recorded("2.1", "the attributes of KMS that are set to nothing or their default are not shown")
def _():
    q = queue(KmsMasterKeyId="testKeyId", KmsDataKeyReusePeriodSeconds=6000)
    has(q, KmsMasterKeyId="testKeyId", KmsDataKeyReusePeriodSeconds="6000")
    setting(q, KmsMasterKeyId="", KmsDataKeyReusePeriodSeconds="300")
    has(q, KmsMasterKeyId=None, KmsDataKeyReusePeriodSeconds=None)


@recorded("2.1", "SqsManagedSseEnabled ends with a key of KMS, and stays off without it")
def _():
    q = queue()
    has(q, SqsManagedSseEnabled="true")
    setting(q, KmsMasterKeyId="testKeyId")
    has(q, SqsManagedSseEnabled="false")
    setting(q, KmsMasterKeyId="")
    has(q, SqsManagedSseEnabled="false")


@recorded("2.1", "one kind of encryption at a time")
def _():
    text = "You can use one type of server-side encryption (SSE) at one time. You can either enable KMS SSE or SQS SSE."
    both = {"SqsManagedSseEnabled": "true", "KmsMasterKeyId": "testKeyId"}
    refuses(NAME, text, create, **both)
    refuses(NAME, text, setting, queue(), **both)


@recorded("2.1", "truth values are taken in any case")
def _():
    q = create(unique("q") + ".fifo", FifoQueue="True", ContentBasedDeduplication="TRUE", SqsManagedSseEnabled="False")
    has(q, FifoQueue="true", ContentBasedDeduplication="true", SqsManagedSseEnabled="false")


@recorded("2.1", "DeduplicationScope messageGroup does not need FifoThroughputLimit")
def _():
    has(fifo(DeduplicationScope="messageGroup"), DeduplicationScope="messageGroup", FifoThroughputLimit="perQueue")


@recorded("2.1", "attributes of FIFO queues on a standard one")
def _():
    for attribute, value in [("FifoQueue", "false"), ("ContentBasedDeduplication", "false"), ("ContentBasedDeduplication", "true")]:
        refuses(NAME, f"Unknown Attribute {attribute}.", create, **{attribute: value})
    for attribute, value in [("DeduplicationScope", "queue"), ("FifoThroughputLimit", "perQueue")]:
        refuses(NAME, f"You can specify the {attribute} only when FifoQueue is set to true.", create, **{attribute: value})


@recorded("2.1", "FifoQueue and the suffix go together, and names are of letters")
def _():
    refuses(PARAMETER, None, create, FifoQueue="true")
    refuses(PARAMETER, None, create, unique("q") + ".fifo")
    for name_ in ["invalid.name", "a/b", "/", "x" * 81, "with space", "\u00e9"]:
        refuses(PARAMETER, None, create, name_)
    create(f"{unique('q'):-<80}")


@recorded("2.1", "a queue may be made again without attributes, and with those that it has now")
def _():
    q = queue(DelaySeconds=1)
    expect(create(name(q)), q, "URL")
    expect(create(name(q), DelaySeconds="1", VisibilityTimeout="30"), q, "URL")
    setting(q, DelaySeconds="2", VisibilityTimeout="5")
    expect(create(name(q)), q, "URL")
    expect(create(name(q), DelaySeconds="2"), q, "URL")
    send(q, "x")
    expect(create(name(q), DelaySeconds="2", VisibilityTimeout="5"), q, "URL")
    text = "A queue already exists with the same name and a different value for attribute "
    refuses("QueueNameExists", text + "DelaySeconds", create, name(q), DelaySeconds="1")
    refuses("QueueNameExists", text + "VisibilityTimeout", create, name(q), VisibilityTimeout="30")


@recorded("2.1", "a name is not free for 60 seconds after its queue was deleted")
def _():
    q = queue()
    sqs.delete_queue(QueueUrl=q)
    text = "You must wait 60 seconds after deleting a queue before you can create another with the same name."
    refuses("QueueDeletedRecently", text, create, name(q))


@recorded("2.2", "a deleted queue is missing")
def _():
    q = queue()
    sqs.delete_queue(QueueUrl=q)
    refuses("QueueDoesNotExist", NO_QUEUE, attributes, q)
    refuses("QueueDoesNotExist", NO_QUEUE, sqs.delete_queue, QueueUrl=q)


@recorded("2.4", "GetQueueUrl")
def _():
    q = queue()
    expect(sqs.get_queue_url(QueueName=name(q))["QueueUrl"], q, "URL")
    refuses("QueueDoesNotExist", NO_QUEUE, sqs.get_queue_url, QueueName=unique("absent"))


@recorded("2.5", "all attributes of a new standard queue, and the four more of a FIFO queue")
def _():
    standard = {
        "ApproximateNumberOfMessages": "0",
        "ApproximateNumberOfMessagesNotVisible": "0",
        "ApproximateNumberOfMessagesDelayed": "0",
        "VisibilityTimeout": "30",
        "MaximumMessageSize": "1048576",
        "MessageRetentionPeriod": "345600",
        "DelaySeconds": "0",
        "ReceiveMessageWaitTimeSeconds": "0",
        "SqsManagedSseEnabled": "true",
    }
    more = {"FifoQueue": "true", "ContentBasedDeduplication": "false", "DeduplicationScope": "queue", "FifoThroughputLimit": "perQueue"}
    for q, want in [(queue(), standard), (fifo(), standard | more)]:
        got = attributes(q)
        for stamp in ["CreatedTimestamp", "LastModifiedTimestamp"]:
            true(abs(int(got.pop(stamp)) - time.time()) < 60, stamp)
        expect(got, want | {"QueueArn": f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name(q)}"}, "attributes")


@recorded("2.5", "attributes by name: known, unset and unknown ones")
def _():
    q = queue()
    expect(attributes(q, "DelaySeconds", "Policy"), {"DelaySeconds": "0"}, "attributes")
    refuses(NAME, "Unknown Attribute Foobar.", attributes, q, "Foobar")
    refuses(NAME, "Unknown Attribute Foobar.", attributes, q, "DelaySeconds", "Foobar")


@recorded("2.5", "what waits behind a message in flight of its group counts as visible")
def _():
    q = fifo()
    for i in range(5):
        put(q, f"m{i}")
    receive(q, 2)
    expect(counts(q), (3, 2, 0), "counts")


@recorded("2.6", "FifoQueue may be set to what it is")
def _():
    q = fifo()
    setting(q, FifoQueue="true")
    text = "Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not supported."
    refuses(VALUE, text, setting, q, FifoQueue="false")
    refuses(NAME, "Unknown Attribute FifoQueue.", setting, queue(), FifoQueue="true")


@recorded("2.6", "an empty RedrivePolicy or Policy removes it")
def _():
    q, dlq = with_dlq(5)
    expect(json.loads(attributes(q)["RedrivePolicy"]), json.loads(redrive_policy(dlq, 5)), "policy")
    policy = json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage", "Resource": arn(q)}]})
    setting(q, Policy=policy, RedrivePolicy="")
    has(q, Policy=policy, RedrivePolicy=None)
    setting(q, Policy="")
    has(q, Policy=None)


@recorded("2.6", "a DeduplicationScope that is changed later has no effect")
def _():
    q = fifo(DeduplicationScope="queue")
    setting(q, DeduplicationScope="messageGroup")
    has(q, DeduplicationScope="messageGroup")
    for g in "ab":
        put(q, f"of {g}", g, MessageDeduplicationId="d")
    expect(bodies(receive(q)), ["of a"], "messages")


@recorded("2.6", "ContentBasedDeduplication may be switched off")
def _():
    q = fifo(ContentBasedDeduplication="true")
    send(q, "x", MessageGroupId="g")
    setting(q, ContentBasedDeduplication="false")
    text = "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly"
    refuses(PARAMETER, text, send, q, "x", MessageGroupId="g")


# --- 2.7 and 2.8: sending ----------------------------------------------------------------------


@recorded("2.7", "a message of the limit passes, one byte more does not")
def _():
    q = queue(MaximumMessageSize=1024)
    text = "One or more parameters are invalid. Reason: Message must be shorter than 1024 bytes."
    attrs = {"k": string("v")}  # 1 + 6 + 1 bytes
    send(q, "x" * 1024)
    send(q, "x" * 1016, MessageAttributes=attrs)
    refuses(PARAMETER, text, send, q, "x" * 1025)
    refuses(PARAMETER, text, send, q, "x" * 1017, MessageAttributes=attrs)
    refuses(PARAMETER, text.replace("1024", "1048576"), send, queue(), "x" * 1048577)


@recorded("2.7", "an empty body")
def _():
    refuses(MISSING, "The request must contain the parameter MessageBody.", send, queue(), "")


@recorded("2.7", "characters that a body may not have")
def _():
    q = queue()
    for c in ["\0", "\x08", "\x0b", "\x1f", "\ufffe", "\uffff"]:
        refuses("InvalidMessageContents", None, send, q, f"a{c}b")
    send(q, "\t\n\r \ud7ff\ue000\ufffd\U00010000\U0010ffff")


@recorded("2.7", "names of attributes")
def _():
    q = queue()
    for name_ in ["a", "A-Za_z.0", "gr\u00f8\u00df", "x" * 256]:
        send(q, "x", MessageAttributes={name_: string("v")})
    for name_ in ["", "x" * 257, "a..b", ".a", "a.", "aws.x", "AWS.x", "Amazon.x", "a b"]:
        refuses(PARAMETER, None, send, q, "x", MessageAttributes={name_: string("v")})


@recorded("2.7", "types of attributes")
def _():
    q = queue()
    for type_ in ["", "string", "Text", "Str", "String" + "x" * 256]:
        refuses(PARAMETER, None, send, q, "x", MessageAttributes={"a": {"DataType": type_, "StringValue": "v"}})


@recorded("2.7", "values of attributes: not empty, and of the characters of a body")
def _():
    q = queue()
    text = "Message (user) attribute 'ErrorDetails' must contain a non-empty value of type 'String'."
    refuses(PARAMETER, text, send, q, "x", MessageAttributes={"ErrorDetails": string("")})
    refuses(PARAMETER, None, send, q, "x", MessageAttributes={"a": string("a\0b" if JSON else "a\x01b")})


@recorded("2.7", "more than ten attributes")
def _():
    refuses(PARAMETER, None, send, queue(), "x", MessageAttributes={f"a{i}": string("v") for i in range(11)})


@recorded("2.7", "a trace header, in a system attribute and in a header")
def _():
    q = queue()
    root = "Root=1-5759e988-bd862e3fe1be46a994272793"
    send(q, "as attribute", MessageSystemAttributes={"AWSTraceHeader": string(root)})
    if JSON:
        status, _, text = post("SendMessage", {"QueueUrl": q, "MessageBody": "as header"}, **{"X-Amzn-Trace-Id": root})
    else:
        headers = {"X-Amzn-Trace-Id": root, "Content-Type": "application/x-www-form-urlencoded"}
        status, _, text = raw("POST", q, headers, b"Action=SendMessage&MessageBody=as+header")
    expect(status, 200, f"status ({text})")
    expect({m["Body"]: m["Attributes"]["AWSTraceHeader"] for m in take(q, 2)}, {"as attribute": root, "as header": root}, "trace headers")


@recorded("2.7", "what a message to a FIFO queue must have")
def _():
    q = fifo()
    refuses(MISSING, "The request must contain the parameter MessageGroupId.", send, q, "x", MessageDeduplicationId="d")
    text = "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly"
    refuses(PARAMETER, text, send, q, "x", MessageGroupId="g")


@recorded("2.7", "FIFO: no delay of a message, but of the queue")
def _():
    q = fifo(DelaySeconds=2)
    text = reason(2, "DelaySeconds", "The request include parameter that is not valid for this queue type.")
    refuses(PARAMETER, text, put, q, "x", DelaySeconds=2)
    put(q, "x", DelaySeconds=0)
    expect(counts(q), (0, 0, 1), "counts")
    expect(receive(q), [], "messages")
    expect(bodies(receive(q, wait=5)), ["x"], "messages")


@recorded("2.7", "ids of groups and of deduplication")
def _():
    q = fifo()
    good = "".join(chr(c) for c in range(0x21, 0x7F))
    put(q, "x", good, MessageDeduplicationId=good)
    put(q, "x", "g" * 128, MessageDeduplicationId="d" * 128)
    text = "{0} can only include alphanumeric and punctuation characters. 1 to 128 in length."
    for bad in ["group 123", "gr\u00fcn", "g" * 129]:
        refuses(PARAMETER, reason(bad, "MessageGroupId", text.format("MessageGroupId")), put, q, "x", bad)
        refuses(PARAMETER, reason(bad, "MessageDeduplicationId", text.format("MessageDeduplicationId")), put, q, "x", MessageDeduplicationId=bad)


@recorded("2.7", "a standard queue takes a group, gives it back, and numbers nothing")
def _():
    q = queue()
    expect("SequenceNumber" in send(q, "x", MessageGroupId="tenant"), False, "number")
    got = one(q)["Attributes"]
    expect((got["MessageGroupId"], "SequenceNumber" in got), ("tenant", False), "group and number")


@recorded("2.7", "sequence numbers grow")
def _():
    q = fifo()
    numbers = [int(put(q, "x")["SequenceNumber"]) for _ in range(3)]
    expect(numbers, sorted(set(numbers)), "numbers")


SEND = "There should be at least one SendMessageBatchRequestEntry in the request."
TOO_MANY = "Maximum number of entries per request are 10. You have sent {}."
BAD_ID = "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long."


@recorded("2.8", "batches of messages that fail as a whole")
def _():
    q = queue()
    refuses("EmptyBatchRequest", SEND, batch, q, [])
    for n in [11, 20]:
        refuses("TooManyEntriesInBatchRequest", TOO_MANY.format(n), batch, q, entries(n))
    for bad in ["", "a b", "a.b", "\u00e9", "x" * 81]:
        refuses("InvalidBatchEntryId", BAD_ID, batch, q, [{"Id": bad, "MessageBody": "x"}])
    refuses("BatchEntryIdsNotDistinct", "Id id_2 repeated.", batch, q, entries(3) + [{"Id": "id_2", "MessageBody": "x"}])
    batch(q, [{"Id": "x" * 80, "MessageBody": "x"}])
    expect(counts(q), (1, 0, 0), "counts")


@recorded("2.8", "which of these comes first")
def _():
    q = queue()
    refuses("TooManyEntriesInBatchRequest", None, batch, q, entries(10) + [{"Id": "bad id", "MessageBody": "x"}])
    refuses("InvalidBatchEntryId", None, batch, q, entries(2) + [{"Id": "id_1", "MessageBody": "x"}, {"Id": "bad id", "MessageBody": "x"}])


@recorded("2.8", "a missing id of a group or of deduplication fails the whole batch")
def _():
    q = fifo()
    good = {"Id": "good", "MessageBody": "x", "MessageGroupId": "g", "MessageDeduplicationId": "d"}
    for lacks in ["MessageGroupId", "MessageDeduplicationId"]:
        bad = {k: v for k, v in good.items() if k != lacks} | {"Id": "bad"}
        refuses(PARAMETER, None, batch, q, [good, bad])
    expect(counts(q), (0, 0, 0), "counts")


@recorded("2.8", "a batch of the limit passes, one byte more does not, whatever the limit of the queue")
def _():
    half = "x" * (1 << 19)
    text = "Batch requests cannot be longer than 1048576 bytes. You have sent 1048577 bytes."
    q, small = queue(), queue(MaximumMessageSize=1024)
    expect(len(batch(q, entries(2, half))["Successful"]), 2, "messages")
    longer = entries(2, half)
    longer[1]["MessageBody"] += "x"
    refuses("BatchRequestTooLong", text, batch, q, longer)
    refuses("BatchRequestTooLong", text, batch, small, longer)


@recorded("2.8", "entries that fail alone")
def _():
    q = queue(MaximumMessageSize=1024)
    answer = batch(q, [*entries(1), {"Id": "long", "MessageBody": "x" * 1025}, {"Id": "odd", "MessageBody": "a\x08b"}])
    expect([e["Id"] for e in answer["Successful"]], ["id_0"], "successes")
    long, odd = sorted(answer["Failed"], key=lambda e: e["Id"])
    text = "One or more parameters cannot be validated. Reason: Message must be shorter than 1024 bytes."
    expect(long, {"Id": "long", "SenderFault": True, "Code": "InvalidParameterValue", "Message": text}, "failure")
    expect((odd["Code"], odd["SenderFault"]), ("InvalidMessageContents", True), "failure")


@recorded("2.8", "a batch to a FIFO queue keeps its order")
def _():
    q = fifo(ContentBasedDeduplication="true")
    answer = batch(q, [{"Id": f"id_{i}", "MessageBody": f"m{i}", "MessageGroupId": "g"} for i in range(10)])
    numbers = [int(e["SequenceNumber"]) for e in answer["Successful"]]
    expect(numbers, sorted(set(numbers)), "numbers")
    expect(bodies(receive(q)), [f"m{i}" for i in range(10)], "messages")


# --- 2.9: receiving ----------------------------------------------------------------------------


@recorded("2.9", "ranges")
def _():
    q = queue()
    for n in [-1, 0, 11]:
        refuses(PARAMETER, reason(n, "MaxNumberOfMessages", "Must be between 1 and 10, if provided."), receive, q, n)
    for s in [-1, 21]:
        refuses(PARAMETER, reason(s, "WaitTimeSeconds", "Must be >= 0 and <= 20, if provided."), receive, q, wait=s)


@recorded("2.9", "one message unless more are asked for, and no attributes unless asked for")
def _():
    q = queue()
    for i in range(3):
        send(q, f"m{i}", MessageAttributes={"a": string("v")})
    (m,) = sqs.receive_message(QueueUrl=q)["Messages"]
    expect(sorted(m), ["Body", "MD5OfBody", "MessageId", "ReceiptHandle"], "members")


@recorded("2.9", "a visibility timeout of zero is one")
def _():
    q = queue()
    send(q, "x")
    for n in ["1", "2", "3"]:
        (m,) = receive(q, VisibilityTimeout=0)
        expect(m["Attributes"]["ApproximateReceiveCount"], n, "times received")


STANDARD = {"SenderId", "SentTimestamp", "ApproximateReceiveCount", "ApproximateFirstReceiveTimestamp"}


@recorded("2.9", "all system attributes: standard, FIFO, of a dead letter")
def _():
    q = queue()
    send(q, "x")
    expect(set(one(q)["Attributes"]), STANDARD, "names")
    f = fifo()
    put(f, "x")
    expect(set(one(f)["Attributes"]), STANDARD | {"MessageGroupId", "MessageDeduplicationId", "SequenceNumber"}, "names")
    s, dlq = with_dlq()
    send(s, "x")
    release(s, one(s))
    receive(s)
    m = one(dlq)["Attributes"]
    expect(set(m), STANDARD | {"DeadLetterQueueSourceArn"}, "names")
    expect(m["DeadLetterQueueSourceArn"], arn(s), "source")


@recorded("2.9", "both lists of names count, in AWS JSON", "json")
def _():
    q = queue()
    send(q, "x")
    m = one(q, MessageSystemAttributeNames=["All"], AttributeNames=["SenderId"])
    expect(set(m["Attributes"]), STANDARD, "names")
    release(q, m)
    m = one(q, MessageSystemAttributeNames=[], AttributeNames=["SenderId"])
    expect(set(m["Attributes"]), {"SenderId"}, "names")


@recorded("2.9", "system attributes that are unknown, or that the message has not, are left out")
def _():
    q = queue()
    send(q, "x")
    m = one(q, **{SYSTEM: ["SenderId", "SequenceNumber", "Foo"]})
    expect(set(m["Attributes"]), {"SenderId"}, "names")


@recorded("2.9", "message attributes by name, by prefix and all")
def _():
    q = queue()
    names = ["Hello", "Help.Me", "Other"]
    send(q, "x", MessageAttributes={n: string(n) for n in names})
    for asked, want in [
        (["All"], names),
        ([".*"], names),
        (["*"], names),
        (["Hel.*"], ["Hello", "Help.Me"]),
        (["Hello"], ["Hello"]),
        (["Hello", "Other", "absent"], ["Hello", "Other"]),
        (["Help.*"], ["Help.Me"]),
        (["absent"], []),
        (["not a name", "Other"], ["Other"]),
    ]:
        (m,) = receive(q, MessageAttributeNames=asked, VisibilityTimeout=0)
        expect(sorted(m.get("MessageAttributes", {})), want, f"attributes of {asked}")
        expect("MD5OfMessageAttributes" in m, bool(want), f"a digest for {asked}")


# --- 2.10 to 2.13: deleting, hiding, purging, tags, permissions --------------------------------


@recorded("2.10", "a handle that is none")
def _():
    text = 'The input receipt handle "garbage" is not a valid receipt handle.'
    refuses("ReceiptHandleIsInvalid", text, delete, queue(), {"ReceiptHandle": "garbage"})


@recorded("2.10", "what is deleted, or purged, may be deleted")
def _():
    q = queue()
    send(q, "a")
    m = one(q)
    delete(q, m)
    delete(q, m)
    send(q, "b")
    m = one(q)
    sqs.purge_queue(QueueUrl=q)
    delete(q, m)
    expect(counts(q), (0, 0, 0), "counts")


@recorded("2.10", "standard: a handle deletes after its timeout; FIFO: it does not, unless extended")
def _():
    q, f = queue(VisibilityTimeout=1), fifo(VisibilityTimeout=1)
    send(q, "x")
    put(f, "x", "a")
    put(f, "x", "b")
    m, (a, b) = one(q), receive(f)
    change(f, b, 30)
    time.sleep(1.3)
    delete(q, m)
    expect(counts(q), (0, 0, 0), "counts")
    handle = a["ReceiptHandle"]
    refuses(PARAMETER, reason(handle, "ReceiptHandle", "The receipt handle has expired."), delete, f, a)
    delete(f, b)
    expect(counts(f), (1, 0, 0), "counts")


@recorded("2.10", "batches of deletions and of changes that fail as a whole")
def _():
    q = queue()
    for fn, kind, more in [
        (sqs.delete_message_batch, "DeleteMessageBatchRequestEntry", {}),
        (sqs.change_message_visibility_batch, "ChangeMessageVisibilityBatchRequestEntry", {"VisibilityTimeout": 1}),
    ]:
        made = [{"Id": f"id_{i}", "ReceiptHandle": "x"} | more for i in range(20)]
        refuses("EmptyBatchRequest", SEND.replace("SendMessageBatchRequestEntry", kind), fn, QueueUrl=q, Entries=[])
        refuses("TooManyEntriesInBatchRequest", TOO_MANY.format(20), fn, QueueUrl=q, Entries=made)
        refuses("InvalidBatchEntryId", BAD_ID, fn, QueueUrl=q, Entries=[made[0] | {"Id": "a b"}])
        refuses("BatchEntryIdsNotDistinct", "Id id_0 repeated.", fn, QueueUrl=q, Entries=[made[0], made[0]])


@recorded("2.11", "the visibility of a message that is deleted")
def _():
    q = queue()
    send(q, "x")
    m = one(q)
    delete(q, m)
    text = reason(m["ReceiptHandle"], "ReceiptHandle", "Message does not exist or is not available for visibility timeout change.")
    refuses(PARAMETER, text, change, q, m, 10)


@recorded("2.11", "standard: it may be changed after the timeout")
def _():
    q = queue(VisibilityTimeout=1)
    send(q, "x")
    m = one(q)
    time.sleep(1.3)
    change(q, m, 30)
    expect(receive(q), [], "messages")


@recorded("2.11", "zero releases, and holds for one time only")
def _():
    q = queue()
    send(q, "x")
    release(q, one(q))
    expect(len(receive(q)), 1, "messages")
    expect(receive(q), [], "messages")


@recorded("2.12", "a purge takes all there is, and forgets what was sent")
def _():
    q = fifo()
    put(q, "x", "a", MessageDeduplicationId="d")
    put(q, "y", "b")
    receive(q, 1)
    sqs.purge_queue(QueueUrl=q)
    expect(counts(q), (0, 0, 0), "counts")
    put(q, "x", "a", MessageDeduplicationId="d")
    expect(bodies(receive(q)), ["x"], "messages")


@recorded("2.12", "one purge in 60 seconds")
def _():
    q = queue()
    sqs.purge_queue(QueueUrl=q)
    text = f"Only one PurgeQueue operation on {name(q)} is allowed every 60 seconds."
    refuses("PurgeQueueInProgress", text, sqs.purge_queue, QueueUrl=q)


@recorded("2.13", "tags: overwritten, with case, removed though absent, empty")
def _():
    q = sqs.create_queue(QueueName=unique("q"), tags={"a": "1"})["QueueUrl"]
    sqs.tag_queue(QueueUrl=q, Tags={"a": "2", "A": "3", "empty": ""})
    expect(sqs.list_queue_tags(QueueUrl=q)["Tags"], {"a": "2", "A": "3", "empty": ""}, "tags")
    sqs.untag_queue(QueueUrl=q, TagKeys=["a", "absent"])
    expect(sqs.list_queue_tags(QueueUrl=q)["Tags"], {"A": "3", "empty": ""}, "tags")
    sqs.untag_queue(QueueUrl=q, TagKeys=["A", "empty"])
    expect("Tags" in sqs.list_queue_tags(QueueUrl=q), False, "tags where there are none")


@recorded("2.13", "permissions make a policy, which goes with the last of them")
def _():
    q = queue()

    def grant(label, accounts, actions):
        sqs.add_permission(QueueUrl=q, Label=label, AWSAccountIds=accounts, Actions=actions)

    def root(account):
        return f"arn:aws:iam::{account}:root"

    def statement(label, principal, action):
        return {"Sid": label, "Effect": "Allow", "Principal": {"AWS": principal}, "Action": action, "Resource": arn(q)}

    grant("crossaccountpermission", ["111111111111"], ["ReceiveMessage"])
    want = [statement("crossaccountpermission", root("111111111111"), "SQS:ReceiveMessage")]
    expect(
        json.loads(attributes(q)["Policy"]),
        {"Version": "2008-10-17", "Id": arn(q) + "/SQSDefaultPolicy", "Statement": want},
        "policy",
    )
    grant("second", ["111111111111", "222222222222"], ["ReceiveMessage", "SendMessage"])
    want.append(statement("second", [root("111111111111"), root("222222222222")], ["SQS:ReceiveMessage", "SQS:SendMessage"]))
    expect(json.loads(attributes(q)["Policy"])["Statement"], want, "statements")
    text = reason("crossaccountpermission", "Label", "Already exists.")
    refuses(PARAMETER, text, grant, "crossaccountpermission", ["111111111111"], ["ReceiveMessage"])
    text = reason("absent", "Label", "can't find label.")
    refuses(PARAMETER, text, sqs.remove_permission, QueueUrl=q, Label="absent")
    for label in ["crossaccountpermission", "second"]:
        sqs.remove_permission(QueueUrl=q, Label=label)
    has(q, Policy=None)


# --- 2.14: move tasks --------------------------------------------------------------------------


def poisoned(source, *bodies_):
    """Sends to a queue with maxReceiveCount 1, and receives until all of it is dead-lettered."""
    for b in bodies_:
        send(source, b)
    release(source, *take(source, len(bodies_)))
    equal(receive(source), [], "messages")


def start(**kwargs):
    return blind.start_message_move_task(**kwargs)["TaskHandle"]


def latest(dlq):
    return sqs.list_message_move_tasks(SourceArn=arn(dlq))["Results"][0]


def becomes(dlq, status):
    eventually(lambda: equal(latest(dlq)["Status"], status, "status"))
    return latest(dlq)


@recorded("2.14", "the handle says the task and its source, while it runs")
def _():
    q, dlq = with_dlq()
    poisoned(q, "a", "b", "c", "d")
    begun = time.monotonic()
    handle = start(SourceArn=arn(dlq), DestinationArn=arn(q), MaxNumberOfMessagesPerSecond=1)
    said = json.loads(base64.b64decode(handle))
    expect(said.keys(), {"taskId", "sourceArn"}, "what it says")
    expect((str(uuid.UUID(said["taskId"])), said["sourceArn"]), (said["taskId"], arn(dlq)), "task and source")
    t = latest(dlq)
    expect((t["Status"], t["TaskHandle"], t["DestinationArn"], t["MaxNumberOfMessagesPerSecond"]), ("RUNNING", handle, arn(q), 1), "task")
    text = "There is already a task running. Only one active task is allowed for a source queue arn at a given time."
    refuses(PARAMETER, text, start, SourceArn=arn(dlq))
    t = becomes(dlq, "COMPLETED")
    expect(time.monotonic() - begun >= 3, True, "four messages in three seconds or more")
    expect((t["ApproximateNumberOfMessagesMoved"], t["ApproximateNumberOfMessagesToMove"]), (4, 4), "messages")
    expect({"TaskHandle", "FailureReason"} & t.keys(), set(), "members")


@recorded("2.14", "without a destination, each message goes to where it came from")
def _():
    q, dlq = with_dlq()
    other = queue(RedrivePolicy=redrive_policy(dlq, 1))
    poisoned(q, "of the one")
    poisoned(other, "of the other")
    start(SourceArn=arn(dlq))
    t = becomes(dlq, "COMPLETED")
    expect({"DestinationArn", "MaxNumberOfMessagesPerSecond", "TaskHandle"} & t.keys(), set(), "members")
    expect((bodies(take(q, 1)), bodies(take(other, 1))), (["of the one"], ["of the other"]), "messages")


@recorded("2.14", "a canceled task")
def _():
    q, dlq = with_dlq()
    poisoned(q, *"abcdef")
    handle = start(SourceArn=arn(dlq), MaxNumberOfMessagesPerSecond=1)
    answer = sqs.cancel_message_move_task(TaskHandle=handle)
    expect(answer["ApproximateNumberOfMessagesMoved"] < 6, True, "messages moved")
    expect("TaskHandle" in becomes(dlq, "CANCELLED"), False, "a handle")


@recorded("2.14", "a destination that is deleted while the task runs")
def _():
    q, dlq = with_dlq()
    to = queue()
    poisoned(q, *"abcd")
    start(SourceArn=arn(dlq), DestinationArn=arn(to), MaxNumberOfMessagesPerSecond=1)
    sqs.delete_queue(QueueUrl=to)
    expect(becomes(dlq, "FAILED")["FailureReason"], "AWS.SimpleQueueService.NonExistentQueue", "reason")


@recorded("2.14", "what a task cannot be started with")
def _():
    q, dlq = with_dlq()
    gone = "ResourceNotFoundException"
    refuses(MISSING, "The request must contain the parameter SourceArn.", start)
    text = "You must use this format to specify the SourceArn: arn:<partition>:<service>:<region>:<account-id>:<resource-id>"
    refuses(PARAMETER, text, start, SourceArn="test")
    text = "The resource that you specified for the SourceArn parameter doesn't exist."
    refuses(gone, text, start, SourceArn=arn(dlq) + "-absent")
    refuses(PARAMETER, "Source queue must be configured as a Dead Letter Queue.", start, SourceArn=arn(q))
    refuses(gone, text.replace("Source", "Destination"), start, SourceArn=arn(dlq), DestinationArn=arn(q) + "-absent")


@recorded("2.14", "what cannot be canceled")
def _():
    q, dlq = with_dlq()
    cancel = sqs.cancel_message_move_task
    refuses(PARAMETER, "Value for parameter TaskHandle is invalid.", cancel, TaskHandle="not a task")

    def handle(source):
        return base64.b64encode(json.dumps({"taskId": str(uuid.uuid4()), "sourceArn": source}).encode()).decode()

    gone = "ResourceNotFoundException"
    refuses(gone, "The resource that you specified for the SourceArn parameter doesn't exist.", cancel, TaskHandle=handle(arn(q) + "-absent"))
    refuses(gone, "Task does not exist.", cancel, TaskHandle=handle(arn(dlq)))


# --- 4: how messages behave --------------------------------------------------------------------


@recorded("4.1", "a message that is visible again comes before later ones, with a new handle and count")
def _():
    q = queue()
    send(q, "first")
    m = one(q)
    send(q, "second")
    release(q, m)
    (again,) = receive(q, 1)
    expect((again["Body"], again["Attributes"]["ApproximateReceiveCount"]), ("first", "2"), "message")
    expect(again["ReceiptHandle"] == m["ReceiptHandle"], False, "the same handle")


@recorded("4.2", "maxReceiveCount 1: the first receive delivers, the second moves, the count goes on")
def _():
    q, dlq = with_dlq(1, VisibilityTimeout=1)
    sent = send(q, "x", MessageAttributes={"a": binary(b"\0")})
    one(q)
    time.sleep(1.3)
    expect((counts(q), counts(dlq)), ((1, 0, 0), (0, 0, 0)), "counts after the timeout")
    expect(receive(q), [], "messages")
    m = one(dlq)
    expect((m["MessageId"], m["MessageAttributes"]), (sent["MessageId"], {"a": binary(b"\0")}), "id and attributes")
    expect((m["Attributes"]["ApproximateReceiveCount"], m["Attributes"]["DeadLetterQueueSourceArn"]), ("2", arn(q)), "count and source")


@recorded("4.2", "FIFO, deduplicated by content: two receives, then the dead-letter queue")
def _():
    dlq = fifo(ContentBasedDeduplication="true")
    q = fifo(ContentBasedDeduplication="true", RedrivePolicy=redrive_policy(dlq, 2))
    sent = send(q, "x", MessageGroupId="g")
    for n in ["1", "2"]:
        m = one(q)
        expect(m["Attributes"]["ApproximateReceiveCount"], n, "times received")
        release(q, m)
    expect(receive(q), [], "messages")
    m = one(dlq)
    expect((m["MessageId"], m["Attributes"]["MessageGroupId"]), (sent["MessageId"], "g"), "message")


@recorded("4.2", "FIFO: the group goes on when the poisoned message has moved")
def _():
    q, dlq = with_dlq(1, fifo=True)
    put(q, "poison")
    put(q, "next")
    (m,) = receive(q, 1)
    expect(receive(q), [], "messages of a locked group")
    release(q, m)
    expect(bodies(receive(q)), ["next"], "messages")
    expect(bodies(receive(dlq)), ["poison"], "dead letters")


@recorded("4.2", "a queue may be its own dead-letter queue")
def _():
    q = queue()
    policy = redrive_policy(q, 5)
    setting(q, RedrivePolicy=policy)
    expect(json.loads(attributes(q)["RedrivePolicy"]), json.loads(policy), "policy")


@recorded("3", "redrive policies that are none")
def _():
    dlq = queue()
    absent = json.dumps({"deadLetterTargetArn": arn(dlq) + "-absent", "maxReceiveCount": 1})
    refuses(PARAMETER, reason(absent, "RedrivePolicy", "Dead letter target does not exist."), create, RedrivePolicy=absent)
    for bad in ["{", "[]", json.dumps({"deadLetterTargetArn": arn(dlq)}), json.dumps({"maxReceiveCount": 1}), redrive_policy(dlq, 0), redrive_policy(dlq, 1001)]:
        refuses(PARAMETER, None, create, RedrivePolicy=bad)
    wrong = redrive_policy(fifo(), 1)
    text = reason(wrong, "RedrivePolicy", "Dead-letter queue must be same type of queue as the source..")
    refuses(PARAMETER, text, create, RedrivePolicy=wrong)


def grouped(*which, **attributes_):
    """Makes a FIFO queue with messages such as g1-m1."""
    q = fifo(**attributes_)
    for w in which:
        put(q, w, w.split("-")[0])
    return q


@recorded("4.4", "a receive gives several of one group, then of the next")
def _():
    q = grouped("g1-m1", "g2-m1", "g1-m2", "g1-m3", "g2-m2")
    expect(bodies(receive(q, 4)), ["g1-m1", "g1-m2", "g1-m3", "g2-m1"], "messages")
    expect(receive(q), [], "messages of locked groups")


@recorded("4.4", "a group that was in flight goes to the end: g3, g1, g2")
def _():
    q = grouped("g1-m1", "g1-m2", "g2-m1", "g2-m2", "g3-m1", VisibilityTimeout=1)
    expect(bodies(receive(q, 3)), ["g1-m1", "g1-m2", "g2-m1"], "messages")
    time.sleep(1.3)
    expect(bodies(receive(q, 10)), ["g3-m1", "g1-m1", "g1-m2", "g2-m1", "g2-m2"], "messages")


@recorded("4.4", "deleting all that was received unlocks the group; deleting some does not")
def _():
    q = grouped("g-1", "g-2", "g-3", "g-4")
    first, second = receive(q, 2)
    delete(q, first)
    expect(receive(q), [], "messages")
    delete(q, second)
    expect(bodies(receive(q)), ["g-3", "g-4"], "messages")


@recorded("4.4", "what is before a hidden message is given, what is after it is not")
def _():
    for hidden in range(3):
        q = grouped("g-0", "g-1", "g-2", VisibilityTimeout=30)
        got = receive(q)
        for i, m in enumerate(got):
            if i != hidden:
                release(q, m)
        expect(bodies(receive(q)), [f"g-{i}" for i in range(hidden)], f"messages with {hidden} hidden")


@recorded("4.4", "a receive with a timeout of zero leaves the group open")
def _():
    q = grouped("g-1", "g-2")
    expect(bodies(receive(q, 1, VisibilityTimeout=0)), ["g-1"], "messages")
    expect(bodies(receive(q)), ["g-1", "g-2"], "messages")


@recorded("4.4", "duplicates: by content, also after the first is deleted, in the queue or the group")
def _():
    q = fifo(ContentBasedDeduplication="true")
    for g in "ab":
        send(q, "same", MessageGroupId=g)
    got = receive(q)
    expect(bodies(got), ["same"], "messages")
    delete(q, got[0])
    send(q, "same", MessageGroupId="a")
    expect(receive(q), [], "messages")
    send(q, "same", MessageGroupId="a", MessageDeduplicationId="its-own")
    expect(bodies(receive(q)), ["same"], "messages")
    q = fifo(ContentBasedDeduplication="true", DeduplicationScope="messageGroup")
    for g in "aab":
        send(q, "same", MessageGroupId=g)
    expect(sorted(m["Attributes"]["MessageGroupId"] for m in receive(q)), ["a", "b"], "groups")
