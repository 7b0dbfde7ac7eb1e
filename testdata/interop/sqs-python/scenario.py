"""What a program does with boto3 and a queue of Amazon SQS, on a server that the environment names."""

import json
import socket
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlencode, urlsplit
from urllib.request import urlopen

from botocore import UNSIGNED
from botocore.exceptions import ClientError
from client import (
    ACCOUNT,
    ENDPOINT,
    JSON,
    REGION,
    SYSTEM,
    arn,
    attributes,
    attributes_md5,
    binary,
    bodies,
    change,
    client,
    counts,
    delete,
    md5,
    name,
    number,
    one,
    presigned,
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

TRACE = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"


def pairs(**bodies):
    return [{"Id": k, "MessageBody": v} for k, v in bodies.items()]


def in_background(fn, *args, **kwargs):
    """Starts fn and returns what yields its result."""
    pool = ThreadPoolExecutor(1)
    future = pool.submit(fn, *args, **kwargs)
    pool.shutdown(wait=False)
    return future


# --- sending and receiving ---------------------------------------------------------------------


@check("send, receive, delete")
def _():
    q = queue()
    sent = send(q, "hello")
    equal(sent["MD5OfMessageBody"], md5("hello"), "digest")
    equal(uuid.UUID(sent["MessageId"]).version, 4, "version of the id")
    true("MD5OfMessageAttributes" not in sent and "SequenceNumber" not in sent, f"too much in {sent}")
    m = one(q)
    equal((m["MessageId"], m["Body"], m["MD5OfBody"]), (sent["MessageId"], "hello", md5("hello")), "message")
    true("MessageAttributes" not in m, "attributes of a message without any")
    equal(counts(q), (0, 1, 0), "counts")
    delete(q, m)
    equal(counts(q), (0, 0, 0), "counts")
    equal(receive(q), [], "messages")


@check("bodies of any text come back as they were")
def _():
    q = queue()
    want = ["<a>&amp;\"quoted\"'</a>", "line\nline\r\nline\r", "tab\t\u00e9\u4e16\U0001f600", " space around ", '{"json": "\\u0000"}', "]]>", "\ufffd\ue000"]
    for body in want:
        equal(send(q, body)["MD5OfMessageBody"], md5(body), "digest")
    got = take(q, len(want))
    equal(sorted(bodies(got)), sorted(want), "bodies")
    equal(sorted(m["MD5OfBody"] for m in got), sorted(map(md5, want)), "digests")


@check("a message of 1 MiB passes, and one byte more does not")
def _():
    q = queue()
    body = "\u00e9" * (1 << 19)
    send(q, body)
    refused(
        "InvalidParameterValueException",
        send,
        q,
        body + "x",
        text="One or more parameters are invalid. Reason: Message must be shorter than 1048576 bytes.",
    )
    equal(one(q)["Body"], body, "body")


@check("message attributes of every type, with labels, and their digest")
def _():
    q = queue()
    want = {
        "text": string("value \u00e9\n\"<&>"),
        "labelled": string("value", ".my.label"),
        "int": number("42", ".int"),
        "decimal": number("-12345678901234567890.12345678901234567890123456789"),
        "exponent": number("1e-30", ".float"),
        "bytes": binary(bytes(range(256))),
        "png": binary(b"\x89PNG\r\n", ".png"),
        "With-dash_and.dot": string("x"),
    }
    sent = send(q, "body", MessageAttributes=want)
    equal(sent["MD5OfMessageAttributes"], attributes_md5(want), "digest")
    m = one(q)
    equal(m["MessageAttributes"], want, "attributes")
    equal(m["MD5OfMessageAttributes"], attributes_md5(want), "digest")
    release(q, m)
    m = one(q, MessageAttributeNames=["int", "b.*", "absent"])
    equal(sorted(m["MessageAttributes"]), ["bytes", "int"], "chosen attributes")
    equal(m["MD5OfMessageAttributes"], attributes_md5({k: want[k] for k in ["int", "bytes"]}), "digest of the chosen")


@check("system attributes")
def _():
    q = queue()
    before = time.time() * 1000
    trace = {"AWSTraceHeader": string(TRACE)}
    sent = send(q, "body", MessageSystemAttributes=trace)
    equal(sent["MD5OfMessageSystemAttributes"], "5ae4d5d7636402d80f4eb6d213245a88", "digest")
    m = one(q)
    a = m["Attributes"]
    equal(sorted(a), ["AWSTraceHeader", "ApproximateFirstReceiveTimestamp", "ApproximateReceiveCount", "SenderId", "SentTimestamp"], "names")
    equal((a["AWSTraceHeader"], a["ApproximateReceiveCount"]), (TRACE, "1"), "trace header and count")
    true(before - 1000 < int(a["SentTimestamp"]) <= int(a["ApproximateFirstReceiveTimestamp"]) < time.time() * 1000 + 1000, f"times {a}")
    release(q, m)
    equal(one(q, **{SYSTEM: ["ApproximateReceiveCount"]})["Attributes"], {"ApproximateReceiveCount": "2"}, "chosen attributes")


@check("a batch of ten, and one that fails in part")
def _():
    q = queue(MaximumMessageSize=1024)
    sent = sqs.send_message_batch(QueueUrl=q, Entries=[{"Id": f"id-{i}", "MessageBody": f"m{i}", "MessageAttributes": {"n": number(str(i))}} for i in range(10)])
    equal([e["Id"] for e in sent["Successful"]], [f"id-{i}" for i in range(10)], "ids")
    equal(sent["Successful"][3]["MD5OfMessageBody"], md5("m3"), "digest")
    equal(sent["Successful"][3]["MD5OfMessageAttributes"], attributes_md5({"n": number("3")}), "digest of attributes")
    true("Failed" not in sent, "failures")
    sent = sqs.send_message_batch(QueueUrl=q, Entries=pairs(good="fits", large="x" * 1025, odd="\0" if JSON else "\ufffe"))
    equal([e["Id"] for e in sent["Successful"]], ["good"], "ids")
    failed = {e["Id"]: e for e in sent["Failed"]}
    equal({k: (e["Code"], e["SenderFault"]) for k, e in failed.items()}, {"large": ("InvalidParameterValue", True), "odd": ("InvalidMessageContents", True)}, "failures")
    got = take(q, 11)
    equal(len({m["MessageId"] for m in got}), 11, "messages")

    handles = [{"Id": str(i), "ReceiptHandle": m["ReceiptHandle"]} for i, m in enumerate(got[:9])] + [{"Id": "bad", "ReceiptHandle": "garbage"}]
    changed = sqs.change_message_visibility_batch(QueueUrl=q, Entries=[h | {"VisibilityTimeout": 60} for h in handles])
    equal(([e["Id"] for e in changed["Failed"]], changed["Failed"][0]["Code"], len(changed["Successful"])), (["bad"], "ReceiptHandleIsInvalid", 9), "changed")
    deleted = sqs.delete_message_batch(QueueUrl=q, Entries=handles)
    equal(([e["Id"] for e in deleted["Failed"]], deleted["Failed"][0]["Code"], len(deleted["Successful"])), (["bad"], "ReceiptHandleIsInvalid", 9), "deleted")
    equal(counts(q), (0, 2, 0), "counts")


@check("batches that are refused as a whole")
def _():
    q = queue()
    batch = sqs.send_message_batch
    refused("TooManyEntriesInBatchRequest", batch, QueueUrl=q, Entries=pairs(**{f"m{i}": "x" for i in range(11)}))
    refused("BatchEntryIdsNotDistinct", batch, QueueUrl=q, Entries=pairs(a="x") * 2)
    refused("InvalidBatchEntryId", batch, QueueUrl=q, Entries=pairs(**{"not an id": "x"}))
    refused("BatchRequestTooLong", batch, QueueUrl=q, Entries=pairs(a="x" * (1 << 19), b="x" * ((1 << 19) + 1)))
    refused("EmptyBatchRequest", batch, QueueUrl=q, Entries=[])
    equal(counts(q), (0, 0, 0), "counts")


@check("delay of a message and of a queue")
def _():
    q = queue(DelaySeconds=1)
    send(q, "as the queue says")
    send(q, "at once", DelaySeconds=0)
    equal(counts(q), (1, 0, 1), "counts")
    start = time.monotonic()
    equal(bodies(receive(q)), ["at once"], "messages")
    equal(bodies(receive(q, wait=5)), ["as the queue says"], "messages")
    true(0.5 < time.monotonic() - start < 3, f"after {time.monotonic() - start} s")


# --- long polling ------------------------------------------------------------------------------


@check("long poll: a message that arrives while it waits")
def _():
    q = queue()
    waiting = in_background(receive, q, wait=20)
    time.sleep(0.5)
    true(not waiting.done(), "the receive has not waited")
    start = time.monotonic()
    send(q, "hello")
    equal(bodies(waiting.result(10)), ["hello"], "messages")
    true(time.monotonic() - start < 2, "the receive has not ended at once")


@check("long poll: what nothing comes to ends in its time, as the queue or the call says")
def _():
    q = queue(ReceiveMessageWaitTimeSeconds=1)
    start = time.monotonic()
    equal("Messages" in sqs.receive_message(QueueUrl=q), False, "messages")
    true(0.9 < time.monotonic() - start < 3, f"the queue's: {time.monotonic() - start} s")
    start = time.monotonic()
    equal(receive(q, wait=0), [], "messages")
    true(time.monotonic() - start < 0.9, f"none: {time.monotonic() - start} s")


@check("long poll: a released, an expired and a delayed message end it")
def _():
    q = queue()
    send(q, "hello")
    m = one(q)
    waiting = in_background(receive, q, wait=10)
    time.sleep(0.3)
    release(q, m)
    (m,) = waiting.result(5)
    change(q, m, 1)
    (m,) = receive(q, wait=10)
    delete(q, m)
    send(q, "later", DelaySeconds=1)
    equal(bodies(receive(q, wait=10)), ["later"], "messages")


@check("long poll: nothing is given to a client that has gone away")
def _():
    q = queue()
    at = urlsplit(ENDPOINT)
    form = urlencode({"Action": "ReceiveMessage", "QueueUrl": q, "WaitTimeSeconds": "20"})
    request = (
        f"POST / HTTP/1.1\r\nHost: {at.netloc}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        f"Content-Length: {len(form)}\r\n\r\n{form}"
    )
    for _ in range(5):
        with socket.create_connection((at.hostname, at.port)) as s:
            s.sendall(request.encode())
            time.sleep(0.2)
    time.sleep(0.3)
    send(q, "hello")
    m = one(q)
    equal(m["Attributes"]["ApproximateReceiveCount"], "1", "times received")


@check("long poll: ends when its queue is deleted")
def _():
    q = queue()
    waiting = in_background(receive, q, wait=20)
    time.sleep(0.3)
    sqs.delete_queue(QueueUrl=q)
    try:
        equal(waiting.result(5), [], "messages")
    except ClientError as err:
        equal(err.response["Error"]["Code"], "AWS.SimpleQueueService.NonExistentQueue", "code")


@check("forty wait at the same time, and each message goes to one of them")
def _():
    q = queue()
    with ThreadPoolExecutor(40) as pool:
        waiting = [pool.submit(receive, q, 1, wait=10) for _ in range(40)]
        time.sleep(0.5)
        for i in range(0, 40, 10):
            sqs.send_message_batch(QueueUrl=q, Entries=[{"Id": str(n), "MessageBody": str(n)} for n in range(i, i + 10)])
        got = [m for w in waiting for m in w.result(15)]
    equal(sorted(bodies(got), key=int), [str(n) for n in range(40)], "messages")


# --- visibility --------------------------------------------------------------------------------


@check("visibility: of the queue, of a receive, expired, extended, released")
def _():
    q = queue(VisibilityTimeout=1)
    send(q, "hello")
    m = one(q)
    equal(receive(q), [], "messages while it is hidden")
    m2 = one(q)
    true(m2["ReceiptHandle"] != m["ReceiptHandle"], "a handle that is the same again")
    equal(m2["Attributes"]["ApproximateReceiveCount"], "2", "times received")
    change(q, m2, 60)
    time.sleep(1.2)
    equal(receive(q), [], "messages while it is hidden for longer")
    release(q, m2)
    m3 = one(q, VisibilityTimeout=0)
    equal(counts(q), (1, 0, 0), "counts")
    m4 = one(q)
    equal(m4["Attributes"]["ApproximateReceiveCount"], "4", "times received")
    true(m3["MessageId"] == m4["MessageId"], "another message")


@check("visibility: change of what is gone, of nothing and beyond twelve hours")
def _():
    q = queue()
    send(q, "hello")
    m = one(q)
    handle = m["ReceiptHandle"]
    refused("InvalidParameterValueException", change, q, m, 43201)
    delete(q, m)
    refused(
        "InvalidParameterValueException",
        change,
        q,
        m,
        10,
        text=f"Value {handle} for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not available for visibility timeout change.",
    )
    refused("ReceiptHandleIsInvalid", change, q, {"ReceiptHandle": "garbage"}, 10)


@check("delete: twice, after expiry, with a handle of another queue")
def _():
    q, other = queue(), queue()
    send(q, "hello")
    m = one(q, VisibilityTimeout=1)
    refused("ReceiptHandleIsInvalid", delete, other, m)
    time.sleep(1.2)
    delete(q, m)
    delete(q, m)
    equal(receive(q), [], "messages")
    refused("ReceiptHandleIsInvalid", delete, q, {"ReceiptHandle": "garbage"}, text='The input receipt handle "garbage" is not a valid receipt handle.')


# --- FIFO --------------------------------------------------------------------------------------


def fifo(url, body, group="g", **kwargs):
    kwargs.setdefault("MessageDeduplicationId", str(uuid.uuid4()))
    return send(url, body, MessageGroupId=group, **kwargs)


@check("FIFO: order within groups, groups by themselves, sequence numbers")
def _():
    q = queue(fifo=True)
    sent = [fifo(q, f"{g}{i}", g) for i in range(3) for g in "ab"]
    numbers = [int(s["SequenceNumber"]) for s in sent]
    true(numbers == sorted(set(numbers)), f"numbers {numbers}")
    first = receive(q, 1)
    equal(bodies(first), ["a0"], "the first")
    second = receive(q, 10)
    equal(bodies(second), ["b0", "b1", "b2"], "the other group")
    equal(second[0]["Attributes"]["SequenceNumber"], sent[1]["SequenceNumber"], "sequence number")
    equal(second[0]["Attributes"]["MessageGroupId"], "b", "group")
    equal(receive(q), [], "messages of groups in flight")
    delete(q, first[0])
    equal(bodies(receive(q)), ["a1", "a2"], "the rest of the group")
    release(q, *second)
    equal(bodies(receive(q)), ["b0", "b1", "b2"], "released, in order")


@check("FIFO: deduplication by id and by content")
def _():
    q = queue(fifo=True)
    sent = fifo(q, "one", MessageDeduplicationId="d")
    again = fifo(q, "two", MessageDeduplicationId="d")
    equal((again["MessageId"], again["SequenceNumber"]), (sent["MessageId"], sent["SequenceNumber"]), "id and number")
    m = one(q)
    equal((m["Body"], m["Attributes"]["MessageDeduplicationId"]), ("one", "d"), "message")
    delete(q, m)
    fifo(q, "three", MessageDeduplicationId="d")
    equal(receive(q), [], "messages")
    refused(
        "InvalidParameterValueException",
        send,
        q,
        "four",
        MessageGroupId="g",
        text="The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly",
    )
    q = queue(fifo=True, ContentBasedDeduplication="true")
    for body in ["one", "one", "two"]:
        send(q, body, MessageGroupId="g")
    equal(bodies(receive(q)), ["one", "two"], "messages")


@check("FIFO: deduplication within a group of a queue of high throughput")
def _():
    q = queue(fifo=True, DeduplicationScope="messageGroup", FifoThroughputLimit="perMessageGroupId")
    for group in "aab":
        fifo(q, f"of {group}", group, MessageDeduplicationId="d")
    equal(bodies(receive(q)), ["of a", "of b"], "messages")


@check("FIFO: a receive that is tried again with its id gives the same")
def _():
    q = queue(fifo=True)
    for i in range(3):
        fifo(q, f"m{i}")
    attempt = str(uuid.uuid4())
    first = receive(q, 2, ReceiveRequestAttemptId=attempt)
    again = receive(q, 2, ReceiveRequestAttemptId=attempt)
    equal(bodies(again), ["m0", "m1"], "messages")
    equal([m["ReceiptHandle"] for m in again], [m["ReceiptHandle"] for m in first], "handles")
    delete(q, first[0])
    equal(receive(q, 2, ReceiveRequestAttemptId=str(uuid.uuid4())), [], "messages of another attempt")


@check("FIFO: an expired handle does not delete")
def _():
    q = queue(fifo=True, VisibilityTimeout=1)
    fifo(q, "hello")
    m = one(q)
    time.sleep(1.2)
    refused(
        "InvalidParameterValueException",
        delete,
        q,
        m,
        text=f"Value {m['ReceiptHandle']} for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired.",
    )
    equal(bodies(receive(q)), ["hello"], "messages")


@check("fair queues: a group on a standard queue comes back, and locks nothing")
def _():
    q = queue()
    for i in range(3):
        send(q, f"m{i}", MessageGroupId="tenant")
    got = [one(q) for _ in range(3)]
    equal({m["Attributes"]["MessageGroupId"] for m in got}, {"tenant"}, "groups")
    true(all("SequenceNumber" not in m["Attributes"] for m in got), "sequence numbers")


# --- dead letters ------------------------------------------------------------------------------


@check("redrive: after maxReceiveCount receives, with the same id, its source and its count")
def _():
    q, dlq = with_dlq(2)
    want = {"n": number("1"), "b": binary(b"\0\1")}
    sent = send(q, "poison", MessageAttributes=want, MessageSystemAttributes={"AWSTraceHeader": string(TRACE)})
    for _ in range(2):
        release(q, one(q))
    equal(counts(dlq), (0, 0, 0), "counts before the receive that moves")
    equal(receive(q), [], "messages of the source")
    m = one(dlq)
    equal((m["MessageId"], m["Body"], m["MessageAttributes"]), (sent["MessageId"], "poison", want), "message")
    a = m["Attributes"]
    equal((a["DeadLetterQueueSourceArn"], a["ApproximateReceiveCount"], a["AWSTraceHeader"]), (arn(q), "3", TRACE), "attributes")
    equal(counts(q), (0, 0, 0), "counts of the source")


@check("redrive: FIFO, the group goes on only when its head has moved")
def _():
    q, dlq = with_dlq(1, fifo=True)
    sent = [fifo(q, f"m{i}") for i in range(2)]
    m = receive(q, 1)[0]
    equal(receive(q), [], "the group while its head is in flight")
    release(q, m)
    equal(bodies(receive(q)), ["m1"], "the next of the group")
    m = one(dlq)
    a = m["Attributes"]
    equal((m["MessageId"], a["MessageGroupId"], a["DeadLetterQueueSourceArn"]), (sent[0]["MessageId"], "g", arn(q)), "dead letter")


@check("redrive: what a policy must be, and who may use a queue")
def _():
    dlq = queue()
    absent = json.dumps({"deadLetterTargetArn": arn(dlq) + "-absent", "maxReceiveCount": 1})
    refused(
        "InvalidParameterValueException",
        queue,
        RedrivePolicy=absent,
        text=f"Value {absent} for parameter RedrivePolicy is invalid. Reason: Dead letter target does not exist.",
    )
    policy = redrive_policy(dlq, 1)
    refused(
        "InvalidParameterValueException",
        queue,
        fifo=True,
        RedrivePolicy=policy,
        text=f"Value {policy} for parameter RedrivePolicy is invalid. Reason: Dead-letter queue must be same type of queue as the source..",
    )
    q = queue()
    sqs.set_queue_attributes(QueueUrl=dlq, Attributes={"RedriveAllowPolicy": '{"redrivePermission":"denyAll"}'})
    refused("InvalidParameterValueException", sqs.set_queue_attributes, QueueUrl=q, Attributes={"RedrivePolicy": policy})
    allow = json.dumps({"redrivePermission": "byQueue", "sourceQueueArns": [arn(q)]})
    sqs.set_queue_attributes(QueueUrl=dlq, Attributes={"RedriveAllowPolicy": allow})
    sqs.set_queue_attributes(QueueUrl=q, Attributes={"RedrivePolicy": policy})
    equal(json.loads(attributes(q, "RedrivePolicy")["RedrivePolicy"]), json.loads(policy), "policy")
    sqs.set_queue_attributes(QueueUrl=q, Attributes={"RedrivePolicy": ""})
    equal(attributes(q, "RedrivePolicy"), {}, "policy after it was removed")


@check("list the sources of a dead-letter queue, in pages")
def _():
    dlq = queue()
    equal(sqs.list_dead_letter_source_queues(QueueUrl=dlq).get("queueUrls", []), [], "sources")
    want = sorted(queue(RedrivePolicy=redrive_policy(dlq, 3)) for _ in range(5))
    equal(sorted(sqs.list_dead_letter_source_queues(QueueUrl=dlq)["queueUrls"]), want, "sources")
    pages = list(sqs.get_paginator("list_dead_letter_source_queues").paginate(QueueUrl=dlq, PaginationConfig={"PageSize": 2}))
    equal(len(pages), 3, "pages")
    equal(sorted(u for p in pages for u in p["queueUrls"]), want, "sources in pages")


def dead_letter(q, *bodies_):
    """Sends to a queue with maxReceiveCount 1 and has all of it dead-lettered."""
    ids = [send(q, b)["MessageId"] for b in bodies_]
    release(q, *take(q, len(bodies_)))
    equal(receive(q), [], "messages")
    return ids


def task(dlq):
    return sqs.list_message_move_tasks(SourceArn=arn(dlq))["Results"][0]


def ended(dlq, status):
    eventually(lambda: equal(task(dlq)["Status"], status, "status"))
    return task(dlq)


@check("move task: back to where each came from, under new ids")
def _():
    q, dlq = with_dlq(1)
    q2 = queue(RedrivePolicy=redrive_policy(dlq, 1))
    ids = dead_letter(q, "m0", "m1") + dead_letter(q2, "of the other")
    handle = sqs.start_message_move_task(SourceArn=arn(dlq))["TaskHandle"]
    t = ended(dlq, "COMPLETED")
    equal((t["ApproximateNumberOfMessagesMoved"], t["ApproximateNumberOfMessagesToMove"], t["SourceArn"]), (3, 3, arn(dlq)), "task")
    true("TaskHandle" not in t and "DestinationArn" not in t and "FailureReason" not in t, f"too much in {t}")
    true(abs(t["StartedTimestamp"] - time.time() * 1000) < 60_000, f"started {t['StartedTimestamp']}")
    got = take(q, 2) + take(q2, 1)
    equal(sorted(bodies(got)), ["m0", "m1", "of the other"], "messages")
    true(not {m["MessageId"] for m in got} & set(ids), "ids that are the same")
    equal({m["Attributes"]["ApproximateReceiveCount"] for m in got}, {"1"}, "times received")
    true(all("DeadLetterQueueSourceArn" not in m["Attributes"] for m in got), "a source")
    refused("InvalidParameterValueException", sqs.cancel_message_move_task, TaskHandle=handle)


@check("move task: to another queue, paced, one at a time, canceled")
def _():
    q, dlq = with_dlq(1)
    to = queue()
    dead_letter(q, *(f"m{i}" for i in range(6)))
    handle = sqs.start_message_move_task(SourceArn=arn(dlq), DestinationArn=arn(to), MaxNumberOfMessagesPerSecond=1)["TaskHandle"]
    refused(
        "InvalidParameterValueException",
        sqs.start_message_move_task,
        SourceArn=arn(dlq),
        text="There is already a task running. Only one active task is allowed for a source queue arn at a given time.",
    )
    t = task(dlq)
    equal((t["Status"], t["TaskHandle"], t["DestinationArn"], t["MaxNumberOfMessagesPerSecond"]), ("RUNNING", handle, arn(to), 1), "task")
    eventually(lambda: true(task(dlq)["ApproximateNumberOfMessagesMoved"] >= 1, "nothing is moved"))
    moved = sqs.cancel_message_move_task(TaskHandle=handle)["ApproximateNumberOfMessagesMoved"]
    t = ended(dlq, "CANCELLED")
    true(1 <= moved <= t["ApproximateNumberOfMessagesMoved"] < 6, f"moved {moved} of {t}")
    equal(counts(dlq)[0] + counts(to)[0], 6, "messages in both")
    equal(counts(to)[0], t["ApproximateNumberOfMessagesMoved"], "messages moved")


@check("move task: what cannot be")
def _():
    q = queue()
    start = sqs.start_message_move_task
    refused("InvalidParameterValueException", start, SourceArn=arn(q), text="Source queue must be configured as a Dead Letter Queue.")
    refused("ResourceNotFoundException", start, SourceArn=arn(q) + "-absent", text="The resource that you specified for the SourceArn parameter doesn't exist.")
    _, dlq = with_dlq()
    refused("ResourceNotFoundException", start, SourceArn=arn(dlq), DestinationArn=arn(q) + "-absent")
    refused("InvalidParameterValueException", start, SourceArn=arn(dlq), DestinationArn=arn(dlq))
    refused("InvalidParameterValueException", start, SourceArn=arn(dlq), MaxNumberOfMessagesPerSecond=501)
    refused("InvalidParameterValueException", sqs.cancel_message_move_task, TaskHandle="garbage")
    send(dlq, "sent here, so that there is no source")
    start(SourceArn=arn(dlq))
    equal(ended(dlq, "FAILED")["FailureReason"], "CouldNotDetermineMessageSource", "reason")
    equal(counts(dlq), (1, 0, 0), "counts")


@check("move task: FIFO, with the groups")
def _():
    q, dlq = with_dlq(1, fifo=True)
    for g in "ab":
        fifo(q, f"of {g}", g)
    release(q, *take(q, 2))
    equal(receive(q), [], "messages")
    sqs.start_message_move_task(SourceArn=arn(dlq))
    ended(dlq, "COMPLETED")
    equal({m["Attributes"]["MessageGroupId"]: m["Body"] for m in take(q, 2)}, {"a": "of a", "b": "of b"}, "messages")


# --- queues ------------------------------------------------------------------------------------


@check("purge, and its sixty seconds")
def _():
    q = queue()
    send(q, "in flight")
    m = one(q)
    send(q, "waits")
    send(q, "delayed", DelaySeconds=60)
    sqs.purge_queue(QueueUrl=q)
    eventually(lambda: equal(counts(q), (0, 0, 0), "counts"))
    delete(q, m)
    refused("PurgeQueueInProgress", sqs.purge_queue, QueueUrl=q, text=f"Only one PurgeQueue operation on {name(q)} is allowed every 60 seconds.")
    send(q, "after")
    equal(bodies(take(q, 1)), ["after"], "messages")


@check("tags")
def _():
    q = sqs.create_queue(QueueName=unique("q"), tags={"team": "a", "Team": "b"})["QueueUrl"]
    equal(sqs.list_queue_tags(QueueUrl=q)["Tags"], {"team": "a", "Team": "b"}, "tags")
    sqs.tag_queue(QueueUrl=q, Tags={"team": "c", "empty": ""})
    sqs.untag_queue(QueueUrl=q, TagKeys=["Team", "absent"])
    equal(sqs.list_queue_tags(QueueUrl=q)["Tags"], {"team": "c", "empty": ""}, "tags")
    sqs.untag_queue(QueueUrl=q, TagKeys=["team", "empty"])
    true("Tags" not in sqs.list_queue_tags(QueueUrl=q), "tags where there are none")


@check("permissions")
def _():
    q = queue()
    add = sqs.add_permission
    add(QueueUrl=q, Label="first", AWSAccountIds=["111111111111"], Actions=["ReceiveMessage"])
    add(QueueUrl=q, Label="second", AWSAccountIds=["111111111111", "222222222222"], Actions=["SendMessage", "DeleteMessage"])
    policy = json.loads(attributes(q, "Policy")["Policy"])
    equal((policy["Version"], policy["Id"]), ("2008-10-17", arn(q) + "/SQSDefaultPolicy"), "policy")
    equal(
        policy["Statement"],
        [
            {"Sid": "first", "Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::111111111111:root"}, "Action": "SQS:ReceiveMessage", "Resource": arn(q)},
            {
                "Sid": "second",
                "Effect": "Allow",
                "Principal": {"AWS": ["arn:aws:iam::111111111111:root", "arn:aws:iam::222222222222:root"]},
                "Action": ["SQS:SendMessage", "SQS:DeleteMessage"],
                "Resource": arn(q),
            },
        ],
        "statements",
    )
    refused(
        "InvalidParameterValueException",
        add,
        QueueUrl=q,
        Label="first",
        AWSAccountIds=["111111111111"],
        Actions=["SendMessage"],
        text="Value first for parameter Label is invalid. Reason: Already exists.",
    )
    refused("OverLimit", add, QueueUrl=q, Label="third", AWSAccountIds=["111111111111"], Actions=["SendMessage"] * 8)
    for label in ["first", "second"]:
        sqs.remove_permission(QueueUrl=q, Label=label)
    equal(attributes(q, "Policy"), {}, "policy")
    refused(
        "InvalidParameterValueException",
        sqs.remove_permission,
        QueueUrl=q,
        Label="first",
        text="Value first for parameter Label is invalid. Reason: can't find label.",
    )


@check("list queues by prefix, in pages")
def _():
    prefix = unique("paged")
    want = sorted(sqs.create_queue(QueueName=f"{prefix}-{i}")["QueueUrl"] for i in range(7))
    equal(sorted(sqs.list_queues(QueueNamePrefix=prefix)["QueueUrls"]), want, "queues")
    first = sqs.list_queues(QueueNamePrefix=prefix, MaxResults=3)
    equal(len(first["QueueUrls"]), 3, "queues of a page")
    true(first["NextToken"], "a token")
    pages = list(sqs.get_paginator("list_queues").paginate(QueueNamePrefix=prefix, PaginationConfig={"PageSize": 3}))
    equal([len(p["QueueUrls"]) for p in pages], [3, 3, 1], "pages")
    equal(sorted(u for p in pages for u in p["QueueUrls"]), want, "queues in pages")
    true("QueueUrls" not in sqs.list_queues(QueueNamePrefix=prefix + "-absent"), "queues of no name")


@check("queue URLs, and what a queue is reached by")
def _():
    q = queue()
    equal(q, f"{ENDPOINT}/{ACCOUNT}/{name(q)}", "URL")
    equal(sqs.get_queue_url(QueueName=name(q))["QueueUrl"], q, "URL")
    equal(sqs.get_queue_url(QueueName=name(q), QueueOwnerAWSAccountId=ACCOUNT)["QueueUrl"], q, "URL")
    equal(arn(q), f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name(q)}", "ARN")
    for url in [q + "/", f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/{name(q)}", f"{ENDPOINT}/queue/{REGION}/{ACCOUNT}/{name(q)}"]:
        if JSON or url.startswith(ENDPOINT):  # the old one sends to where the URL says
            equal(arn(url), arn(q), f"queue of {url}")


@check("attributes are set, merged and refused")
def _():
    q = queue(VisibilityTimeout=5)
    sqs.set_queue_attributes(QueueUrl=q, Attributes={"DelaySeconds": "7", "MessageRetentionPeriod": "60"})
    a = attributes(q)
    equal((a["VisibilityTimeout"], a["DelaySeconds"], a["MessageRetentionPeriod"]), ("5", "7", "60"), "attributes")
    refused("InvalidAttributeValue", sqs.set_queue_attributes, QueueUrl=q, Attributes={"DelaySeconds": "901"}, text="Invalid value for the parameter DelaySeconds.")
    refused("InvalidAttributeName", sqs.set_queue_attributes, QueueUrl=q, Attributes={"QueueArn": "x"}, text="Unknown Attribute QueueArn.")
    refused("InvalidAttributeName", attributes, q, "Foobar", text="Unknown Attribute Foobar.")
    equal(attributes(q, "Policy"), {}, "an attribute that is not set")


@check("create again: the same, and another")
def _():
    q = queue(DelaySeconds=5)
    equal(sqs.create_queue(QueueName=name(q))["QueueUrl"], q, "URL")
    equal(sqs.create_queue(QueueName=name(q), Attributes={"DelaySeconds": "5", "VisibilityTimeout": "30"})["QueueUrl"], q, "URL")
    refused(
        "QueueNameExists",
        sqs.create_queue,
        QueueName=name(q),
        Attributes={"DelaySeconds": "6"},
        text="A queue already exists with the same name and a different value for attribute DelaySeconds",
    )


@check("a queue that is not there, for every action on one")
def _():
    q = f"{ENDPOINT}/{ACCOUNT}/{unique('absent')}"
    handle = {"QueueUrl": q, "ReceiptHandle": "x"}
    entry = {"Id": "a", "ReceiptHandle": "x"}
    text = "The specified queue does not exist." if JSON else "The specified queue does not exist for this wsdl version."
    for fn, kwargs in [
        (sqs.get_queue_url, {"QueueName": name(q)}),
        (sqs.get_queue_attributes, {"QueueUrl": q, "AttributeNames": ["All"]}),
        (sqs.set_queue_attributes, {"QueueUrl": q, "Attributes": {"DelaySeconds": "1"}}),
        (sqs.delete_queue, {"QueueUrl": q}),
        (sqs.purge_queue, {"QueueUrl": q}),
        (sqs.send_message, {"QueueUrl": q, "MessageBody": "x"}),
        (sqs.send_message_batch, {"QueueUrl": q, "Entries": pairs(a="x")}),
        (sqs.receive_message, {"QueueUrl": q, "WaitTimeSeconds": 5}),
        (sqs.delete_message, handle),
        (sqs.delete_message_batch, {"QueueUrl": q, "Entries": [entry]}),
        (sqs.change_message_visibility, handle | {"VisibilityTimeout": 1}),
        (sqs.change_message_visibility_batch, {"QueueUrl": q, "Entries": [entry | {"VisibilityTimeout": 1}]}),
        (sqs.list_dead_letter_source_queues, {"QueueUrl": q}),
        (sqs.list_queue_tags, {"QueueUrl": q}),
        (sqs.tag_queue, {"QueueUrl": q, "Tags": {"a": "b"}}),
        (sqs.untag_queue, {"QueueUrl": q, "TagKeys": ["a"]}),
        (sqs.add_permission, {"QueueUrl": q, "Label": "l", "AWSAccountIds": ["111111111111"], "Actions": ["SendMessage"]}),
        (sqs.remove_permission, {"QueueUrl": q, "Label": "l"}),
    ]:
        refused("QueueDoesNotExist", fn, text=text, **kwargs)


@check("delete a queue, whose name then rests for a minute")
def _():
    q = queue()
    send(q, "gone")
    sqs.delete_queue(QueueUrl=q)
    refused("QueueDoesNotExist", attributes, q)
    refused("QueueDeletedRecently", sqs.create_queue, QueueName=name(q))


# --- signatures, accounts, other ways in -------------------------------------------------------


@check("signatures: wrong secret, unknown key, none at all")
def _():
    refused("InvalidSignatureException", client(secret="wrong").list_queues)
    refused("UnrecognizedClientException", client(key="unknown").list_queues, text="The security token included in the request is invalid.")
    client(signature_version=UNSIGNED).list_queues()


@check("accounts and regions have queues of their own")
def _():
    name_ = unique("mine")
    elsewhere = [client(key="111111111111"), client(region="eu-west-1")]
    urls = [c.create_queue(QueueName=name_)["QueueUrl"] for c in elsewhere]
    refused("QueueDoesNotExist", sqs.get_queue_url, QueueName=name_)
    got = [c.get_queue_attributes(QueueUrl=u, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"] for c, u in zip(elsewhere, urls)]
    equal(got, [f"arn:aws:sqs:{REGION}:111111111111:{name_}", f"arn:aws:sqs:eu-west-1:{ACCOUNT}:{name_}"], "ARNs")
    equal([c.list_queues(QueueNamePrefix=name_)["QueueUrls"] for c in elsewhere], [[u] for u in urls], "lists")


@check("a presigned URL")
def _():
    q = queue()
    send(q, "hello")
    if JSON:  # what it presigns itself is not for GET
        url = presigned(q + "?" + urlencode({"Action": "ReceiveMessage", "AttributeName.1": "All"}))
    else:
        url = sqs.generate_presigned_url("receive_message", {"QueueUrl": q, "AttributeNames": ["All"]}, 60, "GET")
    status, _, text = raw("GET", url, sign=False)
    equal(status, 200, "status")
    true("<Body>hello</Body>" in text and "<Name>SenderId</Name>" in text, f"answer {text}")


@check("a presigned URL that sends; one that was added to, and one that has expired")
def _():
    q = queue()
    send_ = q + "?" + urlencode({"Action": "SendMessage", "MessageBody": "hello"})
    brief = presigned(send_, 1)
    equal(raw("GET", presigned(send_), sign=False)[0], 200, "status")
    equal(one(q)["Body"], "hello", "body")
    equal(raw("GET", presigned(send_) + "&DelaySeconds=1", sign=False)[0], 403, "status of what was added to")
    time.sleep(2.1)
    status, _, text = raw("GET", brief, sign=False)
    equal((status, "<Code>SignatureDoesNotMatch</Code>" in text), (403, True), f"expired: {text}")


@check("the objects of boto3")
def _():
    res = client(kind="resource")
    q = res.create_queue(QueueName=unique("q"), Attributes={"VisibilityTimeout": "30"})
    q.send_messages(Entries=pairs(a="one", b="two"))
    got = q.receive_messages(MaxNumberOfMessages=10, WaitTimeSeconds=1, MessageAttributeNames=["All"])
    equal(sorted(m.body for m in got), ["one", "two"], "bodies")
    got[0].change_visibility(VisibilityTimeout=0)
    q.delete_messages(Entries=[{"Id": "x", "ReceiptHandle": got[1].receipt_handle}])
    (m,) = q.receive_messages()
    m.delete()
    q.reload()
    equal(q.attributes["ApproximateNumberOfMessages"], "0", "messages")
    equal(res.get_queue_by_name(QueueName=q.url.rsplit("/", 1)[1]).url, q.url, "URL")
    q.set_attributes(Attributes={"DelaySeconds": "3"})
    q.delete()
    refused("QueueDoesNotExist", q.reload)


@check("sixteen threads, a thousand messages, none lost and none twice")
def _():
    q = queue()
    with ThreadPoolExecutor(16) as pool:
        list(
            pool.map(
                lambda i: sqs.send_message_batch(QueueUrl=q, Entries=[{"Id": str(n), "MessageBody": f"{i}-{n}"} for n in range(10)]),
                range(100),
            )
        )
        got, lock = [], threading.Lock()

        def drain(_):
            while messages := receive(q):
                sqs.delete_message_batch(QueueUrl=q, Entries=[{"Id": str(n), "ReceiptHandle": m["ReceiptHandle"]} for n, m in enumerate(messages)])
                with lock:
                    got.extend(bodies(messages))

        list(pool.map(drain, range(16)))
    equal((len(got), len(set(got))), (1000, 1000), "messages")
    equal(counts(q), (0, 0, 0), "counts")
