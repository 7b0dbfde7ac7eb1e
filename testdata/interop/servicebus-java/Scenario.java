import com.azure.core.amqp.AmqpRetryOptions;
import com.azure.core.amqp.AmqpTransportType;
import com.azure.core.amqp.exception.AmqpException;
import com.azure.core.amqp.models.AmqpMessageBody;
import com.azure.core.exception.HttpResponseException;
import com.azure.core.exception.ResourceExistsException;
import com.azure.core.exception.ResourceNotFoundException;
import com.azure.core.http.HttpPipelineCallContext;
import com.azure.core.http.HttpPipelineNextPolicy;
import com.azure.core.http.HttpPipelineNextSyncPolicy;
import com.azure.core.http.HttpResponse;
import com.azure.core.http.policy.HttpPipelinePolicy;
import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusException;
import com.azure.messaging.servicebus.ServiceBusFailureReason;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusMessageBatch;
import com.azure.messaging.servicebus.ServiceBusProcessorClient;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusRuleManagerClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.ServiceBusSessionReceiverClient;
import com.azure.messaging.servicebus.ServiceBusTransactionContext;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClient;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClientBuilder;
import com.azure.messaging.servicebus.administration.models.CorrelationRuleFilter;
import com.azure.messaging.servicebus.administration.models.CreateQueueOptions;
import com.azure.messaging.servicebus.administration.models.CreateRuleOptions;
import com.azure.messaging.servicebus.administration.models.CreateSubscriptionOptions;
import com.azure.messaging.servicebus.administration.models.CreateTopicOptions;
import com.azure.messaging.servicebus.administration.models.EntityStatus;
import com.azure.messaging.servicebus.administration.models.QueueProperties;
import com.azure.messaging.servicebus.administration.models.QueueRuntimeProperties;
import com.azure.messaging.servicebus.administration.models.RuleProperties;
import com.azure.messaging.servicebus.administration.models.SqlRuleAction;
import com.azure.messaging.servicebus.administration.models.SqlRuleFilter;
import com.azure.messaging.servicebus.administration.models.SubscriptionProperties;
import com.azure.messaging.servicebus.administration.models.TopicProperties;
import com.azure.messaging.servicebus.models.AbandonOptions;
import com.azure.messaging.servicebus.models.CompleteOptions;
import com.azure.messaging.servicebus.models.CreateMessageBatchOptions;
import com.azure.messaging.servicebus.models.DeadLetterOptions;
import com.azure.messaging.servicebus.models.DeferOptions;
import com.azure.messaging.servicebus.models.ServiceBusMessageState;
import com.azure.messaging.servicebus.models.ServiceBusReceiveMode;
import com.azure.messaging.servicebus.models.SubQueue;
import java.net.URI;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import reactor.core.publisher.Mono;

/** azure-messaging-servicebus, unmodified, against a server named by connection strings in the environment. */
public final class Scenario {
    static final String SECURE = System.getenv("SERVICEBUS_TLS");
    static final String SEND_ONLY = System.getenv("SERVICEBUS_TLS_SEND_ONLY");
    static final String LISTEN_ONLY = System.getenv("SERVICEBUS_TLS_LISTEN_ONLY");
    static final String PLAIN = System.getenv("SERVICEBUS_PLAIN");

    static final ServiceBusAdministrationClient admin = administration();
    static final Connected client = new Connected(builder(SECURE));

    static final Harness harness = new Harness();

    /** This SDK's administration client drops the port of the endpoint; a policy brings it back. */
    static ServiceBusAdministrationClient administration() {
        Matcher m = Pattern.compile("Endpoint=sb://[^;/]*:(\\d+)").matcher(SECURE);
        if (!m.find()) {
            throw new IllegalArgumentException("no port in the endpoint of " + SECURE.replaceAll("SharedAccessKey=[^;]*", "…"));
        }
        return new ServiceBusAdministrationClientBuilder()
            .connectionString(SECURE)
            .addPolicy(new PortPolicy(Integer.parseInt(m.group(1))))
            .buildClient();
    }

    record PortPolicy(int port) implements HttpPipelinePolicy {
        private void redirect(HttpPipelineCallContext context) {
            try {
                URL u = context.getHttpRequest().getUrl();
                context.getHttpRequest().setUrl(new URL(u.getProtocol(), u.getHost(), port, u.getFile()));
            } catch (java.net.MalformedURLException e) {
                throw new IllegalStateException(e);
            }
        }

        @Override
        public Mono<HttpResponse> process(HttpPipelineCallContext context, HttpPipelineNextPolicy next) {
            redirect(context);
            return next.process();
        }

        @Override
        public HttpResponse processSync(HttpPipelineCallContext context, HttpPipelineNextSyncPolicy next) {
            redirect(context);
            return next.processSync();
        }
    }

    static ServiceBusClientBuilder builder(String connectionString) {
        return new ServiceBusClientBuilder()
            .connectionString(connectionString)
            .retryOptions(new AmqpRetryOptions().setMaxRetries(1).setDelay(Duration.ofMillis(200)).setTryTimeout(Duration.ofSeconds(15)));
    }

    /** The clients of one builder, which share its connection. */
    record Connected(ServiceBusClientBuilder builder) {
        ServiceBusSenderClient sender(String queue) {
            return builder.sender().queueName(queue).buildClient();
        }

        ServiceBusSenderClient topicSender(String topic) {
            return builder.sender().topicName(topic).buildClient();
        }

        ServiceBusReceiverClient receiver(String queue) {
            return receiver(queue, SubQueue.NONE, ServiceBusReceiveMode.PEEK_LOCK);
        }

        ServiceBusReceiverClient deadLetters(String queue) {
            return receiver(queue, SubQueue.DEAD_LETTER_QUEUE, ServiceBusReceiveMode.PEEK_LOCK);
        }

        ServiceBusReceiverClient receiver(String queue, SubQueue sub, ServiceBusReceiveMode mode) {
            return builder.receiver().queueName(queue).subQueue(sub).receiveMode(mode)
                .maxAutoLockRenewDuration(Duration.ZERO).buildClient();
        }

        ServiceBusReceiverClient receiver(String topic, String subscription, SubQueue sub) {
            return builder.receiver().topicName(topic).subscriptionName(subscription).subQueue(sub)
                .maxAutoLockRenewDuration(Duration.ZERO).buildClient();
        }

        ServiceBusSessionReceiverClient sessions(String queue) {
            return builder.sessionReceiver().queueName(queue).maxAutoLockRenewDuration(Duration.ZERO).buildClient();
        }
    }

    static String queue(CreateQueueOptions options) {
        String name = Harness.unique("q");
        admin.createQueue(name, options);
        return name;
    }

    static String queue() {
        return queue(new CreateQueueOptions());
    }

    static String topic(String... subscriptions) {
        String name = Harness.unique("t");
        admin.createTopic(name);
        for (String s : subscriptions) {
            admin.createSubscription(name, s);
        }
        return name;
    }

    static ServiceBusMessage message(String body) {
        return new ServiceBusMessage(body);
    }

    static ServiceBusMessage inSession(String session, String body) {
        return message(body).setSessionId(session);
    }

    static void send(String queue, ServiceBusMessage... messages) {
        try (ServiceBusSenderClient s = client.sender(queue)) {
            for (ServiceBusMessage m : messages) {
                s.sendMessage(m);
            }
        }
    }

    /** take receives exactly n messages, or throws. */
    static List<ServiceBusReceivedMessage> take(ServiceBusReceiverClient r, int n, int seconds) {
        List<ServiceBusReceivedMessage> got = new ArrayList<>();
        long end = System.nanoTime() + Duration.ofSeconds(seconds).toNanos();
        while (got.size() < n && System.nanoTime() < end) {
            Duration left = Duration.ofNanos(Math.max(end - System.nanoTime(), 1_000_000));
            r.receiveMessages(n - got.size(), left).forEach(got::add);
        }
        Harness.equal(got.size(), n, "messages");
        return got;
    }

    static List<ServiceBusReceivedMessage> take(ServiceBusReceiverClient r, int n) {
        return take(r, n, 10);
    }

    static ServiceBusReceivedMessage one(ServiceBusReceiverClient r) {
        return take(r, 1).get(0);
    }

    static void none(ServiceBusReceiverClient r) {
        Harness.equal(bodies(list(r.receiveMessages(1, Duration.ofMillis(700)))), List.of(), "messages");
    }

    static <T> List<T> list(Iterable<T> i) {
        List<T> l = new ArrayList<>();
        i.forEach(l::add);
        return l;
    }

    static List<String> bodies(List<ServiceBusReceivedMessage> messages) {
        return messages.stream().map(m -> m.getBody().toString()).collect(Collectors.toList());
    }

    static List<Integer> counts(String queue) {
        QueueRuntimeProperties p = admin.getQueueRuntimeProperties(queue);
        return List.of((int) p.getTotalMessageCount(), p.getActiveMessageCount(), p.getDeadLetterMessageCount(), p.getScheduledMessageCount());
    }

    static ServiceBusException fails(ServiceBusFailureReason reason, Harness.Body body) {
        ServiceBusException e = Harness.fails(ServiceBusException.class, body);
        if (!e.getReason().equals(reason)) {
            throw new AssertionError("reason: expected " + reason + ", got " + e.getReason() + ": " + e.getMessage(), e);
        }
        return e;
    }

    static OffsetDateTime later(long seconds) {
        return OffsetDateTime.now().plusSeconds(seconds);
    }

    static CreateQueueOptions shortLock() {
        return new CreateQueueOptions().setLockDuration(Duration.ofSeconds(5));
    }

    /** again is a client of its own: a closed session lingers for a moment in the client that had it. */
    static ServiceBusSessionReceiverClient again(String queue) {
        return new Connected(builder(SECURE)).sessions(queue);
    }

    static CreateQueueOptions withSessions() {
        return new CreateQueueOptions().setSessionRequired(true);
    }

    // --- sending and receiving ---------------------------------------------------------------

    static void sendingAndReceiving() {
        harness.check("send, receive, complete", () -> {
            String q = queue();
            send(q, message("hello"));
            try (ServiceBusReceiverClient r = client.receiver(q)) {
                ServiceBusReceivedMessage m = one(r);
                Harness.equal(m.getBody().toString(), "hello", "body");
                Harness.equal(m.getDeliveryCount(), 0L, "delivery count");
                Harness.equal(m.getSequenceNumber(), 1L, "sequence number");
                Harness.equal(m.getState(), ServiceBusMessageState.ACTIVE, "state");
                Harness.isTrue(m.getLockedUntil().isAfter(OffsetDateTime.now()), "locked until " + m.getLockedUntil());
                Harness.isTrue(Duration.between(m.getEnqueuedTime(), OffsetDateTime.now()).abs().toMinutes() < 1, "enqueued at " + m.getEnqueuedTime());
                r.complete(m);
                none(r);
            }
            Harness.equal(counts(q), List.of(0, 0, 0, 0), "counts");
        });

        harness.check("system properties come back equal", () -> {
            String q = queue();
            send(q, message("x").setMessageId("id-1").setCorrelationId("corr-1").setContentType("application/json").setSubject("subject")
                .setTo("to").setReplyTo("reply-to").setReplyToSessionId("reply-session").setSessionId("s").setPartitionKey("s").setTimeToLive(Duration.ofHours(1)));
            try (ServiceBusReceiverClient r = client.receiver(q)) {
                ServiceBusReceivedMessage m = one(r);
                Harness.equal(
                    List.of(m.getMessageId(), m.getCorrelationId(), m.getContentType(), m.getSubject(), m.getTo(), m.getReplyTo(), m.getReplyToSessionId(), m.getSessionId(), m.getPartitionKey(), m.getTimeToLive()),
                    List.of("id-1", "corr-1", "application/json", "subject", "to", "reply-to", "reply-session", "s", "s", Duration.ofHours(1)),
                    "properties");
                Harness.equal(Duration.between(m.getEnqueuedTime(), m.getExpiresAt()), Duration.ofHours(1), "time to expiry");
                r.complete(m);
            }
        });

        harness.check("application properties of every type come back equal", () -> {
            String q = queue();
            Map<String, Object> want = new HashMap<>();
            want.put("string", "text");
            want.put("unicode", "žluťoučký 🐎");
            want.put("byte", (byte) -5);
            want.put("short", (short) 300);
            want.put("int", 42);
            want.put("long", 1L << 40);
            want.put("float", 1.5f);
            want.put("double", 2.25);
            want.put("char", 'č');
            want.put("yes", true);
            want.put("nothing", null);
            want.put("uuid", UUID.fromString("00112233-4455-6677-8899-aabbccddeeff"));
            want.put("date", new Date(1_700_000_000_123L));
            want.put("duration", Duration.ofMinutes(90));
            want.put("uri", URI.create("https://example.com/a?b"));
            want.put("time", OffsetDateTime.parse("2023-11-14T22:13:20.5Z"));
            ServiceBusMessage m = message("x");
            m.getApplicationProperties().putAll(want);
            send(q, m);
            try (ServiceBusReceiverClient r = client.receiver(q)) {
                ServiceBusReceivedMessage got = one(r);
                for (Map.Entry<String, Object> e : want.entrySet()) {
                    Harness.equal(got.getApplicationProperties().get(e.getKey()), e.getValue(), e.getKey());
                }
                r.complete(got);
            }
        });

        body("data", AmqpMessageBody.fromData(new byte[] {0, 1, -1}), b -> Arrays.toString(b.getFirstData()), "[0, 1, -1]");
        body("sequence", AmqpMessageBody.fromSequence(List.of(1, "two", false)), b -> b.getSequence(), List.of(1, "two", false));
        body("value string", AmqpMessageBody.fromValue("text"), AmqpMessageBody::getValue, "text");
        body("value number", AmqpMessageBody.fromValue(5L), AmqpMessageBody::getValue, 5L);
        body("value map", AmqpMessageBody.fromValue(Map.of("a", "b", "n", 3)), AmqpMessageBody::getValue, Map.of("a", "b", "n", 3));
        body("value list", AmqpMessageBody.fromValue(List.of("a", 2, true)), AmqpMessageBody::getValue, List.of("a", 2, true));

        harness.check("batch: many messages, in order; full when the next does not fit", () -> {
            String q = queue();
            try (ServiceBusSenderClient s = client.sender(q); ServiceBusReceiverClient r = client.receiver(q)) {
                ServiceBusMessageBatch batch = s.createMessageBatch();
                for (int i = 0; i < 100; i++) {
                    Harness.isTrue(batch.tryAddMessage(message("" + i).setMessageId("m" + i)), "message " + i + " did not fit");
                }
                s.sendMessages(batch);
                List<ServiceBusReceivedMessage> got = take(r, 100, 20);
                Harness.equal(bodies(got), IntStream.range(0, 100).mapToObj(i -> "" + i).collect(Collectors.toList()), "bodies");
                got.forEach(r::complete);
                ServiceBusMessageBatch small = s.createMessageBatch(new CreateMessageBatchOptions().setMaximumSizeInBytes(10_000));
                Harness.isTrue(small.tryAddMessage(message("x".repeat(8_000))), "the first did not fit");
                Harness.isTrue(!small.tryAddMessage(message("x".repeat(8_000))), "the second fit");
            }
            Harness.equal(counts(q).get(0), 0, "left");
        });

        harness.check("a message that is too large is refused", () -> {
            String q = queue(new CreateQueueOptions().setMaxMessageSizeInKilobytes(1024));
            try (ServiceBusSenderClient s = client.sender(q)) {
                fails(ServiceBusFailureReason.MESSAGE_SIZE_EXCEEDED, () -> s.sendMessage(new ServiceBusMessage(new byte[1_200_000])));
                s.sendMessage(message("the link is still good"));
            }
        });

        harness.check("a message of several frames", () -> {
            String q = queue();
            byte[] big = new byte[200_000];
            Arrays.fill(big, (byte) 7);
            send(q, new ServiceBusMessage(big));
            try (ServiceBusReceiverClient r = client.receiver(q)) {
                ServiceBusReceivedMessage m = one(r);
                Harness.isTrue(Arrays.equals(m.getBody().toBytes(), big), "expected 200000 bytes, got " + m.getBody().toBytes().length);
                r.complete(m);
            }
        });

        harness.check("an empty receive returns in time, and the next one receives", () -> {
            String q = queue();
            try (ServiceBusReceiverClient r = client.receiver(q)) {
                none(r);
                long start = System.nanoTime();
                Harness.equal(list(r.receiveMessages(10, Duration.ofSeconds(1))).size(), 0, "messages");
                long took = Duration.ofNanos(System.nanoTime() - start).toMillis();
                Harness.isTrue(took > 800 && took < 4_000, "expected about 1000 ms, got " + took + " ms");
                send(q, message("late"));
                ServiceBusReceivedMessage m = one(r);
                Harness.equal(m.getBody().toString(), "late", "body");
                r.complete(m);
            }
        });

        harness.check("receive and delete", () -> {
            String q = queue();
            send(q, message("1"), message("2"));
            try (ServiceBusReceiverClient r = client.receiver(q, SubQueue.NONE, ServiceBusReceiveMode.RECEIVE_AND_DELETE)) {
                Harness.equal(bodies(take(r, 2)), List.of("1", "2"), "bodies");
            }
            Harness.equal(counts(q).get(0), 0, "left");
        });

        harness.check("processor: messages come as they arrive, and complete themselves", () -> {
            String q = queue();
            Set<String> got = java.util.concurrent.ConcurrentHashMap.newKeySet();
            ConcurrentLinkedQueue<Throwable> errors = new ConcurrentLinkedQueue<>();
            try (ServiceBusProcessorClient p = builder(SECURE).processor().queueName(q).maxConcurrentCalls(4)
                .processMessage(c -> got.add(c.getMessage().getBody().toString())).processError(c -> errors.add(c.getException())).buildProcessorClient()) {
                p.start();
                send(q, IntStream.range(0, 50).mapToObj(i -> message("" + i)).toArray(ServiceBusMessage[]::new));
                Harness.eventually(() -> Harness.equal(got.size(), 50, "messages"));
                Harness.eventually(() -> Harness.equal(counts(q).get(0), 0, "left"));
            }
            Harness.equal(List.copyOf(errors), List.of(), "errors");
        });

        harness.check("peek: order, states, from a number, without effect", () -> {
            String q = queue();
            send(q, message("1"), message("2"), message("3"));
            try (ServiceBusSenderClient s = client.sender(q); ServiceBusReceiverClient r = client.receiver(q); ServiceBusReceiverClient browser = client.receiver(q)) {
                s.scheduleMessage(message("4"), later(3600));
                r.defer(one(r));
                List<String> seen = list(browser.peekMessages(10, 1)).stream().map(m -> m.getBody() + " " + m.getState() + " " + m.getSequenceNumber()).toList();
                Harness.equal(seen, List.of("1 DEFERRED 1", "2 ACTIVE 2", "3 ACTIVE 3", "4 SCHEDULED 4"), "peeked");
                Harness.equal(browser.peekMessage(3).getBody().toString(), "3", "from 3");
                Harness.equal(list(browser.peekMessages(1, 99)).size(), 0, "beyond the end");
                Harness.equal(one(r).getDeliveryCount(), 0L, "delivery count");
            }
        });
    }

    static void body(String name, AmqpMessageBody sent, java.util.function.Function<AmqpMessageBody, Object> of, Object want) {
        harness.check("body: " + name, () -> {
            String q = queue();
            ServiceBusMessage m = new ServiceBusMessage(sent);
            m.getRawAmqpMessage().getProperties().setGroupSequence(4L);
            m.getRawAmqpMessage().getProperties().setContentEncoding("gzip");
            send(q, m);
            try (ServiceBusReceiverClient r = client.receiver(q)) {
                ServiceBusReceivedMessage got = one(r);
                AmqpMessageBody b = got.getRawAmqpMessage().getBody();
                Harness.equal(b.getBodyType(), sent.getBodyType(), "body type");
                Harness.equal(of.apply(b), want, "body");
                Harness.equal(got.getRawAmqpMessage().getProperties().getGroupSequence(), 4L, "group sequence");
                Harness.equal(got.getRawAmqpMessage().getProperties().getContentEncoding(), "gzip", "content encoding");
                r.complete(got);
            }
        });
    }

    // --- scheduling and settling -------------------------------------------------------------

    static void schedulingAndSettling() {
        harness.check("schedule and cancel", () -> {
            String q = queue();
            try (ServiceBusSenderClient s = client.sender(q)) {
                List<Long> numbers = list(s.scheduleMessages(List.of(message("1"), message("2"), message("3")), later(3600)));
                Harness.equal(numbers.size(), 3, "numbers");
                Harness.equal(counts(q).get(3), 3, "scheduled");
                s.cancelScheduledMessages(numbers.subList(0, 2));
                Harness.equal(counts(q).get(3), 1, "scheduled");
                s.cancelScheduledMessage(numbers.get(0)); // not found, which this SDK does not report
                Harness.equal(counts(q).get(3), 1, "scheduled");
            }
        });

        harness.check("a scheduled message comes at its time, and not before", () -> {
            String q = queue();
            try (ServiceBusSenderClient s = client.sender(q); ServiceBusReceiverClient r = client.receiver(q)) {
                OffsetDateTime at = later(4);
                s.scheduleMessage(message("by request"), at);
                s.sendMessage(message("by annotation").setScheduledEnqueueTime(at));
                none(r);
                List<ServiceBusReceivedMessage> got = take(r, 2, 15);
                Harness.isTrue(!OffsetDateTime.now().isBefore(at), "came before " + at);
                Harness.equal(new TreeSet<>(bodies(got)), new TreeSet<>(Set.of("by annotation", "by request")), "bodies");
            }
        });

        harness.check("abandon: comes again, counted, with its properties changed; too often: dead-lettered", () -> {
            String q = queue(new CreateQueueOptions().setMaxDeliveryCount(2));
            ServiceBusMessage sent = message("poison");
            sent.getApplicationProperties().put("kept", 1);
            sent.getApplicationProperties().put("changed", "old");
            send(q, sent);
            try (ServiceBusReceiverClient r = client.receiver(q); ServiceBusReceiverClient dlq = client.deadLetters(q)) {
                r.abandon(one(r), new AbandonOptions().setPropertiesToModify(Map.of("changed", "new", "added", true)));
                ServiceBusReceivedMessage again = one(r);
                Harness.equal(again.getDeliveryCount(), 1L, "delivery count");
                Harness.equal(again.getApplicationProperties(), Map.of("kept", 1, "changed", "new", "added", true), "properties");
                r.abandon(again);
                ServiceBusReceivedMessage dead = one(dlq);
                Harness.equal(dead.getDeadLetterReason(), "MaxDeliveryCountExceeded", "reason");
                Harness.equal(dead.getDeadLetterErrorDescription(), "Message could not be consumed after 2 delivery attempts.", "description");
                dlq.complete(dead);
            }
        });

        harness.check("defer, receive deferred, complete; abandon keeps it deferred", () -> {
            String q = queue();
            send(q, message("later"));
            try (ServiceBusReceiverClient r = client.receiver(q)) {
                ServiceBusReceivedMessage m = one(r);
                r.defer(m, new DeferOptions().setPropertiesToModify(Map.of("noted", "yes")));
                none(r);
                ServiceBusReceivedMessage got = r.receiveDeferredMessage(m.getSequenceNumber());
                Harness.equal(got.getState(), ServiceBusMessageState.DEFERRED, "state");
                Harness.equal(got.getApplicationProperties().get("noted"), "yes", "noted");
                r.abandon(got);
                ServiceBusReceivedMessage again = list(r.receiveDeferredMessageBatch(List.of(m.getSequenceNumber()))).get(0);
                Harness.equal(again.getDeliveryCount(), 1L, "delivery count");
                r.complete(again);
                Harness.fails(ServiceBusException.class, () -> r.receiveDeferredMessage(m.getSequenceNumber()));
            }
            Harness.equal(counts(q).get(0), 0, "left");
        });

        harness.check("dead-letter with reason, description and properties; read; resubmit", () -> {
            String q = queue();
            ServiceBusMessage sent = message("{\"order\": 1}").setMessageId("order-1");
            sent.getApplicationProperties().put("tenant", "acme");
            send(q, sent);
            try (ServiceBusReceiverClient r = client.receiver(q); ServiceBusReceiverClient dlq = client.deadLetters(q)) {
                ServiceBusReceivedMessage m = one(r);
                r.deadLetter(m, new DeadLetterOptions().setDeadLetterReason("Rejected").setDeadLetterErrorDescription("no such article").setPropertiesToModify(Map.of("attempt", 3)));
                Harness.equal(counts(q), List.of(1, 0, 1, 0), "counts");
                Harness.equal(dlq.peekMessage().getDeadLetterReason(), "Rejected", "peeked reason");
                ServiceBusReceivedMessage dead = one(dlq);
                Harness.equal(List.of(dead.getDeadLetterReason(), dead.getDeadLetterErrorDescription(), dead.getSequenceNumber()), List.of("Rejected", "no such article", m.getSequenceNumber()), "dead letter");
                Harness.equal(dead.getApplicationProperties().get("tenant"), "acme", "tenant");
                Harness.equal(dead.getApplicationProperties().get("attempt"), 3, "attempt");
                send(q, new ServiceBusMessage(dead));
                dlq.complete(dead);
                ServiceBusReceivedMessage back = one(r);
                Harness.equal(List.of(back.getBody().toString(), back.getMessageId()), List.of("{\"order\": 1}", "order-1"), "resubmitted");
                r.complete(back);
            }
            Harness.equal(counts(q).get(0), 0, "left");
        });

        harness.check("time to live: expires into the dead-letter queue", () -> {
            String q = queue(new CreateQueueOptions().setDeadLetteringOnMessageExpiration(true));
            send(q, message("short").setTimeToLive(Duration.ofSeconds(1)));
            try (ServiceBusReceiverClient dlq = client.deadLetters(q)) {
                Harness.equal(take(dlq, 1, 15).get(0).getDeadLetterReason(), "TTLExpiredException", "reason");
            }
        });

        harness.check("renew a message's lock", () -> {
            String q = queue(shortLock());
            send(q, message("slow"));
            try (ServiceBusReceiverClient r = client.receiver(q)) {
                ServiceBusReceivedMessage m = one(r);
                OffsetDateTime before = m.getLockedUntil();
                Thread.sleep(3_000);
                OffsetDateTime until = r.renewMessageLock(m);
                Harness.isTrue(!until.isBefore(before.plusSeconds(2)), "was " + before + ", is " + until);
                Thread.sleep(3_500);
                r.complete(m);
            }
            Harness.equal(counts(q).get(0), 0, "left");
        });

        harness.check("a lost lock: settling and renewing fail, the message comes again", () -> {
            String q = queue(shortLock());
            send(q, message("slow"));
            try (ServiceBusReceiverClient r = client.receiver(q)) {
                ServiceBusReceivedMessage m = one(r);
                Thread.sleep(6_000);
                fails(ServiceBusFailureReason.MESSAGE_LOCK_LOST, () -> r.renewMessageLock(m));
                fails(ServiceBusFailureReason.MESSAGE_LOCK_LOST, () -> r.complete(m));
                ServiceBusReceivedMessage again = one(r);
                Harness.equal(again.getDeliveryCount(), 1L, "delivery count");
                r.complete(again);
            }
        });
    }

    // --- transactions ------------------------------------------------------------------------

    static void transactions() {
        harness.check("transaction: sends are seen after the commit, and never after a rollback", () -> {
            String q = queue();
            try (ServiceBusSenderClient s = client.sender(q); ServiceBusReceiverClient r = client.receiver(q)) {
                ServiceBusTransactionContext tx = s.createTransaction();
                s.sendMessage(message("1"), tx);
                s.sendMessages(List.of(message("2"), message("3")), tx);
                none(r);
                s.commitTransaction(tx);
                List<ServiceBusReceivedMessage> got = take(r, 3);
                Harness.equal(bodies(got), List.of("1", "2", "3"), "bodies");
                got.forEach(r::complete);
                ServiceBusTransactionContext undone = s.createTransaction();
                s.sendMessage(message("never"), undone);
                s.rollbackTransaction(undone);
                none(r);
            }
        });

        harness.check("transaction: settlements of every kind, committed and rolled back", () -> {
            String q = queue();
            send(q, message("complete"), message("dead-letter"), message("defer"), message("kept"));
            try (ServiceBusReceiverClient r = client.receiver(q)) {
                List<ServiceBusReceivedMessage> got = take(r, 4);
                ServiceBusTransactionContext tx = r.createTransaction();
                r.complete(got.get(0), new CompleteOptions().setTransactionContext(tx));
                r.deadLetter(got.get(1), new DeadLetterOptions().setDeadLetterReason("r").setTransactionContext(tx));
                r.defer(got.get(2), new DeferOptions().setTransactionContext(tx));
                Harness.equal(counts(q), List.of(4, 4, 0, 0), "counts before the commit");
                r.commitTransaction(tx);
                Harness.equal(counts(q), List.of(3, 2, 1, 0), "counts after the commit");
                Harness.equal(r.receiveDeferredMessage(got.get(2).getSequenceNumber()).getBody().toString(), "defer", "deferred");
                ServiceBusTransactionContext undone = r.createTransaction();
                r.complete(got.get(3), new CompleteOptions().setTransactionContext(undone));
                r.rollbackTransaction(undone);
                Harness.equal(counts(q).get(0), 3, "left after the rollback");
            }
        });

        harness.check("transaction: scheduled sends", () -> {
            String q = queue();
            try (ServiceBusSenderClient s = client.sender(q)) {
                ServiceBusTransactionContext undone = s.createTransaction();
                s.scheduleMessage(message("never"), later(3600), undone);
                s.rollbackTransaction(undone);
                Harness.equal(counts(q).get(3), 0, "scheduled");
                ServiceBusTransactionContext tx = s.createTransaction();
                s.scheduleMessage(message("later"), later(3600), tx);
                s.commitTransaction(tx);
                Harness.equal(counts(q).get(3), 1, "scheduled");
            }
        });

        harness.check("transaction over two queues", () -> {
            String from = queue();
            String to = queue();
            send(from, message("moved"), message("stays"));
            Connected crossing = new Connected(builder(SECURE).enableCrossEntityTransactions());
            try (ServiceBusReceiverClient r = crossing.receiver(from); ServiceBusSenderClient s = crossing.sender(to)) {
                List<ServiceBusReceivedMessage> got = take(r, 2);
                ServiceBusTransactionContext tx = r.createTransaction();
                r.complete(got.get(0), new CompleteOptions().setTransactionContext(tx));
                s.sendMessage(message("moved"), tx);
                Harness.equal(counts(to).get(0), 0, "at the target before the commit");
                r.commitTransaction(tx);
                Harness.eventually(() -> Harness.equal(counts(to).get(0), 1, "at the target after the commit"));
                Harness.equal(counts(from).get(0), 1, "at the source after the commit");
                ServiceBusTransactionContext undone = r.createTransaction();
                r.complete(got.get(1), new CompleteOptions().setTransactionContext(undone));
                s.sendMessage(message("never"), undone);
                r.rollbackTransaction(undone);
                Harness.equal(List.of(counts(from).get(0), counts(to).get(0)), List.of(1, 1), "after the rollback");
            }
        });

        harness.check("transaction: no effect after its commit", () -> {
            String q = queue();
            try (ServiceBusSenderClient s = client.sender(q)) {
                ServiceBusTransactionContext tx = s.createTransaction();
                s.sendMessage(message("1"), tx);
                s.commitTransaction(tx);
                s.sendMessage(message("2"), tx); // refused, which this SDK does not report
            }
            Harness.equal(counts(q).get(0), 1, "messages");
        });
    }

    // --- sessions ----------------------------------------------------------------------------

    static void sessions() {
        harness.check("a named session: its messages alone, in order; held it is refused", () -> {
            String q = queue(withSessions());
            send(q, inSession("a", "1"), inSession("b", "2"), inSession("a", "3"));
            try (ServiceBusSessionReceiverClient sessions = client.sessions(q); ServiceBusReceiverClient r = sessions.acceptSession("a")) {
                Harness.equal(r.getSessionId(), "a", "session");
                List<ServiceBusReceivedMessage> got = take(r, 2);
                Harness.equal(bodies(got), List.of("1", "3"), "bodies");
                got.forEach(r::complete);
                try (ServiceBusSessionReceiverClient other = new Connected(builder(SECURE)).sessions(q)) {
                    AmqpException e = Harness.fails(AmqpException.class, () -> other.acceptSession("a"));
                    Harness.isTrue(e.getMessage().startsWith("The requested session 'a' cannot be accepted."), e.getMessage());
                }
            }
            try (ServiceBusSessionReceiverClient sessions = again(q); ServiceBusReceiverClient r = sessions.acceptSession("a")) {
                Harness.equal(r.getSessionId(), "a", "session");
            }
        });

        harness.check("the next available session; none left is a timeout", () -> {
            String q = queue(withSessions());
            send(q, inSession("a", "1"), inSession("b", "2"));
            try (ServiceBusSessionReceiverClient sessions = client.sessions(q);
                ServiceBusReceiverClient one = sessions.acceptNextSession(); ServiceBusReceiverClient two = sessions.acceptNextSession()) {
                Harness.equal(new TreeSet<>(List.of(one.getSessionId(), two.getSessionId())), new TreeSet<>(Set.of("a", "b")), "sessions");
                Connected impatient = new Connected(builder(SECURE).retryOptions(new AmqpRetryOptions().setMaxRetries(0).setTryTimeout(Duration.ofSeconds(3))));
                try (ServiceBusSessionReceiverClient other = impatient.sessions(q)) {
                    long start = System.nanoTime();
                    RuntimeException e = Harness.fails(RuntimeException.class, other::acceptNextSession);
                    Harness.isTrue(Duration.ofNanos(System.nanoTime() - start).toSeconds() < 15, "took too long: " + e);
                }
            }
        });

        harness.check("session state: none, set, get, after close, cleared", () -> {
            String q = queue(withSessions());
            byte[] state = "\0state".getBytes(StandardCharsets.UTF_8);
            try (ServiceBusSessionReceiverClient sessions = client.sessions(q); ServiceBusReceiverClient r = sessions.acceptSession("s")) {
                Harness.equal(r.getSessionState(), null, "state");
                r.setSessionState(state);
                Harness.isTrue(Arrays.equals(r.getSessionState(), state), "state differs");
            }
            try (ServiceBusSessionReceiverClient sessions = again(q); ServiceBusReceiverClient r = sessions.acceptSession("s")) {
                Harness.isTrue(Arrays.equals(r.getSessionState(), state), "state differs after close");
                r.setSessionState(null);
                Harness.equal(r.getSessionState(), null, "state");
            }
        });

        harness.check("renew a session's lock, then lose it", () -> {
            String q = queue(withSessions().setLockDuration(Duration.ofSeconds(5)));
            send(q, inSession("s", "x"));
            try (ServiceBusSessionReceiverClient sessions = client.sessions(q); ServiceBusReceiverClient r = sessions.acceptSession("s")) {
                ServiceBusReceivedMessage m = one(r);
                Thread.sleep(3_000);
                OffsetDateTime until = r.renewSessionLock();
                Harness.isTrue(until.isAfter(later(3)), "until " + until);
                Thread.sleep(7_000);
                Harness.fails(RuntimeException.class, () -> r.setSessionState(new byte[] {1}));
                Harness.fails(RuntimeException.class, () -> r.complete(m));
            }
            try (ServiceBusSessionReceiverClient sessions = again(q); ServiceBusReceiverClient r = sessions.acceptSession("s")) {
                Harness.equal(one(r).getDeliveryCount(), 1L, "delivery count");
            }
        });

        harness.check("sessions: peek, defer, dead-letter; the dead letter is read without a session", () -> {
            String q = queue(withSessions());
            send(q, inSession("s", "1"), inSession("s", "2"), inSession("t", "3"));
            try (ServiceBusSessionReceiverClient sessions = client.sessions(q); ServiceBusReceiverClient r = sessions.acceptSession("s"); ServiceBusReceiverClient dlq = client.deadLetters(q)) {
                Harness.equal(bodies(list(r.peekMessages(10))), List.of("1", "2"), "peeked");
                List<ServiceBusReceivedMessage> got = take(r, 2);
                r.defer(got.get(0));
                r.deadLetter(got.get(1), new DeadLetterOptions().setDeadLetterReason("r").setDeadLetterErrorDescription("d"));
                ServiceBusReceivedMessage deferred = r.receiveDeferredMessage(got.get(0).getSequenceNumber());
                Harness.equal(deferred.getBody().toString(), "1", "deferred");
                r.complete(deferred);
                ServiceBusReceivedMessage dead = one(dlq);
                Harness.equal(List.of(dead.getBody().toString(), dead.getSessionId(), dead.getDeadLetterReason()), List.of("2", "s", "r"), "dead letter");
            }
        });

        harness.check("a session entity refuses messages without a session", () -> {
            String q = queue(withSessions());
            RuntimeException e = Harness.fails(RuntimeException.class, () -> send(q, message("x")));
            Harness.isTrue(e.getMessage().contains("SessionId was not set"), "expected 'SessionId was not set', got " + e.getMessage());
        });
    }

    // --- topics, rules, errors, transports ---------------------------------------------------

    static void topics() {
        harness.check("SQL and correlation rules, with actions", () -> {
            String t = topic();
            CreateRuleOptions large = new CreateRuleOptions(new SqlRuleFilter("quantity > 10 AND sys.Label LIKE 'order%'"))
                .setAction(new SqlRuleAction("SET sys.Label = 'large'; SET seen = quantity + 1; REMOVE secret"));
            CorrelationRuleFilter red = new CorrelationRuleFilter().setCorrelationId("c");
            red.getProperties().put("colour", "red");
            admin.createSubscription(t, "sql", "large", new CreateSubscriptionOptions(), large);
            admin.createSubscription(t, "correlation", "red", new CreateSubscriptionOptions(), new CreateRuleOptions(red));
            try (ServiceBusSenderClient s = client.topicSender(t)) {
                s.sendMessage(with(message("1").setSubject("order 1"), Map.of("quantity", 20, "secret", "s")));
                s.sendMessage(with(message("2").setSubject("order 2"), Map.of("quantity", 5)));
                s.sendMessage(with(message("3").setCorrelationId("c"), Map.of("colour", "red")));
                s.sendMessage(with(message("4").setCorrelationId("c"), Map.of("colour", "blue")));
            }
            try (ServiceBusReceiverClient r = client.receiver(t, "sql", SubQueue.NONE)) {
                ServiceBusReceivedMessage m = one(r);
                Harness.equal(List.of(m.getBody().toString(), m.getSubject()), List.of("1", "large"), "message");
                Harness.equal(((Number) m.getApplicationProperties().get("seen")).longValue(), 21L, "seen");
                Harness.equal(m.getApplicationProperties().get("secret"), null, "secret");
                r.deadLetter(m, new DeadLetterOptions().setDeadLetterReason("why"));
                none(r);
            }
            try (ServiceBusReceiverClient r = client.receiver(t, "sql", SubQueue.DEAD_LETTER_QUEUE)) {
                Harness.equal(one(r).getDeadLetterReason(), "why", "reason");
            }
            try (ServiceBusReceiverClient r = client.receiver(t, "correlation", SubQueue.NONE)) {
                Harness.equal(one(r).getBody().toString(), "3", "body");
                none(r);
            }
        });

        harness.check("rules over AMQP: create, list, delete", () -> {
            String t = topic("s");
            try (ServiceBusRuleManagerClient rules = builder(SECURE).ruleManager().topicName(t).subscriptionName("s").buildClient()) {
                rules.createRule("sql", new CreateRuleOptions(new SqlRuleFilter("a = 1")).setAction(new SqlRuleAction("SET b = 2")));
                CorrelationRuleFilter correlation = new CorrelationRuleFilter().setLabel("x");
                correlation.getProperties().put("n", 5);
                rules.createRule("correlation", new CreateRuleOptions(correlation));
                Map<String, RuleProperties> listed = list(rules.listRules()).stream().collect(Collectors.toMap(RuleProperties::getName, p -> p));
                Harness.equal(new TreeSet<>(listed.keySet()), new TreeSet<>(Set.of("$Default", "correlation", "sql")), "rules");
                Harness.equal(((SqlRuleFilter) listed.get("sql").getFilter()).getSqlExpression(), "a = 1", "filter");
                Harness.equal(((SqlRuleAction) listed.get("sql").getAction()).getSqlExpression(), "SET b = 2", "action");
                Harness.equal(((CorrelationRuleFilter) listed.get("correlation").getFilter()).getLabel(), "x", "label");
                Harness.equal(((CorrelationRuleFilter) listed.get("correlation").getFilter()).getProperties().get("n"), "5", "property, which this SDK gives back as a string");
                fails(ServiceBusFailureReason.MESSAGING_ENTITY_ALREADY_EXISTS, () -> rules.createRule("sql", new CreateRuleOptions(new SqlRuleFilter("a = 2"))));
                rules.deleteRule("$Default");
                fails(ServiceBusFailureReason.MESSAGING_ENTITY_NOT_FOUND, () -> rules.deleteRule("$Default"));
            }
        });
    }

    static ServiceBusMessage with(ServiceBusMessage m, Map<String, Object> properties) {
        m.getApplicationProperties().putAll(properties);
        return m;
    }

    static void errorsAndTransports() {
        harness.check("an entity that is not there", () -> {
            String missing = Harness.unique("missing");
            Connected once = new Connected(builder(SECURE).retryOptions(new AmqpRetryOptions().setMaxRetries(0)));
            try (ServiceBusSenderClient s = once.sender(missing)) {
                fails(ServiceBusFailureReason.MESSAGING_ENTITY_NOT_FOUND, () -> s.sendMessage(message("x")));
            }
        });

        harness.check("an entity that is disabled", () -> {
            String q = queue();
            admin.updateQueue(admin.getQueue(q).setStatus(EntityStatus.DISABLED));
            Connected once = new Connected(builder(SECURE).retryOptions(new AmqpRetryOptions().setMaxRetries(0)));
            try (ServiceBusSenderClient s = once.sender(q)) {
                fails(ServiceBusFailureReason.MESSAGING_ENTITY_DISABLED, () -> s.sendMessage(message("x")));
            }
        });

        harness.check("keys that may only send, or only listen, and a wrong one", () -> {
            String q = queue();
            AmqpRetryOptions never = new AmqpRetryOptions().setMaxRetries(0);
            try (ServiceBusSenderClient s = new Connected(builder(SEND_ONLY).retryOptions(never)).sender(q)) {
                s.sendMessage(message("x"));
            }
            try (ServiceBusSenderClient s = new Connected(builder(LISTEN_ONLY).retryOptions(never)).sender(q)) {
                fails(ServiceBusFailureReason.UNAUTHORIZED, () -> s.sendMessage(message("x")));
            }
            try (ServiceBusReceiverClient r = new Connected(builder(LISTEN_ONLY).retryOptions(never)).receiver(q)) {
                one(r);
            }
            String wrong = SECURE.replaceAll("SharedAccessKey=[^;]*", "SharedAccessKey=d3Jvbmc=");
            try (ServiceBusSenderClient s = new Connected(builder(wrong).retryOptions(never)).sender(q)) {
                fails(ServiceBusFailureReason.UNAUTHORIZED, () -> s.sendMessage(message("x")));
            }
        });

        harness.check("over WebSocket", () -> {
            String q = queue();
            byte[] big = new byte[100_000];
            Connected c = new Connected(builder(SECURE).transportType(AmqpTransportType.AMQP_WEB_SOCKETS));
            try (ServiceBusSenderClient s = c.sender(q); ServiceBusReceiverClient r = c.receiver(q)) {
                s.sendMessage(new ServiceBusMessage(big));
                s.sendMessage(message("second"));
                List<ServiceBusReceivedMessage> got = take(r, 2);
                Harness.equal(got.get(0).getBody().toBytes().length, big.length, "bytes");
                r.complete(got.get(0));
                r.deadLetter(got.get(1));
            }
            Harness.equal(counts(q), List.of(1, 0, 1, 0), "counts");
        });

        harness.check("without TLS, as to the official emulator", () -> {
            String q = System.getenv("SERVICEBUS_PLAIN_QUEUE");
            Connected c = new Connected(builder(PLAIN));
            try (ServiceBusSenderClient s = c.sender(q); ServiceBusReceiverClient r = c.receiver(q)) {
                s.sendMessage(message("from Java"));
                ServiceBusReceivedMessage m = one(r);
                Harness.equal(m.getBody().toString(), "from Java", "body");
                r.complete(m);
            }
        });
    }

    // --- administration ----------------------------------------------------------------------

    static void administrationChecks() {
        harness.check("admin: namespace", () -> Harness.isTrue(!admin.getNamespaceProperties().getName().isEmpty(), "no name"));

        harness.check("admin: queue, whole life", () -> {
            String name = Harness.unique("q");
            Harness.equal(admin.getQueueExists(name), false, "exists");
            admin.createQueue(name, new CreateQueueOptions().setLockDuration(Duration.ofSeconds(45)).setMaxSizeInMegabytes(2048).setDuplicateDetectionRequired(true)
                .setSessionRequired(true).setDefaultMessageTimeToLive(Duration.ofHours(76)).setDeadLetteringOnMessageExpiration(true)
                .setDuplicateDetectionHistoryTimeWindow(Duration.ofMinutes(1)).setMaxDeliveryCount(7).setBatchedOperationsEnabled(false)
                .setUserMetadata("mine <&> \"quoted\"").setAutoDeleteOnIdle(Duration.ofHours(6)));
            QueueProperties p = admin.getQueue(name);
            Harness.equal(
                List.of(p.getName(), p.getLockDuration(), p.getMaxSizeInMegabytes(), p.isDuplicateDetectionRequired(), p.isSessionRequired(), p.getDefaultMessageTimeToLive(), p.isDeadLetteringOnMessageExpiration(), p.getDuplicateDetectionHistoryTimeWindow(), p.getMaxDeliveryCount(), p.isBatchedOperationsEnabled(), p.getUserMetadata(), p.getAutoDeleteOnIdle(), p.getStatus()),
                List.of(name, Duration.ofSeconds(45), 2048L, true, true, Duration.ofHours(76), true, Duration.ofMinutes(1), 7, false, "mine <&> \"quoted\"", Duration.ofHours(6), EntityStatus.ACTIVE),
                "properties");
            Harness.fails(ResourceExistsException.class, () -> admin.createQueue(name));
            QueueProperties updated = admin.updateQueue(p.setMaxDeliveryCount(9).setLockDuration(Duration.ofSeconds(20)));
            Harness.equal(List.of(updated.getMaxDeliveryCount(), updated.getLockDuration()), List.of(9, Duration.ofSeconds(20)), "updated");
            Harness.isTrue(admin.listQueues().stream().anyMatch(q -> q.getName().equals(name)), "not listed");
            Harness.equal(counts(name), List.of(0, 0, 0, 0), "counts");
            admin.deleteQueue(name);
            Harness.equal(admin.getQueueExists(name), false, "exists");
        });

        harness.check("admin: what is not there", () -> {
            String name = Harness.unique("missing");
            String t = topic("s");
            Harness.fails(ResourceNotFoundException.class, () -> admin.getQueue(name));
            Harness.fails(ResourceNotFoundException.class, () -> admin.deleteQueue(name));
            Harness.fails(ResourceNotFoundException.class, () -> admin.getTopic(name));
            Harness.fails(ResourceNotFoundException.class, () -> admin.getSubscription(t, "other"));
            Harness.fails(ResourceNotFoundException.class, () -> admin.getRule(t, "s", "other"));
            Harness.equal(admin.getSubscriptionExists(t, "s"), true, "exists");
            Harness.equal(admin.getSubscriptionExists(t, "other"), false, "exists");
        });

        harness.check("admin: topic and subscription, whole life", () -> {
            String t = Harness.unique("t");
            TopicProperties p = admin.createTopic(t, new CreateTopicOptions().setDefaultMessageTimeToLive(Duration.ofDays(1)).setUserMetadata("meta"));
            Harness.equal(List.of(p.getName(), p.getDefaultMessageTimeToLive(), p.getUserMetadata()), List.of(t, Duration.ofDays(1), "meta"), "topic");
            Harness.equal(admin.updateTopic(p.setUserMetadata("more")).getUserMetadata(), "more", "updated");
            SubscriptionProperties s = admin.createSubscription(t, "s", new CreateSubscriptionOptions().setLockDuration(Duration.ofSeconds(30)).setMaxDeliveryCount(4));
            Harness.equal(List.of(s.getTopicName(), s.getSubscriptionName(), s.getLockDuration(), s.getMaxDeliveryCount()), List.of(t, "s", Duration.ofSeconds(30), 4), "subscription");
            Harness.equal(admin.updateSubscription(s.setMaxDeliveryCount(5)).getMaxDeliveryCount(), 5, "updated");
            try (ServiceBusSenderClient sender = client.topicSender(t)) {
                sender.sendMessage(message("1"));
            }
            Harness.equal(admin.getSubscriptionRuntimeProperties(t, "s").getActiveMessageCount(), 1, "active");
            Harness.equal(admin.getTopicRuntimeProperties(t).getSubscriptionCount(), 1, "subscriptions");
            Harness.equal(admin.listSubscriptions(t).stream().map(SubscriptionProperties::getSubscriptionName).toList(), List.of("s"), "listed");
            admin.deleteSubscription(t, "s");
            admin.deleteTopic(t);
            Harness.equal(admin.getTopicExists(t), false, "exists");
        });

        harness.check("admin: rules with parameters", () -> {
            String t = topic("s");
            SqlRuleFilter filter = new SqlRuleFilter("a = @s OR b = @i");
            filter.getParameters().put("@s", "text");
            filter.getParameters().put("@i", 5);
            admin.createRule(t, "sql", "s", new CreateRuleOptions(filter).setAction(new SqlRuleAction("SET d = 'v'")));
            RuleProperties sql = admin.getRule(t, "s", "sql");
            Harness.equal(((SqlRuleFilter) sql.getFilter()).getSqlExpression(), "a = @s OR b = @i", "filter");
            Harness.equal(((SqlRuleFilter) sql.getFilter()).getParameters(), Map.of("@s", "text", "@i", "5"), "parameters, which this SDK gives back as strings");
            Harness.equal(((SqlRuleAction) sql.getAction()).getSqlExpression(), "SET d = 'v'", "action");
            Harness.equal(((SqlRuleFilter) admin.updateRule(t, "s", sql.setFilter(new SqlRuleFilter("z = 1"))).getFilter()).getSqlExpression(), "z = 1", "updated");
            Harness.equal(new TreeSet<>(admin.listRules(t, "s").stream().map(RuleProperties::getName).toList()), new TreeSet<>(Set.of("$Default", "sql")), "listed");
            admin.deleteRule(t, "s", "sql");
            HttpResponseException e = Harness.fails(HttpResponseException.class, () -> admin.createRule(t, "bad", "s", new CreateRuleOptions(new SqlRuleFilter("a = = 1"))));
            Harness.equal(e.getResponse().getStatusCode(), 400, "status");
        });
    }

    public static void main(String[] args) throws Exception {
        sendingAndReceiving();
        schedulingAndSettling();
        transactions();
        sessions();
        topics();
        errorsAndTransports();
        administrationChecks();
        boolean ok = harness.run("java", args.length > 0 ? args[0] : null);
        System.out.flush();
        Runtime.getRuntime().halt(ok ? 0 : 1);
    }
}
