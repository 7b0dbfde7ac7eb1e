"""The AWS command line on Amazon SQS: scenario.py NAME [only those whose name contains this].

AWS_CLI names the command, of version 1 or 2.
"""

import base64
import json
import os
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import harness
from command import Command
from harness import check, equal, eventually, true, unique

ENDPOINT = os.environ["AWS_ENDPOINT_URL_SQS"]

# What is not set here cannot come from the user's own configuration.
ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "LANG": "C.UTF-8",
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": os.environ["AWS_DEFAULT_REGION"],
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_PAGER": "",
    "AWS_MAX_ATTEMPTS": "1",
}


class CLI:
    def __init__(self, path):
        self.command = Command(path, ENVIRONMENT)
        self.version = self.command.version

    def run(self, action, *options, queue=None, **more):
        """Runs a command; values of more that are not text are given as JSON."""
        argv = ["--endpoint-url", ENDPOINT, "--output", "json", "sqs", action, *options]
        if queue:
            argv += ["--queue-url", queue]
        for key, value in more.items():
            argv += ["--" + key.replace("_", "-"), value if isinstance(value, str) else json.dumps(value)]
        return self.command(argv)

    def __call__(self, action, *options, **kwargs):
        """Runs a command and returns what it has printed."""
        status, out, err = self.run(action, *options, **kwargs)
        equal(status, 0, f"status ({err.strip()})")
        return json.loads(out) if out.strip() else {}

    def fails(self, code, action, *options, **kwargs):
        """Asserts that a command fails with the code of an error, and returns its text."""
        status, _, err = self.run(action, *options, **kwargs)
        true(status in (254, 255), f"status {status}: {err}")
        said = re.search(r"An error occurred \((\S+)\) when calling the \w+ operation(?: \(reached max retries: 0\))?: (.*)", err)
        true(said, f"expected {code}, got {err}")
        equal(said.group(1), code, "code")
        return said.group(2)

    def queue(self, suffix="", **attributes):
        return self("create-queue", queue_name=unique("cli") + suffix, **({"attributes": attributes} if attributes else {}))["QueueUrl"]

    def receive(self, queue, n=10, **more):
        return self("receive-message", queue=queue, attribute_names=["All"], message_attribute_names=["All"], max_number_of_messages=str(n), **more).get("Messages", [])

    def arn(self, queue):
        return self("get-queue-attributes", queue=queue, attribute_names=["QueueArn"])["Attributes"]["QueueArn"]


def standard(aws):
    """Sends, receives and settles, one by one and in batches."""
    q = aws.queue(VisibilityTimeout="30", MaximumMessageSize="1024")
    name = q.rsplit("/", 1)[1]
    equal(aws("get-queue-url", queue_name=name)["QueueUrl"], q, "URL")
    # Version 1 takes bytes in JSON as they are, version 2 in base64, if it is not told otherwise.
    raw = "raw bytes"
    given = raw if aws.version.startswith("1.") else base64.b64encode(raw.encode()).decode()
    want = {"text": {"DataType": "String.label", "StringValue": "a \u00e9"}, "n": {"DataType": "Number", "StringValue": "42"}}
    sent = aws(
        "send-message",
        queue=q,
        message_body="hello",
        message_attributes=want | {"bytes": {"DataType": "Binary", "BinaryValue": given}},
        message_system_attributes={"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1-5759e988-bd862e3fe1be46a994272793"}},
    )
    equal(sent["MD5OfMessageBody"], "5d41402abc4b2a76b9719d911017c592", "digest")
    (m,) = aws.receive(q)
    equal((m["MessageId"], m["Body"], m["Attributes"]["ApproximateReceiveCount"]), (sent["MessageId"], "hello", "1"), "message")
    equal(m["Attributes"]["AWSTraceHeader"], "Root=1-5759e988-bd862e3fe1be46a994272793", "trace header")
    bytes_ = m["MessageAttributes"].pop("bytes")
    equal(m["MessageAttributes"], want, "attributes")
    equal(base64.b64decode(bytes_["BinaryValue"]).decode(), raw, "bytes")
    aws("change-message-visibility", queue=q, receipt_handle=m["ReceiptHandle"], visibility_timeout="0")
    (m,) = aws.receive(q)
    equal(m["Attributes"]["ApproximateReceiveCount"], "2", "times received")
    aws("delete-message", queue=q, receipt_handle=m["ReceiptHandle"])

    entries = [{"Id": "good", "MessageBody": "fits"}, {"Id": "large", "MessageBody": "x" * 1025}]
    answer = aws("send-message-batch", queue=q, entries=entries)
    equal([e["Id"] for e in answer["Successful"]], ["good"], "sent")
    equal([(e["Id"], e["Code"], e["SenderFault"]) for e in answer["Failed"]], [("large", "InvalidParameterValue", True)], "failed")
    (m,) = aws.receive(q)
    handles = [{"Id": "good", "ReceiptHandle": m["ReceiptHandle"]}, {"Id": "bad", "ReceiptHandle": "garbage"}]
    answer = aws("delete-message-batch", queue=q, entries=handles)
    equal(([e["Id"] for e in answer["Successful"]], [e["Code"] for e in answer["Failed"]]), (["good"], ["ReceiptHandleIsInvalid"]), "deleted")


def polling(aws):
    """Waits for what comes."""
    q = aws.queue()
    with ThreadPoolExecutor(1) as pool:
        start = time.monotonic()
        waiting = pool.submit(aws.receive, q, wait_time_seconds="20")
        time.sleep(1)
        aws("send-message", queue=q, message_body="hello")
        equal([m["Body"] for m in waiting.result()], ["hello"], "messages")
    true(time.monotonic() - start < 15, f"it took {time.monotonic() - start} s")


def fifo(aws):
    """Keeps order and drops what was sent twice."""
    q = aws.queue(".fifo", FifoQueue="true", ContentBasedDeduplication="true")
    for body in ["one", "one"]:
        aws("send-message", queue=q, message_body=body, message_group_id="g")
    aws("send-message-batch", queue=q, entries=[{"Id": str(i), "MessageBody": f"m{i}", "MessageGroupId": "g"} for i in range(3)])
    first = aws.receive(q, 2, receive_request_attempt_id="attempt")
    equal([m["Body"] for m in first], ["one", "m0"], "messages")
    again = aws.receive(q, 2, receive_request_attempt_id="attempt")
    equal([m["ReceiptHandle"] for m in again], [m["ReceiptHandle"] for m in first], "handles of the same attempt")
    equal(aws.receive(q), [], "messages of a locked group")


def dead_letters(aws):
    """Has a message dead-lettered and, where the command is new enough, moved back."""
    dlq = aws.queue()
    q = aws.queue(RedrivePolicy=json.dumps({"deadLetterTargetArn": aws.arn(dlq), "maxReceiveCount": 1}))
    sent = aws("send-message", queue=q, message_body="poison")
    (m,) = aws.receive(q, visibility_timeout="0")
    equal(aws.receive(q), [], "messages")
    (m,) = aws.receive(dlq, visibility_timeout="0")
    equal((m["MessageId"], m["Attributes"]["DeadLetterQueueSourceArn"], m["Attributes"]["ApproximateReceiveCount"]), (sent["MessageId"], aws.arn(q), "2"), "dead letter")
    equal(aws("list-dead-letter-source-queues", queue=dlq)["queueUrls"], [q], "sources")
    if [int(n) for n in aws.version.split(".")] < ([1, 27, 150] if aws.version.startswith("1.") else [2, 12]):
        return  # it knows no move tasks
    source = aws.arn(dlq)
    handle = aws("start-message-move-task", source_arn=source)["TaskHandle"]
    eventually(lambda: equal(aws("list-message-move-tasks", source_arn=source)["Results"][0]["Status"], "COMPLETED", "status"))
    aws.fails("InvalidParameterValue", "cancel-message-move-task", task_handle=handle)
    equal([m["Body"] for m in aws.receive(q)], ["poison"], "messages that are back")


def administration(aws):
    """Lists, tags, permits, purges and deletes."""
    prefix = unique("listed")
    urls = sorted(aws("create-queue", queue_name=f"{prefix}-{i}", tags={"team": "a"})["QueueUrl"] for i in range(3))
    equal(sorted(aws("list-queues", queue_name_prefix=prefix, page_size="2")["QueueUrls"]), urls, "queues")
    q = urls[0]
    aws("tag-queue", queue=q, tags={"more": "b"})
    aws("untag-queue", queue=q, tag_keys=["team"])
    equal(aws("list-queue-tags", queue=q)["Tags"], {"more": "b"}, "tags")
    aws("add-permission", queue=q, label="l", aws_account_ids=["111111111111"], actions=["SendMessage"])
    aws("set-queue-attributes", queue=q, attributes={"DelaySeconds": "7"})
    got = aws("get-queue-attributes", queue=q, attribute_names=["All"])["Attributes"]
    equal((json.loads(got["Policy"])["Statement"][0]["Sid"], got["DelaySeconds"]), ("l", "7"), "attributes")
    aws("purge-queue", queue=q)
    text = aws.fails("AWS.SimpleQueueService.PurgeQueueInProgress", "purge-queue", queue=q)
    equal(text, f"Only one PurgeQueue operation on {prefix}-0 is allowed every 60 seconds.", "text")
    aws("delete-queue", queue=q)
    text = aws.fails("AWS.SimpleQueueService.NonExistentQueue", "get-queue-url", queue_name=f"{prefix}-0")
    true(text.startswith("The specified queue does not exist"), f"text {text}")
    aws.fails("ReceiptHandleIsInvalid", "delete-message", queue=urls[1], receipt_handle="garbage")


if __name__ == "__main__":
    aws_ = CLI(os.environ["AWS_CLI"])
    for fn_ in [administration, standard, dead_letters, fifo, polling]:
        check(f"{aws_.version}: {fn_.__doc__[:1].lower()}{fn_.__doc__[1:].rstrip('.')}")(lambda fn=fn_: fn(aws_))
    sys.exit(0 if harness.run(*sys.argv[1:3], at_once=4) else 1)
