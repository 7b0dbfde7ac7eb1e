"""A boto3 of before AWS JSON on Yandex Message Queue: ymq.py NAME [only those whose name contains this]."""

import json
import re
import sys
import time
import uuid

import harness
from botocore.exceptions import ClientError
from client import (
    REGION,
    arn,
    attributes,
    bodies,
    change,
    counts,
    delete,
    name,
    number,
    one,
    queue,
    raw,
    receive,
    redrive_policy,
    release,
    send,
    sqs,
    string,
    take,
    with_dlq,
)
from harness import check, equal, eventually, true, unique


def says(code, fn, *args, status=400, text=None, **kwargs):
    """Asserts that a call fails with a code, a status and, when given, a text."""
    try:
        got = fn(*args, **kwargs)
    except ClientError as err:
        error, got_status = err.response["Error"], err.response["ResponseMetadata"]["HTTPStatusCode"]
        equal((error["Code"], got_status), (code, status), f"code and status ({error.get('Message')})")
        if text is not None:
            equal(error["Message"], text, "text")
        return
    raise AssertionError(f"expected {code}, got {got!r}")


def fifo(url, body, group="g"):
    return send(url, body, MessageGroupId=group, MessageDeduplicationId=str(uuid.uuid4()))


# --- dead letters: the redrive story of the documentation --------------------------------------


def made(is_fifo):
    """Makes a queue whose policy is there from the beginning."""
    return with_dlq(2, fifo=is_fifo, VisibilityTimeout=1)


def changed(is_fifo):
    """Makes a queue that gets its policy later."""
    q, dlq = queue(is_fifo, VisibilityTimeout=1), queue(is_fifo)
    sqs.set_queue_attributes(QueueUrl=q, Attributes={"RedrivePolicy": redrive_policy(dlq, 2)})
    return q, dlq


def received_beyond(q, n, **kwargs):
    """Receives the one message as often as is allowed, letting its timeout end each time."""
    for _ in range(n):
        m = one(q, **kwargs)
        time.sleep(1.2)
    return m


def story_standard(make):
    q, dlq = make(False)
    equal(json.loads(attributes(q, "RedrivePolicy")["RedrivePolicy"]), {"maxReceiveCount": 2, "deadLetterTargetArn": arn(dlq)}, "policy")
    sent = send(q, "poison", MessageAttributes={"n": number("1")})
    m = received_beyond(q, 2)
    equal(m["Attributes"]["ApproximateReceiveCount"], "2", "times received")
    equal(counts(dlq), (0, 0, 0), "counts before the receive that moves")
    before = time.time() * 1000
    equal(receive(q), [], "messages")
    dead = one(dlq)
    equal((dead["MessageId"], dead["Body"], dead["MessageAttributes"]), (sent["MessageId"], "poison", {"n": number("1")}), "dead letter")
    a = dead["Attributes"]
    equal(a["ApproximateReceiveCount"], "1", "times received, which start again")
    true(int(a["SentTimestamp"]) >= before - 1000, "it counts as sent when it was moved")
    true("DeadLetterQueueSourceArn" not in a, "a source")
    equal(counts(q), (0, 0, 0), "counts of the source")


def story_fifo(make):
    q, dlq = make(True)
    sent = [fifo(q, f"m{i}") for i in range(2)]
    for n in ["1", "2"]:
        m = one(q)
        equal((m["MessageId"], m["Attributes"]["ApproximateReceiveCount"]), (sent[0]["MessageId"], n), "message and times received")
        equal(receive(q), [], "the group while its head is in flight")
        time.sleep(1.2)
    equal(counts(dlq), (0, 0, 0), "counts before the receive that moves")
    (m,) = take(q, 1)
    equal(m["MessageId"], sent[1]["MessageId"], "the next of the group")
    dead = one(dlq)
    equal((dead["MessageId"], dead["Attributes"]["MessageGroupId"]), (sent[0]["MessageId"], "g"), "dead letter")


for _how, _make in [("CreateQueue", made), ("SetQueueAttributes", changed)]:
    check(f"redrive: standard, by a policy of {_how}")(lambda make=_make: story_standard(make))
    check(f"redrive: FIFO, by a policy of {_how}; the group is blocked until then")(lambda make=_make: story_fifo(make))


@check("redrive: back to the source, by receive, send and delete")
def _():
    q, dlq = with_dlq(1)
    for i in range(3):
        send(q, f"m{i}", MessageAttributes={"n": number(str(i))})
    release(q, *take(q, 3))
    equal(receive(q), [], "messages")
    (source,) = sqs.list_dead_letter_source_queues(QueueUrl=dlq)["queueUrls"]
    equal(source, q, "source")
    got = take(dlq, 3)
    entries = [{"Id": str(i), "MessageBody": m["Body"], "MessageAttributes": m["MessageAttributes"]} for i, m in enumerate(got)]
    sent = sqs.send_message_batch(QueueUrl=source, Entries=entries)["Successful"]
    done = [{"Id": e["Id"], "ReceiptHandle": got[int(e["Id"])]["ReceiptHandle"]} for e in sent]
    equal(len(sqs.delete_message_batch(QueueUrl=dlq, Entries=done)["Successful"]), 3, "deleted")
    equal((sorted(bodies(take(q, 3))), counts(dlq)), (["m0", "m1", "m2"], (0, 0, 0)), "messages")


@check("redrive: policies that are none")
def _():
    dlq = queue()
    for count in [0, 1001]:
        says("InvalidParameterValue", queue, RedrivePolicy=redrive_policy(dlq, count), text="maxReceiveCount must be greater than 0 and less than 1001.")
    says("InvalidParameterValue", queue, RedrivePolicy="{", text="RedrivePolicy attribute is ill-constructed.")
    says("InvalidParameterValue", queue, fifo=True, RedrivePolicy=redrive_policy(dlq, 1), text="Target dead letter queue should have the same type as source queue.")
    says("InvalidParameterValue", queue, RedrivePolicy=json.dumps({"deadLetterTargetArn": f"arn:aws:sqs:{REGION}:1:x", "maxReceiveCount": 1}))


# --- what else differs from Amazon SQS ---------------------------------------------------------


@check("URLs, ARNs and ids")
def _():
    q = queue()
    true(re.search(r"^http://[^/]+/b1g[0-9a-z]+/dj6[0-9a-z]+/[^/]+$", q), f"URL {q}")
    true(re.fullmatch(r"yrn:yc:ymq:ru-central1:b1g[0-9a-z]+:" + name(q), arn(q)), f"ARN {arn(q)}")
    equal(sqs.get_queue_url(QueueName=name(q))["QueueUrl"], q, "URL")
    send(q, "hello")
    equal(bodies(receive(q)), ["hello"], "messages")
    sqs.delete_queue(QueueUrl=q)
    again = sqs.create_queue(QueueName=name(q))["QueueUrl"]
    true(again != q, "the URL of a queue that was made again")


@check("send, receive, batches, visibility")
def _():
    q = queue()
    answer = sqs.send_message_batch(QueueUrl=q, Entries=[{"Id": str(i), "MessageBody": f"m{i}"} for i in range(10)])
    equal(len(answer["Successful"]), 10, "messages")
    got = take(q, 10)
    equal(sorted(bodies(got)), [f"m{i}" for i in range(10)], "messages")
    equal(sorted(got[0]["Attributes"]), ["ApproximateFirstReceiveTimestamp", "ApproximateReceiveCount", "SenderId", "SentTimestamp"], "system attributes")
    release(q, got[0])
    delete(q, one(q))
    handles = [{"Id": str(i), "ReceiptHandle": m["ReceiptHandle"]} for i, m in enumerate(got[1:])]
    equal(len(sqs.delete_message_batch(QueueUrl=q, Entries=handles)["Successful"]), 9, "deleted")
    equal(counts(q), (0, 0, 0), "counts")


@check("attributes of a queue, and those that it does not know")
def _():
    want = {
        "ApproximateNumberOfMessages",
        "ApproximateNumberOfMessagesDelayed",
        "ApproximateNumberOfMessagesNotVisible",
        "CreatedTimestamp",
        "DelaySeconds",
        "MaximumMessageSize",
        "MessageRetentionPeriod",
        "QueueArn",
        "ReceiveMessageWaitTimeSeconds",
        "VisibilityTimeout",
    }
    q = queue()
    equal(set(attributes(q)), want, "names")
    equal(attributes(q)["MaximumMessageSize"], "262144", "the largest message")
    equal(set(attributes(queue(fifo=True))), want | {"FifoQueue", "ContentBasedDeduplication"}, "names, FIFO")
    for absent in ["Policy", "RedriveAllowPolicy", "KmsMasterKeyId", "SqsManagedSseEnabled", "DeduplicationScope", "LastModifiedTimestamp"]:
        says("InvalidAttributeName", attributes, q, absent)


@check("FIFO: one message of a group in a receive")
def _():
    q = queue(fifo=True)
    for g in "aabb":
        fifo(q, f"of {g}", g)
    equal(bodies(receive(q)), ["of a", "of b"], "messages")


@check("actions that are not there")
def _():
    q = queue()
    for fn, kwargs in [
        (sqs.start_message_move_task, {"SourceArn": arn(q)}),
        (sqs.list_message_move_tasks, {"SourceArn": arn(q)}),
        (sqs.cancel_message_move_task, {"TaskHandle": "x"}),
        (sqs.add_permission, {"QueueUrl": q, "Label": "l", "AWSAccountIds": ["111111111111"], "Actions": ["SendMessage"]}),
        (sqs.remove_permission, {"QueueUrl": q, "Label": "l"}),
    ]:
        says("InvalidAction", fn, **kwargs)


@check("errors")
def _():
    q, f = queue(), queue(fifo=True)
    says("AWS.SimpleQueueService.NonExistentQueue", sqs.get_queue_url, QueueName=unique("absent"), text="The specified queue doesn't exist.")
    says("MissingParameter", send, f, "x", MessageDeduplicationId="d", text="No MessageGroupId parameter.")
    says("MissingParameter", send, f, "x", MessageGroupId="g")
    says("InvalidParameterValue", send, q, "a\x08b")
    says("InvalidParameterValue", send, q, "x" * 262145)
    says("InvalidParameterCombination", send, q, "x", MessageAttributes={f"a{i}": string("v") for i in range(11)})
    says("ReceiptHandleIsInvalid", delete, q, {"ReceiptHandle": "garbage"})
    large = [{"Id": "a", "MessageBody": "x"}, {"Id": "b", "MessageBody": "x" * 2000}]
    small = queue(MaximumMessageSize=1024)
    says("InvalidParameterValue", sqs.send_message_batch, QueueUrl=small, Entries=large, text="Each message must be shorter than 1024 bytes.")
    send(q, "x")
    m = one(q, VisibilityTimeout=1)
    time.sleep(1.3)
    says("AWS.SimpleQueueService.MessageNotInflight", change, q, m, 10)


@check("an error in XML has no Type and no name space")
def _():
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    status, _, text = raw("POST", queue(), headers, b"Action=FooBar")
    equal((status, "<Type>" in text, "xmlns" in text, "<Code>InvalidAction</Code>" in text), (400, False, False, True), f"answer {text}")


@check("list queues, purge, tags")
def _():
    prefix = unique("listed")
    urls = [sqs.create_queue(QueueName=f"{prefix}-{i}")["QueueUrl"] for i in range(3)]
    equal(sorted(sqs.list_queues(QueueNamePrefix=prefix)["QueueUrls"]), sorted(urls), "queues")
    q = urls[0]
    send(q, "x")
    sqs.purge_queue(QueueUrl=q)
    eventually(lambda: equal(counts(q), (0, 0, 0), "counts"))
    sqs.tag_queue(QueueUrl=q, Tags={"a": "b"})
    equal(sqs.list_queue_tags(QueueUrl=q)["Tags"], {"a": "b"}, "tags")
    sqs.untag_queue(QueueUrl=q, TagKeys=["a"])
    equal(sqs.list_queue_tags(QueueUrl=q).get("Tags", {}), {}, "tags")


if __name__ == "__main__":
    sys.exit(0 if harness.run(*sys.argv[1:3]) else 1)
