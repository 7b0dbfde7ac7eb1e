// Tries dlq serve with the AWS SDK for JavaScript, as a user of SQS does. The SDK reads endpoint,
// region and credentials from the environment. It checks the MD5 sums of all that it gets.
import assert from "node:assert/strict";
import * as sqs from "@aws-sdk/client-sqs";
import { check, eventually, run, sleep, unique } from "./harness.mjs";

const client = new sqs.SQSClient({});
const call = (command, options) => client.send(command, options);
const trace = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1";

/** queue makes a queue of its own and returns its URL and ARN. */
async function queue(suffix = "", Attributes = {}) {
  const { QueueUrl } = await call(new sqs.CreateQueueCommand({ QueueName: unique("q") + suffix, Attributes }));
  const { Attributes: a } = await call(new sqs.GetQueueAttributesCommand({ QueueUrl, AttributeNames: ["QueueArn"] }));
  return { url: QueueUrl, arn: a.QueueArn };
}

const send = (QueueUrl, MessageBody, more = {}) => call(new sqs.SendMessageCommand({ QueueUrl, MessageBody, ...more }));

/** receive takes up to ten messages with everything that they have. */
async function receive(QueueUrl, more = {}) {
  const out = await call(
    new sqs.ReceiveMessageCommand({
      QueueUrl,
      MaxNumberOfMessages: 10,
      MessageSystemAttributeNames: ["All"],
      MessageAttributeNames: ["All"],
      ...more,
    }),
  );
  return out.Messages ?? [];
}

async function one(url, more) {
  const got = await receive(url, more);
  assert.equal(got.length, 1);
  return got[0];
}

const remove = (QueueUrl, m) => call(new sqs.DeleteMessageCommand({ QueueUrl, ReceiptHandle: m.ReceiptHandle }));
const bodies = (messages) => messages.map((m) => m.Body).join(" ");

/** refused asserts that p fails with an error of the class, or with the name if it has no class. */
async function refused(p, kind) {
  const err = await p.then(
    () => assert.fail("expected an error, got none"),
    (e) => e,
  );
  if (typeof kind === "string") assert.equal(err.name, kind);
  else assert.ok(err instanceof kind, `${err.name}: ${err.message}`);
  return err;
}

const contentBased = { FifoQueue: "true", ContentBasedDeduplication: "true" };

/** pair makes a queue whose messages are dead letters after the first receive. */
async function pair(suffix = "", attributes = {}) {
  const dead = await queue(suffix, attributes);
  const RedrivePolicy = JSON.stringify({ deadLetterTargetArn: dead.arn, maxReceiveCount: 1 });
  return { dead, source: await queue(suffix, { ...attributes, VisibilityTimeout: "0", RedrivePolicy }) };
}

check("send, receive, delete", async () => {
  const { url } = await queue();
  for (const body of ["hello", `a\r\nb\tc "<&>' é 😀`, "x".repeat(100_000)]) {
    const sent = await send(url, body);
    const m = await one(url);
    assert.equal(m.Body, body);
    assert.equal(m.MessageId, sent.MessageId);
    assert.equal(m.Attributes.ApproximateReceiveCount, "1");
    await remove(url, m);
  }
  assert.equal((await call(new sqs.ReceiveMessageCommand({ QueueUrl: url }))).Messages, undefined);
});

check("attributes of messages", async () => {
  const { url } = await queue();
  const MessageAttributes = {
    text: { DataType: "String", StringValue: "é" },
    count: { DataType: "Number.int", StringValue: "007" },
    bytes: { DataType: "Binary.png", BinaryValue: new Uint8Array([0, 255, 1]) },
  };
  const sent = await send(url, "x", {
    MessageAttributes,
    MessageSystemAttributes: { AWSTraceHeader: { DataType: "String", StringValue: trace } },
  });
  const m = await one(url);
  assert.equal(m.MD5OfMessageAttributes, sent.MD5OfMessageAttributes);
  assert.equal(sent.MD5OfMessageSystemAttributes, "5ae4d5d7636402d80f4eb6d213245a88");
  assert.equal(m.Attributes.AWSTraceHeader, trace);
  assert.equal(m.MessageAttributes.count.StringValue, "007");
  assert.equal(m.MessageAttributes.count.DataType, "Number.int");
  assert.deepEqual([...m.MessageAttributes.bytes.BinaryValue], [0, 255, 1]);
  assert.equal(m.MessageAttributes.text.StringValue, "é");
});

check("attributes that are asked for", async () => {
  const { url } = await queue();
  const text = (StringValue) => ({ DataType: "String", StringValue });
  const three = { "trace.id": text("1"), tracer: text("2"), exact: text("3") };
  const sent = await send(url, "x", { MessageAttributes: three });
  await send(url, "x", { MessageAttributes: { ...three, other: text("4") } });
  const got = await receive(url, {
    MessageAttributeNames: ["trace.*", "exact", "never"],
    MessageSystemAttributeNames: ["SentTimestamp", "SequenceNumber"],
  });
  for (const m of got) {
    assert.deepEqual(Object.keys(m.MessageAttributes).sort(), Object.keys(three).sort());
    assert.equal(m.MD5OfMessageAttributes, sent.MD5OfMessageAttributes);
    assert.deepEqual(Object.keys(m.Attributes), ["SentTimestamp"]);
  }
  assert.equal(got.length, 2);
});

check("batches, with an entry that fails", async () => {
  const { url } = await queue("", { MaximumMessageSize: "1024" });
  const Entries = Array.from({ length: 10 }, (_, i) => ({ Id: `${i}`, MessageBody: i === 4 ? "x".repeat(1025) : `m${i}` }));
  const sent = await call(new sqs.SendMessageBatchCommand({ QueueUrl: url, Entries }));
  assert.equal(sent.Successful.length, 9);
  assert.deepEqual(
    sent.Failed.map((f) => [f.Id, f.Code, f.SenderFault]),
    [["4", "InvalidParameterValue", true]],
  );
  const got = await receive(url);
  const handles = got.map((m, i) => ({ Id: `${i}`, ReceiptHandle: m.ReceiptHandle }));
  const deleted = await call(
    new sqs.DeleteMessageBatchCommand({ QueueUrl: url, Entries: [...handles, { Id: "bad", ReceiptHandle: "garbage" }] }),
  );
  assert.equal(deleted.Successful.length, 9);
  assert.equal(deleted.Failed[0].Code, "ReceiptHandleIsInvalid");
});

check("a message of 1 MiB", async () => {
  const { url } = await queue();
  const body = "é".repeat(1 << 19);
  await send(url, body);
  assert.ok((await one(url)).Body === body);
  await refused(send(url, `${body}x`), "InvalidParameterValue");
});

check("batches of 1 MiB", async () => {
  const { url } = await queue();
  const Entries = Array.from({ length: 8 }, (_, i) => ({ Id: `${i}`, MessageBody: "x".repeat(1 << 17) }));
  const batch = (entries) => call(new sqs.SendMessageBatchCommand({ QueueUrl: url, Entries: entries }));
  await batch(Entries);
  assert.equal((await receive(url)).length, 8);
  await refused(batch([...Entries, { Id: "8", MessageBody: "x" }]), sqs.BatchRequestTooLong);
  await refused(batch([...Entries, Entries[0]]), sqs.BatchEntryIdsNotDistinct);
  await refused(batch([{ Id: "not an id", MessageBody: "x" }]), sqs.InvalidBatchEntryId);
  await refused(batch([...Entries, ...Entries]), sqs.TooManyEntriesInBatchRequest);
});

check("long poll", async () => {
  const { url } = await queue();
  const start = Date.now();
  const waiting = one(url, { WaitTimeSeconds: 20 });
  await sleep(300);
  await send(url, "hello");
  assert.equal((await waiting).Body, "hello");
  assert.ok(Date.now() - start < 10_000);
});

check("long poll of a client that goes away", async () => {
  const { url } = await queue();
  const leave = new AbortController();
  const waiting = call(new sqs.ReceiveMessageCommand({ QueueUrl: url, WaitTimeSeconds: 20 }), { abortSignal: leave.signal });
  await sleep(300);
  leave.abort();
  await refused(waiting, "AbortError");
  await sleep(200);
  await send(url, "hello");
  assert.equal((await one(url)).Attributes.ApproximateReceiveCount, "1");
});

check("visibility", async () => {
  const { url } = await queue("", { VisibilityTimeout: "1" });
  await send(url, "x");
  await one(url);
  const m = await one(url, { WaitTimeSeconds: 10 });
  const change = (VisibilityTimeout) =>
    call(
      new sqs.ChangeMessageVisibilityBatchCommand({
        QueueUrl: url,
        Entries: [{ Id: "a", ReceiptHandle: m.ReceiptHandle, VisibilityTimeout }],
      }),
    );
  await change(60);
  assert.equal((await receive(url, { WaitTimeSeconds: 2 })).length, 0);
  await change(0);
  assert.equal((await one(url)).Attributes.ApproximateReceiveCount, "3");
});

check("FIFO order, groups and deduplication", async () => {
  const { url } = await queue(".fifo", contentBased);
  const first = await send(url, "a", { MessageGroupId: "g1" });
  for (const [group, body] of [["g1", "b"], ["g1", "c"], ["g2", "d"]]) await send(url, body, { MessageGroupId: group });
  const again = await send(url, "a", { MessageGroupId: "g1" });
  assert.equal(again.MessageId, first.MessageId);
  assert.equal(again.SequenceNumber, first.SequenceNumber);
  const two = await receive(url, { MaxNumberOfMessages: 2, ReceiveRequestAttemptId: "attempt" });
  assert.equal(bodies(two), "a b");
  const same = await receive(url, { MaxNumberOfMessages: 2, ReceiveRequestAttemptId: "attempt" });
  assert.deepEqual(same.map((m) => m.ReceiptHandle), two.map((m) => m.ReceiptHandle));
  assert.equal(bodies(await receive(url)), "d");
  for (const m of two) await remove(url, m);
  assert.equal(bodies(await receive(url)), "c");
});

check("FIFO with high throughput", async () => {
  const { url } = await queue(".fifo", {
    FifoQueue: "true",
    DeduplicationScope: "messageGroup",
    FifoThroughputLimit: "perMessageGroupId",
  });
  for (const [MessageGroupId, body] of [["g1", "a"], ["g1", "b"], ["g2", "c"]]) {
    await send(url, body, { MessageGroupId, MessageDeduplicationId: "id" });
  }
  const got = await receive(url);
  assert.equal(bodies(got), "a c");
  assert.equal(got[1].Attributes.MessageGroupId, "g2");
  assert.equal(got[1].Attributes.MessageDeduplicationId, "id");
  await refused(send(url, "x", { MessageGroupId: "g1" }), "InvalidParameterValue");
  await refused(send(url, "x", { MessageDeduplicationId: "id" }), "MissingParameter");
});

for (const [kind, suffix, attributes] of [["standard", "", {}], ["FIFO", ".fifo", contentBased]]) {
  check(`redrive and move task, ${kind}`, async () => {
    const { source, dead } = await pair(suffix, attributes);
    const sent = await send(source.url, "poison", suffix ? { MessageGroupId: "g" } : {});
    await one(source.url);
    assert.equal((await receive(source.url)).length, 0);
    const m = await one(dead.url, { VisibilityTimeout: 30 });
    assert.equal(m.MessageId, sent.MessageId);
    assert.equal(m.Attributes.DeadLetterQueueSourceArn, source.arn);
    assert.equal(m.Attributes.ApproximateReceiveCount, "2");
    const sources = await call(new sqs.ListDeadLetterSourceQueuesCommand({ QueueUrl: dead.url }));
    assert.deepEqual(sources.queueUrls, [source.url]);
    await call(new sqs.ChangeMessageVisibilityCommand({ QueueUrl: dead.url, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: 0 }));
    const { TaskHandle } = await call(new sqs.StartMessageMoveTaskCommand({ SourceArn: dead.arn }));
    assert.ok(TaskHandle);
    await eventually(async () => {
      const { Results } = await call(new sqs.ListMessageMoveTasksCommand({ SourceArn: dead.arn }));
      assert.equal(Results[0].Status, "COMPLETED");
      assert.equal(Results[0].ApproximateNumberOfMessagesMoved, 1);
    });
    const back = await one(source.url);
    assert.equal(back.Body, "poison");
    assert.notEqual(back.MessageId, sent.MessageId);
  });
}

check("a move task that is cancelled", async () => {
  const { dead } = await pair();
  const other = await queue();
  for (let i = 0; i < 20; i++) await send(dead.url, `${i}`);
  const { TaskHandle } = await call(
    new sqs.StartMessageMoveTaskCommand({ SourceArn: dead.arn, DestinationArn: other.arn, MaxNumberOfMessagesPerSecond: 2 }),
  );
  await refused(call(new sqs.StartMessageMoveTaskCommand({ SourceArn: dead.arn })), "InvalidParameterValue");
  await one(other.url, { WaitTimeSeconds: 10, MaxNumberOfMessages: 1 });
  const task = async () => (await call(new sqs.ListMessageMoveTasksCommand({ SourceArn: dead.arn }))).Results[0];
  const running = await task();
  assert.equal(running.Status, "RUNNING");
  assert.equal(running.TaskHandle, TaskHandle);
  assert.equal(running.ApproximateNumberOfMessagesToMove, 20);
  assert.equal(running.MaxNumberOfMessagesPerSecond, 2);
  const { ApproximateNumberOfMessagesMoved: moved } = await call(new sqs.CancelMessageMoveTaskCommand({ TaskHandle }));
  assert.ok(moved >= 1 && moved < 20);
  await eventually(async () => assert.equal((await task()).Status, "CANCELLED"));
  assert.equal((await task()).TaskHandle, undefined);
  await refused(call(new sqs.StartMessageMoveTaskCommand({ SourceArn: `${dead.arn}-never` })), sqs.ResourceNotFoundException);
});

check("redrive allow policy", async () => {
  const dead = await queue("", { RedriveAllowPolicy: JSON.stringify({ redrivePermission: "denyAll" }) });
  const policy = { RedrivePolicy: JSON.stringify({ deadLetterTargetArn: dead.arn, maxReceiveCount: 1 }) };
  await refused(queue("", policy), "InvalidParameterValue");
  const source = await queue();
  const set = (QueueUrl, Attributes) => call(new sqs.SetQueueAttributesCommand({ QueueUrl, Attributes }));
  await set(dead.url, {
    RedriveAllowPolicy: JSON.stringify({ redrivePermission: "byQueue", sourceQueueArns: [source.arn] }),
  });
  await set(source.url, policy);
  await refused(queue("", policy), "InvalidParameterValue");
});

check("purge", async () => {
  const { url } = await queue();
  await send(url, "x");
  await call(new sqs.PurgeQueueCommand({ QueueUrl: url }));
  assert.equal((await receive(url)).length, 0);
  const err = await refused(call(new sqs.PurgeQueueCommand({ QueueUrl: url })), sqs.PurgeQueueInProgress);
  assert.equal(err.$metadata.httpStatusCode, 403);
});

check("tags and permissions", async () => {
  const { url } = await queue();
  await call(new sqs.TagQueueCommand({ QueueUrl: url, Tags: { a: "1", b: "" } }));
  await call(new sqs.UntagQueueCommand({ QueueUrl: url, TagKeys: ["a"] }));
  assert.deepEqual((await call(new sqs.ListQueueTagsCommand({ QueueUrl: url }))).Tags, { b: "" });
  const permission = { QueueUrl: url, Label: "label", AWSAccountIds: ["111122223333"], Actions: ["SendMessage"] };
  await call(new sqs.AddPermissionCommand(permission));
  await refused(call(new sqs.AddPermissionCommand(permission)), "InvalidParameterValue");
  await call(new sqs.RemovePermissionCommand({ QueueUrl: url, Label: "label" }));
  const { Attributes } = await call(new sqs.GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: ["Policy"] }));
  assert.equal(Attributes, undefined);
});

check("pages of queues", async () => {
  const prefix = unique("page");
  for (let i = 0; i < 5; i++) await call(new sqs.CreateQueueCommand({ QueueName: `${prefix}-${i}` }));
  const urls = [];
  for await (const page of sqs.paginateListQueues({ client, pageSize: 2 }, { QueueNamePrefix: prefix })) urls.push(...page.QueueUrls);
  assert.equal(urls.length, 5);
});

check("errors by class", async () => {
  const { url } = await queue("", { DelaySeconds: "5" });
  const missing = await refused(call(new sqs.GetQueueUrlCommand({ QueueName: "never" })), sqs.QueueDoesNotExist);
  assert.equal(missing.$metadata.httpStatusCode, 400);
  assert.equal(missing.Error.Code, "AWS.SimpleQueueService.NonExistentQueue"); // as in the Query protocol
  const name = url.split("/").pop();
  await refused(call(new sqs.CreateQueueCommand({ QueueName: name, Attributes: { DelaySeconds: "6" } })), sqs.QueueNameExists);
  await refused(remove(url, { ReceiptHandle: "garbage" }), sqs.ReceiptHandleIsInvalid);
  await refused(send(url, "\u0000"), sqs.InvalidMessageContents);
  await refused(call(new sqs.GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: ["Foobar"] })), sqs.InvalidAttributeName);
  await refused(call(new sqs.SendMessageBatchCommand({ QueueUrl: url, Entries: [] })), sqs.EmptyBatchRequest);
  await call(new sqs.DeleteQueueCommand({ QueueUrl: url }));
  await refused(send(url, "x"), sqs.QueueDoesNotExist);
});

check("regions and accounts", async () => {
  const QueueName = unique("q");
  for (const [region, accessKeyId] of [["us-east-1", "test"], ["eu-west-1", "test"], ["us-east-1", "111122223333"]]) {
    const other = new sqs.SQSClient({ region, credentials: { accessKeyId, secretAccessKey: "test" } });
    const { QueueUrl } = await other.send(new sqs.CreateQueueCommand({ QueueName }));
    await other.send(new sqs.SendMessageCommand({ QueueUrl, MessageBody: region + accessKeyId }));
    const { Messages } = await other.send(new sqs.ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages: 10 }));
    assert.equal(bodies(Messages), region + accessKeyId);
  }
});

check("signatures", async () => {
  const { url } = await queue();
  await send(url, `a "quoted"\r\nline`);
  const signer = await client.config.signer();
  const { protocol, hostname, port, pathname, host } = new URL(url);
  const { query } = await signer.presign({
    method: "GET",
    protocol,
    hostname,
    port,
    path: pathname,
    query: { Action: "ReceiveMessage", VisibilityTimeout: "0" },
    headers: { host },
  });
  const link = `${url}?${new URLSearchParams(query)}`;
  const answer = await fetch(link);
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  assert.ok(text.includes("<Body>a &quot;quoted&quot;&#xD;\nline</Body>"), text);
  assert.equal((await fetch(link.replace("VisibilityTimeout=0", "VisibilityTimeout=1"))).status, 403);
  const other = new sqs.SQSClient({ credentials: { accessKeyId: "test", secretAccessKey: "another" } });
  const err = await refused(other.send(new sqs.ListQueuesCommand({})), "SignatureDoesNotMatch");
  assert.equal(err.$metadata.httpStatusCode, 403);
});

process.exit((await run("sqs-js", process.argv[2])) ? 0 : 1);
