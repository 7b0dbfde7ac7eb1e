"""kombu and Celery on Amazon SQS: celery_kombu.py NAME [only those whose name contains this]."""

import base64
import socket
import sys
import threading
import time
from contextlib import contextmanager
from urllib.parse import urlsplit

import harness
from celery import Celery
from celery.contrib.testing.worker import start_worker
from celery.exceptions import Reject
from client import ENDPOINT, REGION, attributes, counts, name, one, queue, redrive_policy, sqs
from harness import check, equal, eventually, true, unique
from kombu import Connection, Consumer, Producer, Queue

BROKER = f"sqs://test:test@{urlsplit(ENDPOINT).netloc}"
OPTIONS = {"region": REGION, "is_secure": False, "visibility_timeout": 30, "wait_time_seconds": 1, "polling_interval": 0.1}


def connect(**options):
    return Connection(BROKER, transport_options=OPTIONS | options)


def url(queue_name):
    return sqs.get_queue_url(QueueName=queue_name)["QueueUrl"]


@contextmanager
def consumer(connection, queue_, handle):
    with Consumer(connection.channel(), [queue_], callbacks=[handle], accept=["json"]):
        yield


def drain(connection, done, seconds=15):
    """Hands messages out until done returns true."""
    end = time.monotonic() + seconds
    while not done():
        true(time.monotonic() < end, "nothing came")
        try:
            connection.drain_events(timeout=1)
        except socket.timeout:
            pass


# --- kombu -------------------------------------------------------------------------------------


@check("kombu: a simple queue")
def _():
    queue_name = unique("simple")
    with connect() as c:
        q = c.SimpleQueue(queue_name)
        want = [{"n": 1, "text": "\u00e9<&>"}, {"n": 2, "text": "x" * 100_000}]
        for body in want:
            q.put(body)
        equal(attributes(url(queue_name), "VisibilityTimeout")["VisibilityTimeout"], "30", "the visibility timeout that it makes queues with")
        equal(q.qsize(), 2, "messages")
        got = []
        for _ in want:
            m = q.get(timeout=10)
            got.append(m.payload)
            m.ack()
        equal(sorted(got, key=lambda b: b["n"]), want, "messages")
        eventually(lambda: equal(counts(url(queue_name)), (0, 0, 0), "counts"))
        q.close()


@check("kombu: a consumer that acknowledges, requeues and rejects")
def _():
    at = queue(VisibilityTimeout=30, RedrivePolicy=redrive_policy(queue(), 5))  # without a policy, newer ones delete what is rejected
    seen = []

    def handle(body, message):
        seen.append(body)
        if body == "again" and seen.count(body) == 1:
            message.requeue()
        elif body == "kept":
            message.reject()
        else:
            message.ack()

    with connect() as c:
        q = Queue(name(at), channel=c.channel())
        producer = Producer(c.channel(), serializer="json")
        for body in ["ack", "again", "kept"]:
            producer.publish(body, routing_key=q.name)
        with consumer(c, q, handle):
            drain(c, lambda: seen.count("again") == 2 and {"ack", "kept"} <= set(seen))
        eventually(lambda: equal(counts(at), (0, 1, 0), "what is rejected stays hidden"))


@check("kombu: a FIFO queue with groups")
def _():
    queue_name = unique("fifo") + ".fifo"
    at = sqs.create_queue(QueueName=queue_name, Attributes={"FifoQueue": "true", "ContentBasedDeduplication": "true"})["QueueUrl"]
    seen = []

    def handle(body, message):
        seen.append(body)
        message.ack()

    with connect(predefined_queues={queue_name: {"url": at, "access_key_id": "test", "secret_access_key": "test"}}) as c:
        producer = Producer(c.channel(), serializer="json")
        for i in range(5):
            producer.publish({"n": i}, routing_key=queue_name, MessageGroupId="g", MessageDeduplicationId=str(i))
        with consumer(c, Queue(queue_name), handle):
            drain(c, lambda: len(seen) == 5)
    equal([b["n"] for b in seen], list(range(5)), "messages")


@check("kombu: declare, purge, delete; a prefix of names")
def _():
    prefix = unique("prefixed") + "-"
    with connect(queue_name_prefix=prefix) as c:
        channel = c.channel()
        q = Queue("tasks", channel=channel)
        q.declare()
        true(url(prefix + "tasks"), "no queue with the prefix")
        Producer(channel, serializer="json").publish("x", routing_key="tasks")
        equal(counts(url(prefix + "tasks"))[0], 1, "messages")
        q.purge()
        eventually(lambda: equal(counts(url(prefix + "tasks")), (0, 0, 0), "counts"))


@check("kombu: waits for what comes while it polls")
def _():
    seen = []

    def handle(body, message):
        seen.append(body)
        message.ack()

    with connect(wait_time_seconds=10) as c, connect() as c2:
        q = Queue(unique("polled"), channel=c.channel())
        q.declare()
        later = threading.Timer(0.7, lambda: Producer(c2.channel(), serializer="json").publish("late", routing_key=q.name))
        later.start()
        start = time.monotonic()
        with consumer(c, q, handle):
            drain(c, lambda: seen == ["late"])
        true(time.monotonic() - start < 5, f"it took {time.monotonic() - start} s")


# --- Celery ------------------------------------------------------------------------------------


@check("celery: a worker runs, retries, delays, and its dead letters come to the queue for them")
def _():
    dlq = queue()
    tasks = queue(VisibilityTimeout=1, RedrivePolicy=redrive_policy(dlq, 2))
    app = Celery("interop", broker=BROKER, backend="cache+memory://")
    predefined = {name(tasks): {"url": tasks, "access_key_id": "test", "secret_access_key": "test"}}
    app.conf.update(
        task_default_queue=name(tasks),
        broker_transport_options=OPTIONS | {"predefined_queues": predefined, "visibility_timeout": 1},
        worker_enable_remote_control=False,
        broker_connection_retry_on_startup=True,
        worker_hijack_root_logger=False,
        task_acks_late=True,
        task_acks_on_failure_or_timeout=False,
    )
    tried = []

    @app.task
    def add(a, b):
        return a + b

    @app.task(bind=True, max_retries=3)
    def flaky(self):
        tried.append("flaky")
        if self.request.retries < 2:
            raise self.retry(countdown=0)
        return self.request.retries

    @app.task
    def poison():
        tried.append("poison")
        raise Reject("it never works", requeue=False)

    with start_worker(app, pool="solo", perform_ping_check=False, loglevel="CRITICAL"):
        sums = [add.delay(i, i) for i in range(20)]
        retried = flaky.delay()
        delayed = add.apply_async((1, 2), countdown=0.5)
        poisoned = poison.delay()
        equal([s.get(timeout=20) for s in sums], [2 * i for i in range(20)], "sums")
        equal(retried.get(timeout=20), 2, "retries")
        equal(delayed.get(timeout=20), 3, "the delayed sum")
        eventually(lambda: equal(counts(dlq)[0], 1, "dead letters"))
    equal(tried.count("poison"), 2, "times that the poison was tried")
    m = one(dlq)
    true(poisoned.id in sqs_body(m), "another message")
    eventually(lambda: equal(counts(tasks), (0, 0, 0), "what is left"))


def sqs_body(message):
    """Returns a message of kombu, which is JSON in base64."""
    return base64.b64decode(message["Body"]).decode()


if __name__ == "__main__":
    # kombu has one event loop in a process.
    sys.exit(0 if harness.run(*sys.argv[1:3], at_once=1) else 1)
