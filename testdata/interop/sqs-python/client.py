"""Clients of the server that the environment names, and the calls that most checks make."""

import hashlib
import json
import os
import time

import boto3
from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError
from botocore.httpsession import URLLib3Session
from harness import equal, true, unique

ENDPOINT = os.environ["AWS_ENDPOINT_URL_SQS"]
REGION = os.environ["AWS_DEFAULT_REGION"]
ACCOUNT = "000000000000"

# Errors are what is checked, so none may be tried again; and many checks run at the same time.
_CONFIG = Config(retries={"max_attempts": 0}, max_pool_connections=64)


def client(key="test", secret="test", region=REGION, kind="client", **config):
    session = boto3.session.Session(aws_access_key_id=key, aws_secret_access_key=secret, region_name=region)
    return getattr(session, kind)("sqs", endpoint_url=ENDPOINT, config=_CONFIG.merge(Config(**config)))


sqs = client()

# Whether this botocore speaks AWS JSON. If not, it speaks AWS Query.
JSON = sqs.meta.service_model.metadata["protocol"] == "json"

# What asks for system attributes: the old model has only the old name.
SYSTEM = "MessageSystemAttributeNames" if JSON else "AttributeNames"


# --- queues ------------------------------------------------------------------------------------


def queue(fifo=False, **attributes):
    """Makes a queue and returns its URL."""
    if fifo:
        attributes["FifoQueue"] = "true"
    name = unique("q") + (".fifo" if fifo else "")
    return sqs.create_queue(QueueName=name, Attributes={k: str(v) for k, v in attributes.items()})["QueueUrl"]


def attributes(url, *names):
    return sqs.get_queue_attributes(QueueUrl=url, AttributeNames=list(names) or ["All"]).get("Attributes", {})


def arn(url):
    return attributes(url, "QueueArn")["QueueArn"]


def name(url):
    return url.rsplit("/", 1)[1]


def counts(url):
    """Returns how many messages can be received, are in flight and are delayed."""
    a = attributes(url)
    of = "ApproximateNumberOfMessages"
    return int(a[of]), int(a[of + "NotVisible"]), int(a[of + "Delayed"])


def redrive_policy(dlq, count):
    return json.dumps({"deadLetterTargetArn": arn(dlq), "maxReceiveCount": count})


def with_dlq(count=1, fifo=False, **attributes):
    """Makes a queue and its dead-letter queue."""
    dlq = queue(fifo)
    return queue(fifo, RedrivePolicy=redrive_policy(dlq, count), **attributes), dlq


# --- messages ----------------------------------------------------------------------------------


def send(url, body, **kwargs):
    return sqs.send_message(QueueUrl=url, MessageBody=body, **kwargs)


def receive(url, n=10, wait=0, **kwargs):
    """Receives once, with all system attributes."""
    kwargs.setdefault(SYSTEM, ["All"])
    kwargs.setdefault("MessageAttributeNames", ["All"])
    return sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=n, WaitTimeSeconds=wait, **kwargs).get("Messages", [])


def take(url, n, wait=8, **kwargs):
    """Receives exactly n messages."""
    got = []
    end = time.monotonic() + wait
    while len(got) < n and time.monotonic() < end:
        got += receive(url, min(n - len(got), 10), wait=1, **kwargs)
    equal(len(got), n, "messages")
    return got


def one(url, **kwargs):
    return take(url, 1, **kwargs)[0]


def bodies(messages):
    return [m["Body"] for m in messages]


def delete(url, message):
    sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])


def change(url, message, seconds):
    sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=seconds)


def release(url, *messages):
    for m in messages:
        change(url, m, 0)


def string(value, label=""):
    return {"DataType": "String" + label, "StringValue": value}


def number(value, label=""):
    return {"DataType": "Number" + label, "StringValue": value}


def binary(value, label=""):
    return {"DataType": "Binary" + label, "BinaryValue": value}


def md5(text):
    return hashlib.md5(text.encode()).hexdigest()


def attributes_md5(attributes):
    """Computes what boto3 does not check: the digest over message attributes."""

    def counted(b):
        return len(b).to_bytes(4, "big") + b

    out = hashlib.md5()
    for key in sorted(attributes):
        a = attributes[key]
        text = a["DataType"].startswith(("String", "Number"))
        value = a["StringValue"].encode() if text else a["BinaryValue"]
        out.update(counted(key.encode()) + counted(a["DataType"].encode()) + (b"\1" if text else b"\2") + counted(value))
    return out.hexdigest()


# --- errors ------------------------------------------------------------------------------------

# The shape of an error as AWS JSON names it, its code in AWS Query, and its status.
ERRORS = {
    shape: (code, status)
    for shape, code, status in [
        ("QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue", 400),
        ("QueueNameExists", "QueueAlreadyExists", 400),
        ("QueueDeletedRecently", "AWS.SimpleQueueService.QueueDeletedRecently", 400),
        ("InvalidAttributeName", "InvalidAttributeName", 400),
        ("InvalidAttributeValue", "InvalidAttributeValue", 400),
        ("InvalidParameterValueException", "InvalidParameterValue", 400),
        ("MissingRequiredParameterException", "MissingParameter", 400),
        ("InvalidMessageContents", "InvalidMessageContents", 400),
        ("ReceiptHandleIsInvalid", "ReceiptHandleIsInvalid", 404),
        ("EmptyBatchRequest", "AWS.SimpleQueueService.EmptyBatchRequest", 400),
        ("TooManyEntriesInBatchRequest", "AWS.SimpleQueueService.TooManyEntriesInBatchRequest", 400),
        ("BatchEntryIdsNotDistinct", "AWS.SimpleQueueService.BatchEntryIdsNotDistinct", 400),
        ("InvalidBatchEntryId", "AWS.SimpleQueueService.InvalidBatchEntryId", 400),
        ("BatchRequestTooLong", "AWS.SimpleQueueService.BatchRequestTooLong", 400),
        ("PurgeQueueInProgress", "AWS.SimpleQueueService.PurgeQueueInProgress", 403),
        ("OverLimit", "OverLimit", 403),
        ("ResourceNotFoundException", "ResourceNotFoundException", 404),
        ("UnsupportedOperation", "AWS.SimpleQueueService.UnsupportedOperation", 400),
        ("UnknownOperationException", "InvalidAction", 400),
        ("UnrecognizedClientException", "InvalidClientTokenId", 403),
        ("InvalidSignatureException", "SignatureDoesNotMatch", 403),
    ]
}


def refused(shape, fn, *args, text=None, **kwargs):
    """Asserts that a call fails with the error of a shape: its code, status, typed exception and, when given, text."""
    try:
        got = fn(*args, **kwargs)
    except ClientError as e:
        err = e
    else:
        raise AssertionError(f"expected {shape}, got {got!r}")
    code, status = ERRORS[shape]
    error = err.response["Error"]
    equal((error["Code"], err.response["ResponseMetadata"]["HTTPStatusCode"]), (code, status), f"code and status ({error.get('Message')})")
    true(err.response["ResponseMetadata"].get("RequestId"), "an error without a request id")
    equal(error.get("Type"), "Sender", "whose fault")
    if text is not None:
        equal(error["Message"], text, "text")
    if JSON:
        equal(error["QueryErrorCode"], shape, "shape")
    # The typed exceptions are those of the model, which has not all errors.
    if shape in {s.name for s in sqs.meta.service_model.error_shapes}:
        equal(type(err).__name__, shape, "exception")
    return err


# --- below the client --------------------------------------------------------------------------

_http = URLLib3Session(timeout=30, max_pool_connections=16)


def raw(method, url, headers=None, data=b"", sign=True):
    """Sends a request that the client would not, and returns status, headers and text."""
    request = AWSRequest(method, url, headers=headers, data=data)
    if sign:
        SigV4Auth(Credentials("test", "test"), "sqs", REGION).add_auth(request)
    response = _http.send(request.prepare())
    return response.status_code, response.headers, response.content.decode()


def presigned(url, seconds=60):
    """Returns an URL that anybody may get for some seconds."""
    request = AWSRequest("GET", url)
    SigV4QueryAuth(Credentials("test", "test"), "sqs", REGION, seconds).add_auth(request)
    return request.prepare().url
