import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.core.SdkBytes;
import software.amazon.awssdk.core.exception.ApiCallTimeoutException;
import software.amazon.awssdk.http.SdkHttpMethod;
import software.amazon.awssdk.http.SdkHttpRequest;
import software.amazon.awssdk.http.auth.aws.signer.AwsV4HttpSigner;
import software.amazon.awssdk.http.urlconnection.UrlConnectionHttpClient;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.sqs.SqsAsyncClient;
import software.amazon.awssdk.services.sqs.SqsClient;
import software.amazon.awssdk.services.sqs.batchmanager.SqsAsyncBatchManager;
import software.amazon.awssdk.services.sqs.model.BatchEntryIdsNotDistinctException;
import software.amazon.awssdk.services.sqs.model.BatchRequestTooLongException;
import software.amazon.awssdk.services.sqs.model.ChangeMessageVisibilityBatchRequestEntry;
import software.amazon.awssdk.services.sqs.model.DeleteMessageBatchRequestEntry;
import software.amazon.awssdk.services.sqs.model.DeleteMessageResponse;
import software.amazon.awssdk.services.sqs.model.EmptyBatchRequestException;
import software.amazon.awssdk.services.sqs.model.InvalidAttributeNameException;
import software.amazon.awssdk.services.sqs.model.InvalidMessageContentsException;
import software.amazon.awssdk.services.sqs.model.Message;
import software.amazon.awssdk.services.sqs.model.MessageAttributeValue;
import software.amazon.awssdk.services.sqs.model.MessageSystemAttributeName;
import software.amazon.awssdk.services.sqs.model.MessageSystemAttributeNameForSends;
import software.amazon.awssdk.services.sqs.model.MessageSystemAttributeValue;
import software.amazon.awssdk.services.sqs.model.PurgeQueueInProgressException;
import software.amazon.awssdk.services.sqs.model.QueueAttributeName;
import software.amazon.awssdk.services.sqs.model.QueueDoesNotExistException;
import software.amazon.awssdk.services.sqs.model.QueueNameExistsException;
import software.amazon.awssdk.services.sqs.model.ReceiptHandleIsInvalidException;
import software.amazon.awssdk.services.sqs.model.ReceiveMessageRequest;
import software.amazon.awssdk.services.sqs.model.ResourceNotFoundException;
import software.amazon.awssdk.services.sqs.model.SendMessageBatchRequestEntry;
import software.amazon.awssdk.services.sqs.model.SendMessageRequest;
import software.amazon.awssdk.services.sqs.model.SendMessageResponse;
import software.amazon.awssdk.services.sqs.model.SqsException;
import software.amazon.awssdk.services.sqs.model.TooManyEntriesInBatchRequestException;

/** Tries dlq serve with the AWS SDK for Java, as a user of SQS does. The SDK checks all MD5 sums. */
public final class Scenario {
    private static final String TRACE = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1";
    private static final Map<QueueAttributeName, String> CONTENT_BASED =
            Map.of(QueueAttributeName.FIFO_QUEUE, "true", QueueAttributeName.CONTENT_BASED_DEDUPLICATION, "true");

    private static final SqsClient SQS = client(Region.US_EAST_1, "test");

    private record Queue(String url, String arn) {}

    private record Pair(Queue source, Queue dead) {}

    public static void main(String[] args) throws Exception {
        Harness h = new Harness();
        h.check("send, receive, delete", Scenario::sendAndReceive);
        h.check("attributes of messages", Scenario::attributes);
        h.check("attributes that are asked for", Scenario::asked);
        h.check("batches, with an entry that fails", Scenario::batches);
        h.check("a message of 1 MiB", Scenario::large);
        h.check("batches of 1 MiB", Scenario::largeBatch);
        h.check("batches that the SDK makes", Scenario::batchManager);
        h.check("long poll", Scenario::longPoll);
        h.check("long poll of the asynchronous client, and one that is given up", Scenario::asynchronous);
        h.check("long poll of a client that goes away", Scenario::abandoned);
        h.check("visibility", Scenario::visibility);
        h.check("FIFO order, groups and deduplication", Scenario::fifo);
        h.check("FIFO with high throughput", Scenario::highThroughput);
        h.check("redrive allow policy", Scenario::allowPolicy);
        h.check("redrive and move task, standard", () -> redrive("", Map.of()));
        h.check("redrive and move task, FIFO", () -> redrive(".fifo", CONTENT_BASED));
        h.check("a move task that is cancelled", Scenario::cancelledTask);
        h.check("purge", Scenario::purge);
        h.check("tags and permissions", Scenario::tagsAndPermissions);
        h.check("pages of queues", Scenario::pages);
        h.check("errors by class", Scenario::typedErrors);
        h.check("regions and accounts", Scenario::regions);
        h.check("signatures", Scenario::signatures);
        System.exit(h.run("sqs-java", args.length > 0 ? args[0] : null) ? 0 : 1);
    }

    private static SqsAsyncClient asyncClient() {
        return SqsAsyncClient.builder()
                .region(Region.US_EAST_1)
                .endpointOverride(URI.create(System.getenv("AWS_ENDPOINT_URL_SQS")))
                .credentialsProvider(StaticCredentialsProvider.create(AwsBasicCredentials.create("test", "test")))
                .build();
    }

    private static SqsClient client(Region region, String key) {
        return client(region, key, "test");
    }

    private static SqsClient client(Region region, String key, String secret) {
        return SqsClient.builder()
                .region(region)
                .endpointOverride(URI.create(System.getenv("AWS_ENDPOINT_URL_SQS")))
                .credentialsProvider(StaticCredentialsProvider.create(AwsBasicCredentials.create(key, secret)))
                .httpClientBuilder(UrlConnectionHttpClient.builder().socketTimeout(Duration.ofSeconds(40)))
                .build();
    }

    private static Queue queue(String suffix, Map<QueueAttributeName, String> attributes) {
        String url = SQS.createQueue(r -> r.queueName(Harness.unique("q") + suffix).attributes(attributes)).queueUrl();
        String arn = SQS.getQueueAttributes(r -> r.queueUrl(url).attributeNames(QueueAttributeName.QUEUE_ARN))
                .attributes()
                .get(QueueAttributeName.QUEUE_ARN);
        return new Queue(url, arn);
    }

    private static Queue queue() {
        return queue("", Map.of());
    }

    /** pair makes a queue whose messages are dead letters after the first receive. */
    private static Pair pair(String suffix, Map<QueueAttributeName, String> attributes) {
        Queue dead = queue(suffix, attributes);
        Map<QueueAttributeName, String> with = new HashMap<>(attributes);
        with.put(QueueAttributeName.VISIBILITY_TIMEOUT, "0");
        with.put(QueueAttributeName.REDRIVE_POLICY, "{\"deadLetterTargetArn\":\"" + dead.arn + "\",\"maxReceiveCount\":1}");
        return new Pair(queue(suffix, with), dead);
    }

    private static SendMessageResponse send(String url, String body) {
        return send(url, body, r -> {});
    }

    private static SendMessageResponse send(String url, String body, Consumer<SendMessageRequest.Builder> more) {
        return SQS.sendMessage(r -> more.accept(r.queueUrl(url).messageBody(body)));
    }

    /** receive takes up to ten messages with everything that they have. */
    private static List<Message> receive(String url, Consumer<ReceiveMessageRequest.Builder> more) {
        return SQS.receiveMessage(r -> more.accept(r.queueUrl(url)
                        .maxNumberOfMessages(10)
                        .messageAttributeNames("All")
                        .messageSystemAttributeNames(MessageSystemAttributeName.ALL)))
                .messages();
    }

    private static List<Message> receive(String url) {
        return receive(url, r -> {});
    }

    private static Message one(String url, Consumer<ReceiveMessageRequest.Builder> more) {
        List<Message> got = receive(url, more);
        Harness.equal(got.size(), 1, "messages");
        return got.get(0);
    }

    private static Message one(String url) {
        return one(url, r -> {});
    }

    private static String bodies(List<Message> messages) {
        return messages.stream().map(Message::body).collect(Collectors.joining(" "));
    }

    private static String count(Message m) {
        return m.attributes().get(MessageSystemAttributeName.APPROXIMATE_RECEIVE_COUNT);
    }

    private static void refused(String code, Harness.Body body) {
        SqsException e = Harness.fails(SqsException.class, body);
        Harness.equal(e.awsErrorDetails().errorCode(), code, "code");
    }

    private static void sendAndReceive() {
        Queue q = queue();
        for (String body : List.of("hello", "a\r\nb\tc \"<&>' é 😀", "x".repeat(100_000))) {
            SendMessageResponse sent = send(q.url, body);
            Message m = one(q.url);
            Harness.equal(m.body(), body, "body");
            Harness.equal(m.messageId(), sent.messageId(), "id");
            SQS.deleteMessage(r -> r.queueUrl(q.url).receiptHandle(m.receiptHandle()));
        }
        Harness.equal(receive(q.url).size(), 0, "left");
    }

    private static void attributes() {
        Queue q = queue();
        Map<String, MessageAttributeValue> sent = Map.of(
                "text", MessageAttributeValue.builder().dataType("String").stringValue("é").build(),
                "count", MessageAttributeValue.builder().dataType("Number.int").stringValue("007").build(),
                "bytes",
                        MessageAttributeValue.builder()
                                .dataType("Binary.png")
                                .binaryValue(SdkBytes.fromByteArray(new byte[] {0, -1, 1}))
                                .build());
        MessageSystemAttributeValue trace =
                MessageSystemAttributeValue.builder().dataType("String").stringValue(TRACE).build();
        send(q.url, "x", r -> r.messageAttributes(sent)
                .messageSystemAttributes(Map.of(MessageSystemAttributeNameForSends.AWS_TRACE_HEADER, trace)));
        Message m = one(q.url);
        Harness.equal(m.messageAttributes(), sent, "attributes");
        Harness.equal(m.attributes().get(MessageSystemAttributeName.AWS_TRACE_HEADER), TRACE, "trace");
    }

    private static MessageAttributeValue text(String value) {
        return MessageAttributeValue.builder().dataType("String").stringValue(value).build();
    }

    private static void asked() {
        Queue q = queue();
        Map<String, MessageAttributeValue> sent =
                Map.of("trace.id", text("1"), "tracer", text("2"), "exact", text("3"), "other", text("4"));
        send(q.url, "x", r -> r.messageAttributes(sent));
        Message m = one(q.url, r -> r.messageAttributeNames("trace.*", "exact", "never")
                .messageSystemAttributeNamesWithStrings("SentTimestamp", "SequenceNumber"));
        Harness.equal(m.messageAttributes().keySet(), Set.of("trace.id", "tracer", "exact"), "attributes");
        Harness.equal(m.attributes().keySet(), Set.of(MessageSystemAttributeName.SENT_TIMESTAMP), "system attributes");
    }

    private static void batches() {
        Queue q = queue("", Map.of(QueueAttributeName.MAXIMUM_MESSAGE_SIZE, "1024"));
        List<SendMessageBatchRequestEntry> entries = IntStream.range(0, 10)
                .mapToObj(i -> SendMessageBatchRequestEntry.builder()
                        .id("" + i)
                        .messageBody(i == 4 ? "x".repeat(1025) : "m" + i)
                        .build())
                .toList();
        var sent = SQS.sendMessageBatch(r -> r.queueUrl(q.url).entries(entries));
        Harness.equal(sent.successful().size(), 9, "sent");
        Harness.equal(sent.failed().get(0).id(), "4", "failed");
        Harness.equal(sent.failed().get(0).code(), "InvalidParameterValue", "code");
        List<DeleteMessageBatchRequestEntry> handles = new ArrayList<>();
        for (Message m : receive(q.url)) {
            handles.add(DeleteMessageBatchRequestEntry.builder()
                    .id("" + handles.size())
                    .receiptHandle(m.receiptHandle())
                    .build());
        }
        handles.add(DeleteMessageBatchRequestEntry.builder().id("bad").receiptHandle("garbage").build());
        var deleted = SQS.deleteMessageBatch(r -> r.queueUrl(q.url).entries(handles));
        Harness.equal(deleted.successful().size(), 9, "deleted");
        Harness.equal(deleted.failed().get(0).code(), "ReceiptHandleIsInvalid", "code");
    }

    private static void large() {
        Queue q = queue();
        String body = "é".repeat(1 << 19);
        send(q.url, body);
        Harness.isTrue(one(q.url).body().equals(body), "another body came back");
        refused("InvalidParameterValue", () -> send(q.url, body + "x"));
    }

    private static void largeBatch() {
        Queue q = queue();
        List<SendMessageBatchRequestEntry> entries = IntStream.range(0, 8)
                .mapToObj(i -> SendMessageBatchRequestEntry.builder()
                        .id("" + i)
                        .messageBody("x".repeat(1 << 17))
                        .build())
                .toList();
        SQS.sendMessageBatch(r -> r.queueUrl(q.url).entries(entries));
        Harness.equal(receive(q.url).size(), 8, "received");
        List<SendMessageBatchRequestEntry> more = new ArrayList<>(entries);
        more.add(SendMessageBatchRequestEntry.builder().id("8").messageBody("x").build());
        Harness.fails(BatchRequestTooLongException.class,
                () -> SQS.sendMessageBatch(r -> r.queueUrl(q.url).entries(more)));
        more.set(8, entries.get(0));
        Harness.fails(BatchEntryIdsNotDistinctException.class,
                () -> SQS.sendMessageBatch(r -> r.queueUrl(q.url).entries(more)));
        more.addAll(entries);
        Harness.fails(TooManyEntriesInBatchRequestException.class,
                () -> SQS.sendMessageBatch(r -> r.queueUrl(q.url).entries(more)));
    }

    /** batchManager: the SDK gathers calls into batches, and receives ahead of who asks. */
    private static void batchManager() {
        Queue q = queue();
        try (SqsAsyncClient client = asyncClient(); SqsAsyncBatchManager manager = client.batchManager()) {
            List<CompletableFuture<SendMessageResponse>> sent = IntStream.range(0, 25)
                    .mapToObj(i -> manager.sendMessage(r -> r.queueUrl(q.url).messageBody("m" + i)))
                    .toList();
            sent.forEach(CompletableFuture::join);
            Set<String> got = new HashSet<>();
            List<CompletableFuture<DeleteMessageResponse>> deleted = new ArrayList<>();
            for (int i = 0; i < 100 && got.size() < 25; i++) {
                for (Message m : manager.receiveMessage(r -> r.queueUrl(q.url).waitTimeSeconds(1)).join().messages()) {
                    got.add(m.body());
                    deleted.add(manager.deleteMessage(r -> r.queueUrl(q.url).receiptHandle(m.receiptHandle())));
                }
            }
            deleted.forEach(CompletableFuture::join);
            Harness.equal(got.size(), 25, "received");
        }
        Map<QueueAttributeName, String> left = SQS.getQueueAttributes(
                        r -> r.queueUrl(q.url).attributeNames(QueueAttributeName.ALL))
                .attributes();
        Harness.equal(left.get(QueueAttributeName.APPROXIMATE_NUMBER_OF_MESSAGES), "0", "left");
        Harness.equal(left.get(QueueAttributeName.APPROXIMATE_NUMBER_OF_MESSAGES_NOT_VISIBLE), "0", "in flight");
    }

    private static void asynchronous() throws Exception {
        Queue q = queue();
        try (SqsAsyncClient client = asyncClient()) {
            var given = client.receiveMessage(r -> r.queueUrl(q.url).waitTimeSeconds(20));
            Thread.sleep(500);
            given.cancel(true);
            Thread.sleep(300);
            var waiting = client.receiveMessage(r -> r.queueUrl(q.url)
                    .waitTimeSeconds(20)
                    .messageSystemAttributeNames(MessageSystemAttributeName.ALL));
            Thread.sleep(200);
            send(q.url, "hello");
            List<Message> got = waiting.get().messages();
            Harness.equal(bodies(got), "hello", "body");
            Harness.equal(count(got.get(0)), "1", "count");
        }
    }

    private static void longPoll() throws Exception {
        Queue q = queue();
        var waiting = CompletableFuture.supplyAsync(() -> one(q.url, r -> r.waitTimeSeconds(20)));
        Thread.sleep(300);
        send(q.url, "hello");
        Harness.equal(waiting.get().body(), "hello", "body");
    }

    private static void abandoned() throws Exception {
        Queue q = queue();
        Harness.fails(ApiCallTimeoutException.class, () -> receive(q.url, r -> r.waitTimeSeconds(20)
                .overrideConfiguration(o -> o.apiCallTimeout(Duration.ofMillis(500)))));
        Thread.sleep(500);
        send(q.url, "hello");
        Harness.equal(count(one(q.url)), "1", "count");
    }

    private static void visibility() {
        Queue q = queue("", Map.of(QueueAttributeName.VISIBILITY_TIMEOUT, "1"));
        send(q.url, "x");
        one(q.url);
        Message m = one(q.url, r -> r.waitTimeSeconds(10));
        SQS.changeMessageVisibility(r -> r.queueUrl(q.url).receiptHandle(m.receiptHandle()).visibilityTimeout(60));
        Harness.equal(receive(q.url, r -> r.waitTimeSeconds(2)).size(), 0, "hidden");
        var release = ChangeMessageVisibilityBatchRequestEntry.builder()
                .id("a")
                .receiptHandle(m.receiptHandle())
                .visibilityTimeout(0)
                .build();
        SQS.changeMessageVisibilityBatch(r -> r.queueUrl(q.url).entries(List.of(release)));
        Harness.equal(count(one(q.url)), "3", "count");
    }

    private static void fifo() {
        Queue q = queue(".fifo", CONTENT_BASED);
        SendMessageResponse first = send(q.url, "a", r -> r.messageGroupId("g1"));
        send(q.url, "b", r -> r.messageGroupId("g1"));
        send(q.url, "c", r -> r.messageGroupId("g1"));
        send(q.url, "d", r -> r.messageGroupId("g2"));
        SendMessageResponse again = send(q.url, "a", r -> r.messageGroupId("g1"));
        Harness.equal(again.messageId(), first.messageId(), "id of the duplicate");
        Harness.equal(again.sequenceNumber(), first.sequenceNumber(), "number of the duplicate");
        List<Message> two = receive(q.url, r -> r.maxNumberOfMessages(2).receiveRequestAttemptId("attempt"));
        Harness.equal(bodies(two), "a b", "first");
        List<Message> same = receive(q.url, r -> r.maxNumberOfMessages(2).receiveRequestAttemptId("attempt"));
        Harness.equal(same.get(0).receiptHandle(), two.get(0).receiptHandle(), "handle");
        Harness.equal(bodies(receive(q.url)), "d", "second");
        for (Message m : two) {
            SQS.deleteMessage(r -> r.queueUrl(q.url).receiptHandle(m.receiptHandle()));
        }
        Harness.equal(bodies(receive(q.url)), "c", "third");
    }

    private static void highThroughput() {
        Queue q = queue(".fifo", Map.of(
                QueueAttributeName.FIFO_QUEUE, "true",
                QueueAttributeName.DEDUPLICATION_SCOPE, "messageGroup",
                QueueAttributeName.FIFO_THROUGHPUT_LIMIT, "perMessageGroupId"));
        for (String[] m : new String[][] {{"g1", "a"}, {"g1", "b"}, {"g2", "c"}}) {
            send(q.url, m[1], r -> r.messageGroupId(m[0]).messageDeduplicationId("id"));
        }
        List<Message> got = receive(q.url);
        Harness.equal(bodies(got), "a c", "received");
        Harness.equal(got.get(1).attributes().get(MessageSystemAttributeName.MESSAGE_GROUP_ID), "g2", "group");
        refused("InvalidParameterValue", () -> send(q.url, "x", r -> r.messageGroupId("g1")));
        refused("MissingParameter", () -> send(q.url, "x", r -> r.messageDeduplicationId("id")));
    }

    private static void allowPolicy() {
        Queue dead = queue("", Map.of(QueueAttributeName.REDRIVE_ALLOW_POLICY, "{\"redrivePermission\":\"denyAll\"}"));
        Map<QueueAttributeName, String> policy = Map.of(
                QueueAttributeName.REDRIVE_POLICY, "{\"deadLetterTargetArn\":\"" + dead.arn + "\",\"maxReceiveCount\":1}");
        refused("InvalidParameterValue", () -> queue("", policy));
        Queue source = queue();
        SQS.setQueueAttributes(r -> r.queueUrl(dead.url).attributes(Map.of(
                QueueAttributeName.REDRIVE_ALLOW_POLICY,
                "{\"redrivePermission\":\"byQueue\",\"sourceQueueArns\":[\"" + source.arn + "\"]}")));
        SQS.setQueueAttributes(r -> r.queueUrl(source.url).attributes(policy));
        refused("InvalidParameterValue", () -> queue("", policy));
    }

    private static void redrive(String suffix, Map<QueueAttributeName, String> attributes) throws Exception {
        Pair p = pair(suffix, attributes);
        String group = suffix.isEmpty() ? null : "g";
        String id = send(p.source.url, "poison", r -> r.messageGroupId(group)).messageId();
        one(p.source.url);
        Harness.equal(receive(p.source.url).size(), 0, "second receive");
        Message m = one(p.dead.url, r -> r.visibilityTimeout(30));
        Harness.equal(m.messageId(), id, "id");
        Harness.equal(
                m.attributes().get(MessageSystemAttributeName.DEAD_LETTER_QUEUE_SOURCE_ARN), p.source.arn, "source");
        Harness.equal(count(m), "2", "count");
        Harness.equal(
                SQS.listDeadLetterSourceQueues(r -> r.queueUrl(p.dead.url)).queueUrls(), List.of(p.source.url), "sources");
        SQS.changeMessageVisibility(r -> r.queueUrl(p.dead.url).receiptHandle(m.receiptHandle()).visibilityTimeout(0));
        SQS.startMessageMoveTask(r -> r.sourceArn(p.dead.arn));
        Harness.eventually(() -> {
            var task = SQS.listMessageMoveTasks(r -> r.sourceArn(p.dead.arn)).results().get(0);
            Harness.equal(task.status(), "COMPLETED", "status");
            Harness.equal(task.approximateNumberOfMessagesMoved(), 1L, "moved");
        });
        Message back = one(p.source.url);
        Harness.isTrue(!back.messageId().equals(id), "the id is the old one");
        Harness.equal(back.body(), "poison", "body");
    }

    private static void cancelledTask() throws Exception {
        Queue dead = pair("", Map.of()).dead;
        Queue other = queue();
        for (int i = 0; i < 20; i++) {
            send(dead.url, "" + i);
        }
        String handle = SQS.startMessageMoveTask(
                        r -> r.sourceArn(dead.arn).destinationArn(other.arn).maxNumberOfMessagesPerSecond(2))
                .taskHandle();
        refused("InvalidParameterValue", () -> SQS.startMessageMoveTask(r -> r.sourceArn(dead.arn)));
        one(other.url, r -> r.waitTimeSeconds(10).maxNumberOfMessages(1));
        var running = SQS.listMessageMoveTasks(r -> r.sourceArn(dead.arn)).results().get(0);
        Harness.equal(running.status(), "RUNNING", "status");
        Harness.equal(running.taskHandle(), handle, "handle");
        Harness.equal(running.approximateNumberOfMessagesToMove(), 20L, "to move");
        long moved = SQS.cancelMessageMoveTask(r -> r.taskHandle(handle)).approximateNumberOfMessagesMoved();
        Harness.isTrue(moved >= 1 && moved < 20, moved + " were moved");
        Harness.eventually(() -> Harness.equal(
                SQS.listMessageMoveTasks(r -> r.sourceArn(dead.arn)).results().get(0).status(), "CANCELLED", "status"));
        Harness.fails(ResourceNotFoundException.class,
                () -> SQS.startMessageMoveTask(r -> r.sourceArn(dead.arn + "-never")));
    }

    private static void purge() {
        Queue q = queue();
        send(q.url, "x");
        SQS.purgeQueue(r -> r.queueUrl(q.url));
        Harness.equal(receive(q.url).size(), 0, "left");
        Harness.fails(PurgeQueueInProgressException.class, () -> SQS.purgeQueue(r -> r.queueUrl(q.url)));
    }

    private static void tagsAndPermissions() {
        Queue q = queue();
        SQS.tagQueue(r -> r.queueUrl(q.url).tags(Map.of("a", "1", "b", "")));
        SQS.untagQueue(r -> r.queueUrl(q.url).tagKeys("a"));
        Harness.equal(SQS.listQueueTags(r -> r.queueUrl(q.url)).tags(), Map.of("b", ""), "tags");
        SQS.addPermission(r -> r.queueUrl(q.url).label("label").awsAccountIds("111122223333").actions("SendMessage"));
        SQS.removePermission(r -> r.queueUrl(q.url).label("label"));
        Harness.equal(
                SQS.getQueueAttributes(r -> r.queueUrl(q.url).attributeNames(QueueAttributeName.POLICY)).attributes().size(),
                0,
                "attributes");
    }

    private static void pages() {
        String prefix = Harness.unique("page");
        for (int i = 0; i < 5; i++) {
            String name = prefix + "-" + i;
            SQS.createQueue(r -> r.queueName(name));
        }
        var pages = SQS.listQueuesPaginator(r -> r.queueNamePrefix(prefix).maxResults(2));
        Harness.equal(pages.queueUrls().stream().count(), 5L, "queues");
    }

    private static void typedErrors() {
        Queue q = queue("", Map.of(QueueAttributeName.DELAY_SECONDS, "5"));
        String name = q.url.substring(q.url.lastIndexOf('/') + 1);
        var missing = Harness.fails(QueueDoesNotExistException.class, () -> SQS.getQueueUrl(r -> r.queueName("never")));
        Harness.equal(missing.statusCode(), 400, "status");
        Harness.equal(missing.awsErrorDetails().errorCode(), "AWS.SimpleQueueService.NonExistentQueue", "code");
        Harness.fails(QueueNameExistsException.class, () -> SQS.createQueue(
                r -> r.queueName(name).attributes(Map.of(QueueAttributeName.DELAY_SECONDS, "6"))));
        Harness.fails(ReceiptHandleIsInvalidException.class,
                () -> SQS.deleteMessage(r -> r.queueUrl(q.url).receiptHandle("garbage")));
        Harness.fails(InvalidMessageContentsException.class, () -> send(q.url, "\u0000"));
        Harness.fails(InvalidAttributeNameException.class,
                () -> SQS.getQueueAttributes(r -> r.queueUrl(q.url).attributeNamesWithStrings("Foobar")));
        Harness.fails(EmptyBatchRequestException.class,
                () -> SQS.sendMessageBatch(r -> r.queueUrl(q.url).entries(List.of())));
        SQS.deleteQueue(r -> r.queueUrl(q.url));
        Harness.fails(QueueDoesNotExistException.class, () -> send(q.url, "x"));
    }

    private static void regions() {
        String name = Harness.unique("q");
        for (String[] who : new String[][] {
            {"us-east-1", "test"}, {"eu-west-1", "test"}, {"us-east-1", "111122223333"}
        }) {
            try (SqsClient other = client(Region.of(who[0]), who[1])) {
                String url = other.createQueue(r -> r.queueName(name)).queueUrl();
                other.sendMessage(r -> r.queueUrl(url).messageBody(who[0] + who[1]));
                Harness.equal(
                        bodies(other.receiveMessage(r -> r.queueUrl(url).maxNumberOfMessages(10)).messages()),
                        who[0] + who[1],
                        "bodies");
            }
        }
    }

    /** signatures: a link that receives, for who has no key, and what is signed with another secret. */
    private static void signatures() throws Exception {
        Queue q = queue();
        send(q.url, "hello");
        SdkHttpRequest request = SdkHttpRequest.builder()
                .method(SdkHttpMethod.GET)
                .uri(URI.create(q.url))
                .putRawQueryParameter("Action", "ReceiveMessage")
                .putRawQueryParameter("VisibilityTimeout", "0")
                .build();
        URI link = AwsV4HttpSigner.create()
                .sign(r -> r.identity(AwsBasicCredentials.create("test", "test"))
                        .request(request)
                        .putProperty(AwsV4HttpSigner.SERVICE_SIGNING_NAME, "sqs")
                        .putProperty(AwsV4HttpSigner.REGION_NAME, "us-east-1")
                        .putProperty(AwsV4HttpSigner.AUTH_LOCATION, AwsV4HttpSigner.AuthLocation.QUERY_STRING)
                        .putProperty(AwsV4HttpSigner.EXPIRATION_DURATION, Duration.ofMinutes(1)))
                .request()
                .getUri();
        var http = HttpClient.newHttpClient();
        var answer = http.send(HttpRequest.newBuilder(link).build(), HttpResponse.BodyHandlers.ofString());
        Harness.equal(answer.statusCode(), 200, "status of " + answer.body());
        Harness.isTrue(answer.body().contains("<Body>hello</Body>"), answer.body());
        URI other = URI.create(link.toString().replace("VisibilityTimeout=0", "VisibilityTimeout=1"));
        Harness.equal(http.send(HttpRequest.newBuilder(other).build(), HttpResponse.BodyHandlers.discarding()).statusCode(),
                403, "status of another request");
        try (SqsClient wrong = client(Region.US_EAST_1, "test", "another")) {
            refused("SignatureDoesNotMatch", wrong::listQueues);
        }
    }
}
