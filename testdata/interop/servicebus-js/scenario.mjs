// @azure/service-bus, unmodified, against a server named by connection strings in the environment.
import assert from "node:assert/strict";
import Long from "long";
import WebSocket from "ws";
import { ServiceBusAdministrationClient, ServiceBusClient } from "@azure/service-bus";
import { check, eventually, fails, run, sleep, unique } from "./harness.mjs";

const secure = process.env.SERVICEBUS_TLS;
const sendOnly = process.env.SERVICEBUS_TLS_SEND_ONLY;
const listenOnly = process.env.SERVICEBUS_TLS_LISTEN_ONLY;
const plain = process.env.SERVICEBUS_PLAIN;

const retryOptions = { maxRetries: 1, retryDelayInMs: 200, timeoutInMs: 20_000 };
const admin = new ServiceBusAdministrationClient(secure, { retryOptions: { maxRetries: 1 } });
const client = new ServiceBusClient(secure, { retryOptions });

async function queue(options) {
  const name = unique("q");
  await admin.createQueue(name, options);
  return name;
}

async function topic(...subscriptions) {
  const name = unique("t");
  await admin.createTopic(name);
  for (const s of subscriptions) {
    await admin.createSubscription(name, s);
  }
  return name;
}

async function send(entity, ...messages) {
  const sender = client.createSender(entity);
  for (const m of messages) {
    if (!m.bodyType) m.messageId ??= unique("m");
  }
  await sender.sendMessages(messages);
  await sender.close();
}

/** take receives exactly n messages, or throws. */
async function take(receiver, n, wait = 5_000) {
  const got = [];
  const end = Date.now() + wait;
  while (got.length < n && Date.now() < end) {
    got.push(...(await receiver.receiveMessages(n - got.length, { maxWaitTimeInMs: Math.max(end - Date.now(), 1) })));
  }
  assert.equal(got.length, n, `expected ${n} messages, got ${got.length}`);
  return got;
}

async function none(receiver) {
  const got = await receiver.receiveMessages(1, { maxWaitTimeInMs: 500 });
  assert.deepEqual(got.map((m) => m.body), []);
}

async function counts(name) {
  const p = await admin.getQueueRuntimeProperties(name);
  return {
    total: p.totalMessageCount,
    active: p.activeMessageCount,
    deadLetter: p.deadLetterMessageCount,
    scheduled: p.scheduledMessageCount,
  };
}

async function all(pages) {
  const got = [];
  for await (const x of pages) got.push(x);
  return got;
}

// --- sending and receiving -------------------------------------------------------------------

check("send, receive, complete", async () => {
  const q = await queue();
  await send(q, { body: "hello" });
  const r = client.createReceiver(q);
  const [m] = await take(r, 1);
  assert.equal(m.body, "hello");
  assert.equal(m.deliveryCount, 0);
  assert.equal(m.sequenceNumber.toString(), "1");
  assert.equal(m.state, "active");
  assert.ok(Math.abs(m.enqueuedTimeUtc - Date.now()) < 60_000, `enqueued ${m.enqueuedTimeUtc}`);
  assert.ok(m.lockedUntilUtc > Date.now(), `locked until ${m.lockedUntilUtc}`);
  assert.match(m.lockToken, /^[0-9a-f-]{36}$/);
  await r.completeMessage(m);
  await none(r);
  assert.deepEqual(await counts(q), { total: 0, active: 0, deadLetter: 0, scheduled: 0 });
});

// The service gives such a message an id: this SDK could not settle it otherwise while it renews its lock.
check("a message that is sent without an id can be completed", async () => {
  const q = await queue();
  await client.createSender(q).sendMessages({ body: "anonymous" });
  const r = client.createReceiver(q);
  const [m] = await take(r, 1);
  await r.completeMessage(m);
  assert.equal((await counts(q)).total, 0);
});

check("system properties come back equal", async () => {
  const q = await queue();
  const sent = {
    body: { a: 1 },
    messageId: "id-1",
    correlationId: "corr-1",
    contentType: "application/json",
    subject: "subject",
    to: "to",
    replyTo: "reply-to",
    replyToSessionId: "reply-session",
    partitionKey: "session",
    sessionId: "session",
    timeToLive: 3_600_000,
  };
  await send(q, sent);
  const [m] = await take(client.createReceiver(q), 1);
  for (const [k, v] of Object.entries(sent)) {
    assert.deepEqual(m[k], v, `${k}: expected ${JSON.stringify(v)}, got ${JSON.stringify(m[k])}`);
  }
  assert.equal(m.expiresAtUtc - m.enqueuedTimeUtc, 3_600_000);
});

check("application properties of every type come back equal", async () => {
  const q = await queue();
  const applicationProperties = {
    string: "text",
    empty: "",
    unicode: "žluťoučký 🐎",
    int: 42,
    negative: -7,
    large: 2 ** 40,
    fraction: 1.5,
    yes: true,
    no: false,
    nothing: null,
    when: new Date(1_700_000_000_123),
  };
  await send(q, { body: "x", applicationProperties });
  const [m] = await take(client.createReceiver(q, { skipConvertingDate: true }), 1);
  assert.deepEqual(m.applicationProperties, applicationProperties);
});

check("message ids that are numbers and binaries", async () => {
  const q = await queue();
  const binary = Buffer.from("00112233445566778899aabbccddeeff", "hex");
  await send(q, { body: "n", messageId: 7, correlationId: 8 });
  await send(q, { body: "b", messageId: binary, correlationId: binary });
  const [n, b] = await take(client.createReceiver(q), 2);
  assert.equal(n.messageId, 7);
  assert.equal(n.correlationId, 8);
  assert.deepEqual(b.messageId, binary);
  assert.deepEqual(b.correlationId, binary);
});

for (const [name, bodyType, body] of [
  ["data", "data", Buffer.from([0, 1, 2, 255])],
  ["value string", "value", "text"],
  ["value number", "value", 5],
  ["value null", "value", null],
  ["value map", "value", { a: "b", n: 3 }],
  ["value list", "value", ["a", 2, true]],
  ["sequence", "sequence", [1, "two", false]],
]) {
  check(`body: ${name}`, async () => {
    const q = await queue();
    const annotated = {
      body,
      bodyType,
      properties: { messageId: "m", groupSequence: 4, contentEncoding: "gzip" },
      messageAnnotations: { "x-mine": "kept" },
      footer: { foot: "kept" },
      applicationProperties: { p: 1 },
    };
    await send(q, annotated);
    const [m] = await take(client.createReceiver(q, { skipParsingBodyAsJson: true }), 1);
    assert.deepEqual(m.body, body);
    const raw = m._rawAmqpMessage;
    assert.equal(raw.bodyType, bodyType);
    assert.equal(raw.messageAnnotations["x-mine"], "kept");
    assert.deepEqual(raw.footer, { foot: "kept" });
    assert.equal(raw.properties.groupSequence, 4);
    assert.equal(raw.properties.contentEncoding, "gzip");
  });
}

check("a message of several frames", async () => {
  const q = await queue({ maxMessageSizeInKilobytes: 1024 });
  const body = Buffer.alloc(200_000, "0123456789");
  await send(q, { body });
  const r = client.createReceiver(q, { skipParsingBodyAsJson: true });
  const [m] = await take(r, 1);
  assert.ok(body.equals(m.body), `expected ${body.length} bytes, got ${m.body.length}`);
  await r.completeMessage(m);
});

check("batch: many messages, in order", async () => {
  const q = await queue();
  const sender = client.createSender(q);
  const batch = await sender.createMessageBatch();
  assert.ok(batch.maxSizeInBytes >= 262_144, `max size ${batch.maxSizeInBytes}`);
  for (let i = 0; i < 100; i++) {
    assert.ok(batch.tryAddMessage({ body: i, messageId: `m${i}`, applicationProperties: { i } }));
  }
  await sender.sendMessages(batch);
  const r = client.createReceiver(q);
  const got = await take(r, 100);
  assert.deepEqual(got.map((m) => m.body), Array.from({ length: 100 }, (_, i) => i));
  assert.deepEqual(got.map((m) => m.messageId), Array.from({ length: 100 }, (_, i) => `m${i}`));
  await Promise.all(got.map((m) => r.completeMessage(m)));
  assert.equal((await counts(q)).total, 0);
});

check("batch: full when the next does not fit", async () => {
  const q = await queue();
  const sender = client.createSender(q);
  const batch = await sender.createMessageBatch({ maxSizeInBytes: 10_000 });
  assert.ok(batch.tryAddMessage({ body: "x".repeat(8_000) }));
  assert.equal(batch.tryAddMessage({ body: "x".repeat(8_000) }), false);
  assert.equal(batch.count, 1);
});

check("a message that is too large is refused", async () => {
  const q = await queue({ maxMessageSizeInKilobytes: 1024 });
  const sender = client.createSender(q);
  const limit = (await sender.createMessageBatch()).maxSizeInBytes;
  await fails(sender.sendMessages({ body: Buffer.alloc(limit + 100_000) }), "MessageSizeExceeded");
  await sender.sendMessages({ body: "the link is still good" });
});

check("an empty receive returns in time, and the next one receives", async () => {
  const q = await queue();
  const r = client.createReceiver(q);
  for (let i = 0; i < 2; i++) {
    const start = Date.now();
    assert.deepEqual(await r.receiveMessages(10, { maxWaitTimeInMs: 1_000 }), []);
    const took = Date.now() - start;
    assert.ok(took >= 900 && took < 3_000, `expected about 1000 ms, got ${took} ms`);
  }
  await send(q, { body: "late" });
  const [m] = await take(r, 1);
  assert.equal(m.body, "late");
  assert.equal(m.deliveryCount, 0);
  await r.completeMessage(m);
});

check("fewer than asked: what is there comes without waiting for the rest", async () => {
  const q = await queue();
  await send(q, { body: 1 }, { body: 2 });
  const r = client.createReceiver(q);
  const start = Date.now();
  const got = await r.receiveMessages(10, { maxWaitTimeInMs: 8_000 });
  assert.ok(Date.now() - start < 6_000, `took ${Date.now() - start} ms`);
  assert.ok(got.length >= 1);
});

check("receive and delete", async () => {
  const q = await queue();
  await send(q, { body: 1 }, { body: 2 });
  const r = client.createReceiver(q, { receiveMode: "receiveAndDelete" });
  assert.deepEqual((await take(r, 2)).map((m) => m.body), [1, 2]);
  await eventually(async () => assert.equal((await counts(q)).total, 0));
});

check("subscribe: messages come as they arrive, and complete themselves", async () => {
  const q = await queue();
  const r = client.createReceiver(q);
  const got = [];
  const errors = [];
  const subscription = r.subscribe(
    { processMessage: async (m) => void got.push(m.body), processError: async (a) => void errors.push(a.error.message) },
    { maxConcurrentCalls: 4 },
  );
  await sleep(300);
  await send(q, ...Array.from({ length: 50 }, (_, i) => ({ body: i })));
  await eventually(() => assert.equal(got.length, 50));
  await eventually(async () => assert.equal((await counts(q)).total, 0));
  await subscription.close();
  await r.close();
  assert.deepEqual(errors, []);
  assert.deepEqual(got.sort((a, b) => a - b), Array.from({ length: 50 }, (_, i) => i));
});

check("message iterator", async () => {
  const q = await queue();
  await send(q, { body: 1 }, { body: 2 }, { body: 3 });
  const r = client.createReceiver(q);
  const got = [];
  for await (const m of r.getMessageIterator()) {
    got.push(m.body);
    await r.completeMessage(m);
    if (got.length === 3) break;
  }
  assert.deepEqual(got, [1, 2, 3]);
});

check("peek: order, states, from a number, without effect", async () => {
  const q = await queue();
  await send(q, { body: 1 }, { body: 2 }, { body: 3 });
  const sender = client.createSender(q);
  await sender.scheduleMessages({ body: 4 }, new Date(Date.now() + 3_600_000));
  const r = client.createReceiver(q);
  const [first] = await take(r, 1);
  await r.deferMessage(first);
  const browser = client.createReceiver(q);
  const seen = await browser.peekMessages(10, { fromSequenceNumber: Long.fromNumber(1) });
  assert.deepEqual(
    seen.map((m) => [m.body, m.state, m.sequenceNumber.toNumber()]),
    [
      [1, "deferred", 1],
      [2, "active", 2],
      [3, "active", 3],
      [4, "scheduled", 4],
    ],
  );
  assert.deepEqual(
    (await browser.peekMessages(1, { fromSequenceNumber: Long.fromNumber(3) })).map((m) => m.body),
    [3],
  );
  assert.deepEqual(await browser.peekMessages(1, { fromSequenceNumber: Long.fromNumber(99) }), []);
  // Without a number this SDK goes on behind what any receiver of the entity has peeked last.
  await browser.peekMessages(1, { fromSequenceNumber: Long.fromNumber(1) });
  assert.deepEqual((await client.createReceiver(q).peekMessages(2)).map((m) => m.body), [2, 3]);
  assert.equal((await take(r, 1))[0].deliveryCount, 0);
});

// --- scheduling ------------------------------------------------------------------------------

check("schedule and cancel", async () => {
  const q = await queue();
  const sender = client.createSender(q);
  const at = new Date(Date.now() + 3_600_000);
  const numbers = await sender.scheduleMessages([{ body: 1 }, { body: 2 }, { body: 3 }], at);
  assert.equal(numbers.length, 3);
  assert.equal((await counts(q)).scheduled, 3);
  const [peeked] = await client.createReceiver(q).peekMessages(1);
  assert.equal(peeked.state, "scheduled");
  assert.equal(new Date(peeked.scheduledEnqueueTimeUtc).getTime(), at.getTime());
  await sender.cancelScheduledMessages(numbers.slice(0, 2));
  assert.equal((await counts(q)).scheduled, 1);
  await fails(sender.cancelScheduledMessages(numbers[0]), "MessageNotFound");
});

check("a scheduled message comes at its time, and not before", async () => {
  const q = await queue();
  const sender = client.createSender(q);
  const at = Date.now() + 2_000;
  await sender.scheduleMessages({ body: "by request" }, new Date(at));
  await sender.sendMessages({ body: "by annotation", scheduledEnqueueTimeUtc: new Date(at) });
  const r = client.createReceiver(q);
  await none(r);
  const got = await take(r, 2, 8_000);
  assert.ok(Date.now() >= at, `came ${at - Date.now()} ms early`);
  assert.deepEqual(got.map((m) => m.body).sort(), ["by annotation", "by request"]);
  assert.equal(got[0].state, "active");
});

// --- settling --------------------------------------------------------------------------------

check("abandon: comes again, counted, with its properties changed", async () => {
  const q = await queue();
  await send(q, { body: "x", applicationProperties: { kept: 1, changed: "old" } });
  const r = client.createReceiver(q);
  const [m] = await take(r, 1);
  await r.abandonMessage(m, { changed: "new", added: true });
  const [again] = await take(r, 1);
  assert.equal(again.deliveryCount, 1);
  assert.deepEqual(again.applicationProperties, { kept: 1, changed: "new", added: true });
  assert.notEqual(again.lockToken, m.lockToken);
  assert.equal(again.sequenceNumber.toString(), m.sequenceNumber.toString());
  await r.completeMessage(again);
});

check("too many deliveries: dead-lettered with the reason", async () => {
  const q = await queue({ maxDeliveryCount: 2 });
  await send(q, { body: "poison" });
  const r = client.createReceiver(q);
  for (let i = 0; i < 2; i++) {
    await r.abandonMessage((await take(r, 1))[0]);
  }
  const [dead] = await take(client.createReceiver(q, { subQueueType: "deadLetter" }), 1);
  assert.equal(dead.deadLetterReason, "MaxDeliveryCountExceeded");
  assert.equal(dead.deadLetterErrorDescription, "Message could not be consumed after 2 delivery attempts.");
  assert.equal(dead.body, "poison");
});

check("defer, receive deferred, complete; abandon keeps it deferred", async () => {
  const q = await queue();
  await send(q, { body: "later" }, { body: "deleted" });
  const r = client.createReceiver(q);
  const [m, d] = await take(r, 2);
  await r.deferMessage(m, { noted: "yes" });
  await r.deferMessage(d);
  await none(r);
  const [got] = await r.receiveDeferredMessages(m.sequenceNumber);
  assert.equal(got.body, "later");
  assert.equal(got.state, "deferred");
  assert.equal(got.applicationProperties.noted, "yes");
  await r.abandonMessage(got);
  const [again] = await r.receiveDeferredMessages([m.sequenceNumber]);
  assert.equal(again.deliveryCount, 1);
  await r.completeMessage(again);
  await fails(r.receiveDeferredMessages(m.sequenceNumber), "MessageNotFound");
  const deleting = client.createReceiver(q, { receiveMode: "receiveAndDelete" });
  assert.equal((await deleting.receiveDeferredMessages(d.sequenceNumber))[0].body, "deleted");
  assert.equal((await counts(q)).total, 0);
});

check("a deferred message can be dead-lettered", async () => {
  const q = await queue();
  await send(q, { body: "later" });
  const r = client.createReceiver(q);
  const [m] = await take(r, 1);
  await r.deferMessage(m);
  const [got] = await r.receiveDeferredMessages(m.sequenceNumber);
  await r.deadLetterMessage(got, { deadLetterReason: "why", deadLetterErrorDescription: "because", extra: 5 });
  const [dead] = await take(client.createReceiver(q, { subQueueType: "deadLetter" }), 1);
  assert.deepEqual(
    [dead.deadLetterReason, dead.deadLetterErrorDescription, dead.applicationProperties.extra],
    ["why", "because", 5],
  );
});

check("dead-letter with reason, description and properties; read; resubmit", async () => {
  const q = await queue();
  await send(q, { body: { order: 1 }, messageId: "order-1", applicationProperties: { tenant: "acme" } });
  const r = client.createReceiver(q);
  const [m] = await take(r, 1);
  await r.deadLetterMessage(m, {
    deadLetterReason: "Rejected",
    deadLetterErrorDescription: "no such article",
    handler: "billing",
    attempt: 3,
  });
  assert.deepEqual(await counts(q), { total: 1, active: 0, deadLetter: 1, scheduled: 0 });
  const dlq = client.createReceiver(q, { subQueueType: "deadLetter" });
  const [peeked] = await dlq.peekMessages(1);
  assert.equal(peeked.deadLetterReason, "Rejected");
  const [dead] = await take(dlq, 1);
  assert.equal(dead.deadLetterReason, "Rejected");
  assert.equal(dead.deadLetterErrorDescription, "no such article");
  assert.deepEqual(dead.applicationProperties, {
    tenant: "acme",
    handler: "billing",
    attempt: 3,
    DeadLetterReason: "Rejected",
    DeadLetterErrorDescription: "no such article",
  });
  assert.equal(dead.sequenceNumber.toString(), m.sequenceNumber.toString());
  await send(q, dead);
  await dlq.completeMessage(dead);
  const [back] = await take(r, 1);
  assert.deepEqual(back.body, { order: 1 });
  assert.equal(back.messageId, "order-1");
  await r.completeMessage(back);
  assert.equal((await counts(q)).total, 0);
});

check("time to live: expires into the dead-letter queue", async () => {
  const q = await queue({ deadLetteringOnMessageExpiration: true });
  await send(q, { body: "short", timeToLive: 1_000 });
  const [dead] = await take(client.createReceiver(q, { subQueueType: "deadLetter" }), 1, 15_000);
  assert.equal(dead.deadLetterReason, "TTLExpiredException");
});

check("renew a message's lock", async () => {
  const q = await queue({ lockDuration: "PT5S" });
  await send(q, { body: "slow" });
  const r = client.createReceiver(q, { maxAutoLockRenewalDurationInMs: 0 });
  const [m] = await take(r, 1);
  const before = m.lockedUntilUtc.getTime();
  await sleep(3_000);
  const until = await r.renewMessageLock(m);
  assert.ok(until.getTime() >= before + 2_000, `was ${before}, is ${until.getTime()}`);
  await sleep(3_500);
  await r.completeMessage(m);
});

check("a lost lock: settling and renewing fail, the message comes again", async () => {
  const q = await queue({ lockDuration: "PT5S" });
  await send(q, { body: "slow" });
  const r = client.createReceiver(q, { maxAutoLockRenewalDurationInMs: 0 });
  const [m] = await take(r, 1);
  await sleep(6_000);
  await fails(r.completeMessage(m), "MessageLockLost");
  await fails(r.renewMessageLock(m), "MessageLockLost");
  const [again] = await take(r, 1);
  assert.equal(again.deliveryCount, 1);
  await r.completeMessage(again);
});

check("a lock outlives its link: another connection sees nothing, then the message after expiry", async () => {
  const q = await queue({ lockDuration: "PT5S" });
  await send(q, { body: "x" });
  const other = new ServiceBusClient(secure, { retryOptions });
  try {
    await take(other.createReceiver(q, { maxAutoLockRenewalDurationInMs: 0 }), 1);
  } finally {
    await other.close();
  }
  const r = client.createReceiver(q);
  await none(r);
  const [m] = await take(r, 1, 10_000);
  assert.equal(m.deliveryCount, 1);
});

check("duplicate detection", async () => {
  const q = await queue({ requiresDuplicateDetection: true });
  await send(q, { body: 1, messageId: "same" });
  await send(q, { body: 2, messageId: "same" });
  await send(q, { body: 3, messageId: "other" });
  const got = await take(client.createReceiver(q), 2);
  assert.deepEqual(got.map((m) => m.body), [1, 3]);
});

check("auto-forward, of messages and of dead letters", async () => {
  const target = await queue();
  const q = await queue({ forwardTo: target });
  await send(q, { body: "forwarded" });
  const r = client.createReceiver(target);
  const [m] = await take(r, 1);
  assert.equal(m.body, "forwarded");
  await r.completeMessage(m);
  const p = await queue({ forwardDeadLetteredMessagesTo: target });
  await send(p, { body: "dead" });
  const pr = client.createReceiver(p);
  await pr.deadLetterMessage((await take(pr, 1))[0], { deadLetterReason: "r", deadLetterErrorDescription: "d" });
  const [dead] = await take(r, 1);
  assert.equal(dead.deadLetterSource, p);
  assert.equal(dead.deadLetterReason, "r");
});

// --- sessions --------------------------------------------------------------------------------

check("a named session: its messages alone, in order", async () => {
  const q = await queue({ requiresSession: true });
  await send(q, { body: 1, sessionId: "a" }, { body: 2, sessionId: "b" }, { body: 3, sessionId: "a" });
  const r = await client.acceptSession(q, "a");
  assert.equal(r.sessionId, "a");
  assert.ok(r.sessionLockedUntilUtc > Date.now(), `locked until ${r.sessionLockedUntilUtc}`);
  const got = await take(r, 2);
  assert.deepEqual(got.map((m) => m.body), [1, 3]);
  for (const m of got) await r.completeMessage(m);
  await r.close();
});

check("the next available session; none left is a timeout", async () => {
  const q = await queue({ requiresSession: true });
  await send(q, { body: 1, sessionId: "a" }, { body: 2, sessionId: "b" });
  const one = await client.acceptNextSession(q);
  const two = await client.acceptNextSession(q);
  assert.deepEqual([one.sessionId, two.sessionId].sort(), ["a", "b"]);
  const impatient = new ServiceBusClient(secure, { retryOptions: { maxRetries: 0, timeoutInMs: 2_000 } });
  try {
    const start = Date.now();
    await fails(impatient.acceptNextSession(q), "ServiceTimeout");
    assert.ok(Date.now() - start < 10_000, `took ${Date.now() - start} ms`);
  } finally {
    await impatient.close();
  }
  await one.close();
  await two.close();
});

check("the next available session waits for a message", async () => {
  const q = await queue({ requiresSession: true });
  const waiting = client.acceptNextSession(q);
  await sleep(1_000);
  await send(q, { body: "late", sessionId: "s" });
  const r = await waiting;
  assert.equal(r.sessionId, "s");
  assert.equal((await take(r, 1))[0].body, "late");
  await r.close();
});

check("a session that is held is refused, and free after close", async () => {
  const q = await queue({ requiresSession: true });
  const r = await client.acceptSession(q, "s");
  await fails(client.acceptSession(q, "s"), "SessionCannotBeLocked");
  await r.close();
  const again = await client.acceptSession(q, "s");
  await again.close();
});

check("session state: none, set, get, after close, cleared", async () => {
  const q = await queue({ requiresSession: true });
  const r = await client.acceptSession(q, "s");
  assert.equal(await r.getSessionState(), null);
  await r.setSessionState({ step: 3, name: "ž" });
  assert.deepEqual(await r.getSessionState(), { step: 3, name: "ž" });
  await r.close();
  const again = await client.acceptSession(q, "s");
  assert.deepEqual(await again.getSessionState(), { step: 3, name: "ž" });
  await again.setSessionState(null);
  assert.equal(await again.getSessionState(), null);
  await again.close();
});

check("renew a session's lock", async () => {
  const q = await queue({ requiresSession: true, lockDuration: "PT5S" });
  await send(q, { body: "x", sessionId: "s" });
  const r = await client.acceptSession(q, "s", { maxAutoLockRenewalDurationInMs: 0 });
  const [m] = await take(r, 1);
  await sleep(3_000);
  const until = await r.renewSessionLock();
  assert.ok(until > Date.now() + 3_500, `until ${until.toISOString()}`);
  await sleep(3_000);
  await r.completeMessage(m);
  await r.close();
});

check("a lost session lock", async () => {
  const q = await queue({ requiresSession: true, lockDuration: "PT5S" });
  await send(q, { body: "x", sessionId: "s" });
  const r = await client.acceptSession(q, "s", { maxAutoLockRenewalDurationInMs: 0 });
  const [m] = await take(r, 1);
  await sleep(6_500);
  await fails(r.completeMessage(m), "SessionLockLost");
  await fails(r.setSessionState("x"), "SessionLockLost");
  const again = await client.acceptSession(q, "s");
  assert.equal((await take(again, 1))[0].deliveryCount, 1);
  await again.close();
});

check("sessions: defer, receive deferred, dead-letter, peek, read the dead letter without a session", async () => {
  const q = await queue({ requiresSession: true });
  await send(q, { body: 1, sessionId: "s" }, { body: 2, sessionId: "s" }, { body: 3, sessionId: "t" });
  const r = await client.acceptSession(q, "s");
  assert.deepEqual((await r.peekMessages(10)).map((m) => m.body), [1, 2]);
  const [one, two] = await take(r, 2);
  await r.deferMessage(one);
  await r.deadLetterMessage(two, { deadLetterReason: "r", deadLetterErrorDescription: "d" });
  const [deferred] = await r.receiveDeferredMessages(one.sequenceNumber);
  assert.equal(deferred.body, 1);
  await r.completeMessage(deferred);
  await r.close();
  const [dead] = await take(client.createReceiver(q, { subQueueType: "deadLetter" }), 1);
  assert.deepEqual([dead.body, dead.sessionId, dead.deadLetterReason], [2, "s", "r"]);
});

check("a session entity refuses plain receivers and messages without a session", async () => {
  const q = await queue({ requiresSession: true });
  const err = await fails(client.createReceiver(q).receiveMessages(1, { maxWaitTimeInMs: 500 }), "GeneralError").catch((e) => e);
  assert.match(err.message, /session/i);
  const refused = await send(q, { body: "x" }).then(
    () => undefined,
    (e) => e,
  );
  assert.match(refused?.message ?? "none", /SessionId was not set/);
});

// --- topics and rules ------------------------------------------------------------------------

check("a topic copies to every subscription", async () => {
  const t = await topic("one", "two");
  await send(t, { body: "x" });
  for (const s of ["one", "two"]) {
    const r = client.createReceiver(t, s);
    const [m] = await take(r, 1);
    assert.equal(m.body, "x");
    await r.deadLetterMessage(m, { deadLetterReason: s, deadLetterErrorDescription: "d" });
    const [dead] = await take(client.createReceiver(t, s, { subQueueType: "deadLetter" }), 1);
    assert.equal(dead.deadLetterReason, s);
  }
});

check("SQL and correlation rules, with actions", async () => {
  const t = await topic();
  await admin.createSubscription(t, "sql", {
    defaultRuleOptions: {
      name: "large",
      filter: { sqlExpression: "quantity > 10 AND sys.Label LIKE 'order%'" },
      action: { sqlExpression: "SET sys.Label = 'large'; SET seen = quantity + 1; REMOVE secret" },
    },
  });
  await admin.createSubscription(t, "correlation", {
    defaultRuleOptions: { name: "red", filter: { correlationId: "c", applicationProperties: { colour: "red" } } },
  });
  await send(
    t,
    { body: 1, subject: "order 1", applicationProperties: { quantity: 20, secret: "s" } },
    { body: 2, subject: "order 2", applicationProperties: { quantity: 5 } },
    { body: 3, correlationId: "c", applicationProperties: { colour: "red" } },
    { body: 4, correlationId: "c", applicationProperties: { colour: "blue" } },
  );
  const sql = client.createReceiver(t, "sql");
  const [m] = await take(sql, 1);
  assert.deepEqual([m.body, m.subject, m.applicationProperties.seen, m.applicationProperties.secret], [1, "large", 21, undefined]);
  await none(sql);
  const correlation = client.createReceiver(t, "correlation");
  assert.equal((await take(correlation, 1))[0].body, 3);
  await none(correlation);
});

check("rules over AMQP: create, list, delete", async () => {
  const t = await topic("s");
  const rules = client.createRuleManager(t, "s");
  await rules.createRule("sql", { sqlExpression: "a = 1" }, { sqlExpression: "SET b = 2" });
  await rules.createRule("correlation", { subject: "x", applicationProperties: { n: 5, s: "t" } });
  const listed = Object.fromEntries((await all(rules.listRules())).map((r) => [r.name, r]));
  assert.deepEqual(Object.keys(listed).sort(), ["$Default", "correlation", "sql"]);
  assert.equal(listed.sql.filter.sqlExpression, "a = 1");
  assert.equal(listed.sql.action.sqlExpression, "SET b = 2");
  assert.equal(listed.correlation.filter.subject, "x");
  assert.deepEqual(listed.correlation.filter.applicationProperties, { n: 5, s: "t" });
  await fails(rules.createRule("sql", { sqlExpression: "a = 2" }), "MessagingEntityAlreadyExists");
  await rules.deleteRule("$Default");
  await rules.deleteRule("correlation");
  await fails(rules.deleteRule("correlation"), "MessagingEntityNotFound");
  await send(t, { body: 1, applicationProperties: { a: 1 } }, { body: 2, applicationProperties: { a: 2 } });
  const r = client.createReceiver(t, "s");
  const [m] = await take(r, 1);
  assert.deepEqual([m.body, m.applicationProperties.b], [1, 2]);
  await none(r);
});

// --- errors ----------------------------------------------------------------------------------

check("an entity that is not there", async () => {
  const missing = unique("missing");
  await fails(client.createSender(missing).sendMessages({ body: 1 }), "MessagingEntityNotFound");
  await fails(client.createReceiver(missing).receiveMessages(1, { maxWaitTimeInMs: 500 }), "MessagingEntityNotFound");
  await fails(client.acceptSession(missing, "s"), "MessagingEntityNotFound");
});

check("an entity that is disabled", async () => {
  const q = await queue();
  const p = await admin.getQueue(q);
  await admin.updateQueue({ ...p, status: "Disabled" });
  await fails(client.createSender(q).sendMessages({ body: 1 }), "MessagingEntityDisabled");
  await fails(client.createReceiver(q).receiveMessages(1, { maxWaitTimeInMs: 500 }), "MessagingEntityDisabled");
});

check("keys that may only send, or only listen", async () => {
  const q = await queue();
  const s = new ServiceBusClient(sendOnly, { retryOptions: { maxRetries: 0 } });
  const l = new ServiceBusClient(listenOnly, { retryOptions: { maxRetries: 0 } });
  try {
    await s.createSender(q).sendMessages({ body: 1 });
    await fails(s.createReceiver(q).receiveMessages(1, { maxWaitTimeInMs: 500 }), "UnauthorizedAccess");
    assert.equal((await take(l.createReceiver(q), 1))[0].body, 1);
    await fails(l.createSender(q).sendMessages({ body: 1 }), "UnauthorizedAccess");
  } finally {
    await s.close();
    await l.close();
  }
});

check("a wrong key", async () => {
  const q = await queue();
  const wrong = new ServiceBusClient(secure.replace(/SharedAccessKey=[^;]*/, "SharedAccessKey=d3Jvbmc="), {
    retryOptions: { maxRetries: 0 },
  });
  try {
    const err = await fails(wrong.createSender(q).sendMessages({ body: 1 }), "UnauthorizedAccess");
    assert.match(err.message, /signature/i);
  } finally {
    await wrong.close();
  }
});

check("an entity that is deleted under a receiver", async () => {
  const q = await queue();
  const r = client.createReceiver(q);
  await none(r);
  await admin.deleteQueue(q);
  await fails(r.receiveMessages(1, { maxWaitTimeInMs: 1_000 }), "MessagingEntityNotFound");
});

// --- transports ------------------------------------------------------------------------------

check("over WebSocket", async () => {
  const q = await queue();
  const c = new ServiceBusClient(secure, { retryOptions, webSocketOptions: { webSocket: WebSocket } });
  try {
    const body = Buffer.alloc(100_000, "x");
    await c.createSender(q).sendMessages([{ body }, { body: "second" }]);
    const r = c.createReceiver(q, { skipParsingBodyAsJson: true });
    const [m, n] = await take(r, 2);
    assert.ok(body.equals(m.body));
    await r.completeMessage(m);
    await r.deadLetterMessage(n, { deadLetterReason: "r", deadLetterErrorDescription: "d" });
    assert.deepEqual(await counts(q), { total: 1, active: 0, deadLetter: 1, scheduled: 0 });
  } finally {
    await c.close();
  }
});

check("without TLS, as to the official emulator", async () => {
  const c = new ServiceBusClient(plain, { retryOptions });
  try {
    const q = process.env.SERVICEBUS_PLAIN_QUEUE;
    await c.createSender(q).sendMessages({ body: "from JavaScript", messageId: unique("m") });
    const r = c.createReceiver(q);
    const [m] = await take(r, 1);
    assert.equal(m.body, "from JavaScript");
    await r.completeMessage(m);
  } finally {
    await c.close();
  }
});

// --- administration --------------------------------------------------------------------------

check("admin: namespace", async () => {
  const p = await admin.getNamespaceProperties();
  assert.ok(["Basic", "Standard", "Premium"].includes(p.messagingSku), p.messagingSku);
  assert.ok(p.createdAt instanceof Date && !Number.isNaN(p.createdAt.getTime()));
  assert.ok(p.name.length > 0);
});

check("admin: queue, whole life", async () => {
  const name = unique("q");
  assert.equal(await admin.queueExists(name), false);
  const options = {
    lockDuration: "PT45S",
    maxSizeInMegabytes: 2048,
    requiresDuplicateDetection: true,
    requiresSession: true,
    defaultMessageTimeToLive: "P3DT4H",
    deadLetteringOnMessageExpiration: true,
    duplicateDetectionHistoryTimeWindow: "PT1M",
    maxDeliveryCount: 7,
    enableBatchedOperations: false,
    userMetadata: 'mine <&> "quoted"',
    autoDeleteOnIdle: "PT6H",
    authorizationRules: [
      { claimType: "SharedAccessKey", accessRights: ["Send", "Listen"], keyName: "both", primaryKey: "cHJpbWFyeS1rZXktMTIzNDU2Nzg5MDEyMzQ1Njc4OTA=", secondaryKey: "c2Vjb25kYXJ5LWtleS0xMjM0NTY3ODkwMTIzNDU2Nzg=" },
    ],
  };
  const created = await admin.createQueue(name, options);
  const got = await admin.getQueue(name);
  for (const p of [created, got]) {
    for (const [k, v] of Object.entries(options)) {
      if (k === "authorizationRules") continue;
      assert.deepEqual(p[k], v, `${k}: expected ${JSON.stringify(v)}, got ${JSON.stringify(p[k])}`);
    }
    assert.deepEqual(
      p.authorizationRules.map((r) => ({ ...r, accessRights: [...r.accessRights].sort() })),
      options.authorizationRules.map((r) => ({ ...r, accessRights: [...r.accessRights].sort() })),
    );
  }
  assert.equal(got.name, name);
  assert.equal(got.status, "Active");
  assert.equal(await admin.queueExists(name), true);
  await fails(admin.createQueue(name), "MessageEntityAlreadyExistsError");
  const updated = await admin.updateQueue({ ...got, maxDeliveryCount: 9, lockDuration: "PT20S", userMetadata: "changed" });
  assert.deepEqual([updated.maxDeliveryCount, updated.lockDuration, updated.userMetadata], [9, "PT20S", "changed"]);
  assert.ok((await all(admin.listQueues())).some((q) => q.name === name));
  const runtime = (await all(admin.listQueuesRuntimeProperties())).find((q) => q.name === name);
  assert.equal(runtime.totalMessageCount, 0);
  await admin.deleteQueue(name);
  assert.equal(await admin.queueExists(name), false);
});

check("admin: what is not there", async () => {
  const name = unique("missing");
  await fails(admin.getQueue(name), "MessageEntityNotFoundError");
  await fails(admin.getQueueRuntimeProperties(name), "MessageEntityNotFoundError");
  await fails(admin.deleteQueue(name), "MessageEntityNotFoundError");
  await fails(admin.getTopic(name), "MessageEntityNotFoundError");
  await fails(admin.getSubscription(name, "s"), "MessageEntityNotFoundError");
  const t = await topic("s");
  await fails(admin.getSubscription(t, "other"), "MessageEntityNotFoundError");
  await fails(admin.getRule(t, "s", "other"), "MessageEntityNotFoundError");
  assert.equal(await admin.topicExists(t), true);
  assert.equal(await admin.queueExists(t), false);
});

check("admin: topic and subscription, whole life", async () => {
  const t = unique("t");
  const created = await admin.createTopic(t, { defaultMessageTimeToLive: "P1D", userMetadata: "meta", supportOrdering: true });
  assert.deepEqual([created.name, created.defaultMessageTimeToLive, created.userMetadata], [t, "P1D", "meta"]);
  await fails(admin.createTopic(t), "MessageEntityAlreadyExistsError");
  const s = await admin.createSubscription(t, "s", {
    lockDuration: "PT30S",
    maxDeliveryCount: 4,
    requiresSession: true,
    deadLetteringOnFilterEvaluationExceptions: false,
  });
  assert.deepEqual(
    [s.topicName, s.subscriptionName, s.lockDuration, s.maxDeliveryCount, s.requiresSession, s.deadLetteringOnFilterEvaluationExceptions],
    [t, "s", "PT30S", 4, true, false],
  );
  const updated = await admin.updateSubscription({ ...s, maxDeliveryCount: 5 });
  assert.equal(updated.maxDeliveryCount, 5);
  assert.equal((await admin.updateTopic({ ...created, userMetadata: "more" })).userMetadata, "more");
  assert.deepEqual((await all(admin.listSubscriptions(t))).map((x) => x.subscriptionName), ["s"]);
  assert.ok((await all(admin.listTopics())).some((x) => x.name === t));
  await send(t, { body: 1, sessionId: "x" });
  const runtime = await admin.getSubscriptionRuntimeProperties(t, "s");
  assert.deepEqual([runtime.totalMessageCount, runtime.activeMessageCount], [1, 1]);
  assert.equal((await admin.getTopicRuntimeProperties(t)).subscriptionCount, 1);
  assert.equal((await all(admin.listSubscriptionsRuntimeProperties(t)))[0].activeMessageCount, 1);
  await admin.deleteSubscription(t, "s");
  assert.equal(await admin.subscriptionExists(t, "s"), false);
  await admin.deleteTopic(t);
  assert.equal(await admin.topicExists(t), false);
});

check("admin: rules with typed parameters", async () => {
  const t = await topic("s");
  const sqlParameters = { "@s": "text", "@i": 5, "@b": true };
  await admin.createRule(t, "s", "sql", { sqlExpression: "a = @s OR b = @i OR c = @b", sqlParameters }, { sqlExpression: "SET d = @s", sqlParameters: { "@s": "v" } });
  const sql = await admin.getRule(t, "s", "sql");
  assert.deepEqual(sql.filter, { sqlExpression: "a = @s OR b = @i OR c = @b", sqlParameters });
  assert.deepEqual(sql.action, { sqlExpression: "SET d = @s", sqlParameters: { "@s": "v" } });
  const filter = {
    correlationId: "c",
    messageId: "m",
    to: "t",
    replyTo: "r",
    subject: "l",
    sessionId: "s",
    replyToSessionId: "rs",
    contentType: "ct",
    applicationProperties: { s: "x", i: 3, b: false, d: new Date(1_700_000_000_000) },
  };
  await admin.createRule(t, "s", "correlation", filter);
  assert.deepEqual((await admin.getRule(t, "s", "correlation")).filter, filter);
  assert.equal((await admin.getRule(t, "s", "$Default")).filter.sqlExpression, "1=1");
  const changed = await admin.updateRule(t, "s", { ...sql, filter: { sqlExpression: "z = 1" } });
  assert.equal(changed.filter.sqlExpression, "z = 1");
  assert.deepEqual((await all(admin.listRules(t, "s"))).map((r) => r.name).sort(), ["$Default", "correlation", "sql"]);
  await admin.deleteRule(t, "s", "correlation");
  assert.equal(await admin.ruleExists(t, "s", "correlation"), false);
  const err = await admin.createRule(t, "s", "bad", { sqlExpression: "a = = 1" }).catch((e) => e);
  assert.equal(err.statusCode, 400, `expected status 400, got ${err.statusCode}: ${err.message}`);
});

check("admin: pages", async () => {
  const t = await topic(...Array.from({ length: 7 }, (_, i) => `s${i}`));
  const sizes = [];
  const names = [];
  for await (const page of admin.listSubscriptions(t).byPage({ maxPageSize: 3 })) {
    sizes.push(page.length);
    names.push(...page.map((s) => s.subscriptionName));
  }
  assert.deepEqual(names.sort(), Array.from({ length: 7 }, (_, i) => `s${i}`));
  assert.deepEqual(sizes, [3, 3, 1]);
});

check("admin: counts of every kind", async () => {
  const q = await queue();
  await send(q, { body: 1 }, { body: 2 }, { body: 3 });
  const sender = client.createSender(q);
  await sender.scheduleMessages({ body: 4 }, new Date(Date.now() + 3_600_000));
  const r = client.createReceiver(q);
  const [m] = await take(r, 1);
  await r.deadLetterMessage(m, { deadLetterReason: "r", deadLetterErrorDescription: "d" });
  assert.deepEqual(await counts(q), { total: 4, active: 2, deadLetter: 1, scheduled: 1 });
  const p = await admin.getQueueRuntimeProperties(q);
  assert.ok(p.sizeInBytes > 0, `size ${p.sizeInBytes}`);
});

const ok = await run("js", process.argv[2]);
await client.close().catch(() => {});
process.exit(ok ? 0 : 1);
