import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;

/** The little that the checks share: entities of their own, a deadline each, and a plain report. */
final class Harness {
    private static final int DEADLINE_SECONDS = 60;
    private static final int AT_ONCE = 12;

    private static final AtomicInteger SERIAL = new AtomicInteger();

    private final List<Check> checks = new ArrayList<>();

    interface Body {
        void run() throws Exception;
    }

    private record Check(String name, Body body) {}

    /** check adds a check, which passes when it ends without throwing. */
    void check(String name, Body body) {
        checks.add(new Check(name, body));
    }

    /** unique makes a name that nothing else on this server has. */
    static String unique(String prefix) {
        return prefix + "-java-" + ProcessHandle.current().pid() + "-" + SERIAL.incrementAndGet();
    }

    static void equal(Object got, Object want, String what) {
        if (!Objects.equals(got, want)) {
            throw new AssertionError(what + ": expected " + show(want) + ", got " + show(got));
        }
    }

    private static String show(Object o) {
        return o == null ? "null" : o + " (" + o.getClass().getSimpleName() + ")";
    }

    static void isTrue(boolean condition, String what) {
        if (!condition) {
            throw new AssertionError(what);
        }
    }

    /** fails asserts that body throws an error of the kind, and returns it. */
    static <T extends Throwable> T fails(Class<T> kind, Body body) {
        try {
            body.run();
        } catch (Throwable t) {
            if (kind.isInstance(t)) {
                return kind.cast(t);
            }
            throw new AssertionError("expected " + kind.getSimpleName() + ", got " + t, t);
        }
        throw new AssertionError("expected " + kind.getSimpleName() + ", got none");
    }

    /** eventually runs body until it no longer throws, for at most 15 seconds. */
    static void eventually(Body body) throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(15);
        while (true) {
            try {
                body.run();
                return;
            } catch (AssertionError e) {
                if (System.nanoTime() > end) {
                    throw e;
                }
                Thread.sleep(200);
            }
        }
    }

    /** run runs every check whose name contains the filter, prints each outcome, and says whether all passed. */
    boolean run(String language, String filter) throws InterruptedException {
        AtomicInteger passed = new AtomicInteger();
        AtomicInteger failed = new AtomicInteger();
        ExecutorService bodies = Executors.newCachedThreadPool(Harness::daemon);
        ExecutorService pool = Executors.newFixedThreadPool(AT_ONCE, Harness::daemon);
        for (Check c : checks) {
            if (filter == null || c.name.contains(filter)) {
                pool.execute(() -> {
                    String line = one(bodies, language, c);
                    (line.startsWith("ok") ? passed : failed).incrementAndGet();
                    System.out.println(line);
                });
            }
        }
        pool.shutdown();
        pool.awaitTermination(1, TimeUnit.HOURS);
        System.out.println(language + ": " + passed + " passed, " + failed + " failed");
        return failed.get() == 0;
    }

    private static String one(ExecutorService bodies, String language, Check c) {
        long start = System.nanoTime();
        Future<?> f = bodies.submit(() -> {
            c.body.run();
            return null;
        });
        try {
            f.get(DEADLINE_SECONDS, TimeUnit.SECONDS);
            return String.format("ok    %s %s (%.1f s)", language, c.name, (System.nanoTime() - start) / 1e9);
        } catch (TimeoutException e) {
            return "FAIL  " + language + " " + c.name + ": expected an end within " + DEADLINE_SECONDS + " s, got none";
        } catch (ExecutionException e) {
            Throwable t = e.getCause();
            if (System.getenv("DLQ_INTEROP_TRACE") != null) {
                t.printStackTrace();
            }
            String what = t instanceof AssertionError ? t.getMessage() : t.toString();
            return "FAIL  " + language + " " + c.name + ": " + what + " (line " + line(t) + ")";
        } catch (InterruptedException e) {
            return "FAIL  " + language + " " + c.name + ": interrupted";
        }
    }

    private static int line(Throwable t) {
        for (StackTraceElement e : t.getStackTrace()) {
            if ("Scenario.java".equals(e.getFileName())) {
                return e.getLineNumber();
            }
        }
        return 0;
    }

    private static Thread daemon(Runnable r) {
        Thread t = new Thread(r);
        t.setDaemon(true);
        return t;
    }
}
