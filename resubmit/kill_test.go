package resubmit_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"dlq/backends"
	"dlq/backends/broker"
	"dlq/backends/local"
	"dlq/backends/message"
	"dlq/resubmit"
)

// These tests kill a real process with kill -9 in the middle of a resubmit of 5,000 messages,
// resume the job in the next one, kill that too, and in the end hold the report against what is
// in the queues. Once with the atomic move of the local backend, and once with that hidden, so
// that messages are sent and then completed.

const (
	// killLock is short, since a resume waits for the locks of the dead.
	killLock = 250 * time.Millisecond

	maxJobs = 60

	childVariable = "DLQ_TEST_KILL_CHILD" // JSON of childTask: be the process that is killed
)

// childTask is what the child process is to do.
type childTask struct {
	Dir  string // holds the data, and the journals
	Core bool   // hide everything but the core interface
	Job  string // to resume; "": a new one
}

// coreOnly is a backend that shows nothing but the core interface, and whose acknowledgements
// take their time, as they do over a network.
type coreOnly struct{ backends.Backend }

func (b coreOnly) Send(ctx context.Context, id backends.EntityID, msgs []*message.Message) error {
	err := b.Backend.Send(ctx, id, msgs)
	time.Sleep(3 * time.Millisecond)
	return err
}

func TestMain(m *testing.M) {
	if task := os.Getenv(childVariable); task != "" {
		if err := beChild(task); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var (
	killSource = backends.EntityID{Name: "orders", Sub: backends.DeadLetterQueue}
	killTarget = backends.EntityID{Name: "orders-retry"}
)

// kills is how many a test makes, and killMessages how many messages a job has: fewer with
// -short, as the race detector gets it.
func kills() int { return unlessShort(200, 6) }

func killMessages() int { return unlessShort(5_000, 1_000) }

func unlessShort(usual, short int) int {
	if testing.Short() {
		return short
	}
	return usual
}

func openKilled(ctx context.Context, task childTask) (*local.Backend, resubmit.Env, error) {
	b, err := local.Open(ctx, local.Options{Dir: filepath.Join(task.Dir, "data"), Command: "test"})
	if err != nil {
		return nil, resubmit.Env{}, err
	}
	journals, err := resubmit.OpenJournals(filepath.Join(task.Dir, "plans"), nil)
	if err != nil {
		return nil, resubmit.Env{}, errors.Join(err, b.Close())
	}
	env := resubmit.Env{Backend: b, Journals: journals, Conn: "local:test"}
	if task.Core {
		env.Backend = coreOnly{b}
	}
	// A resume waits for a lock's time and a margin for clocks that differ. Here is one clock.
	env.Sleep = func(ctx context.Context, d time.Duration) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(d, killLock+20*time.Millisecond)):
			return nil
		}
	}
	return b, env, nil
}

// beChild runs or resumes the job, and says a line after each batch.
func beChild(text string) error {
	var task childTask
	if err := json.Unmarshal([]byte(text), &task); err != nil {
		return err
	}
	ctx := context.Background()
	b, env, err := openKilled(ctx, task)
	if err != nil {
		return err
	}
	progress := func(p resubmit.Progress) { fmt.Println(p.Job, p.Done) }
	if task.Job != "" {
		_, err = resubmit.Resume(ctx, env, task.Job, progress)
		return errors.Join(err, b.Close())
	}
	spec := resubmit.Spec{Kind: resubmit.Resubmit, From: killSource, To: &killTarget, Selection: resubmit.Selection{All: true}}
	plan, err := resubmit.NewPlan(ctx, env, spec)
	if err == nil {
		_, err = resubmit.Run(ctx, env, plan, progress)
	}
	return errors.Join(err, b.Close())
}

func TestKillAtomic(t *testing.T) {
	t.Parallel()
	total := killUntil(t, false)
	if total.uncertain > 0 {
		t.Errorf("the atomic move left %d messages possibly twice", total.uncertain)
	}
}

func TestKillCoreOnly(t *testing.T) {
	t.Parallel()
	total := killUntil(t, true)
	if total.uncertain == 0 {
		t.Error("no kill left a message possibly twice: the kills came at the wrong moments to show anything")
	}
}

type killTotal struct{ jobs, kills, resumed, uncertain, twice int }

// killUntil resubmits 5,000 messages as often as it takes for all the kills.
func killUntil(t *testing.T, core bool) killTotal {
	seed := uint64(time.Now().UnixNano())
	rnd := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d; where exactly a kill hits does not repeat", seed)
	var total killTotal
	// With few kills it is chance whether one hits between sending and noting: go on a while.
	enough := func() bool { return total.kills >= kills() && (!core || total.uncertain > 0) }
	for !enough() && total.jobs < maxJobs && !t.Failed() {
		killJob(t, rnd, core, &total)
	}
	if total.resumed == 0 {
		t.Error("no resume had anything left to do")
	}
	t.Logf("%+v", total)
	return total
}

// killJob runs one job to its end through as many kills as hit it.
func killJob(t *testing.T, rnd *rand.Rand, core bool, total *killTotal) {
	task := childTask{Dir: t.TempDir(), Core: core}
	fillDeadLetters(t, task)
	total.jobs++
	for {
		batches := 2 + rnd.IntN(6) // the first takes the opening of the data, too
		if total.kills >= kills() && (!core || task.Job != "") {
			batches = 0 // let it end
		}
		job, killed, before := runChild(t, task, batches, rnd.Float64())
		if t.Failed() {
			return
		}
		if task.Job != "" && before > 0 {
			total.resumed++
		}
		if !killed {
			break
		}
		total.kills++
		task.Job = job
	}
	checkKilled(t, task, total)
}

// runChild starts the child and kills it after so many batches (0: never) and part of the time
// that the last one took, so that the kill hits something in flight on every machine. It returns
// the job and how many messages were done when the child first said so.
func runChild(t *testing.T, task childTask, batches int, part float64) (job string, killed bool, before int) {
	text, err := json.Marshal(task)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	last, took := time.Now(), time.Duration(0)
	for n := 1; lines.Scan(); n++ {
		var done int
		if _, err := fmt.Sscan(lines.Text(), &job, &done); err != nil {
			t.Errorf("the child said %q", lines.Text())
		}
		if n == 1 {
			before = done
		}
		took, last = time.Since(last), time.Now()
		if n == batches {
			time.AfterFunc(time.Duration(part*float64(took)), func() { _ = cmd.Process.Kill() })
		}
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == -1 { // by a signal: ours
		return job, true, before
	}
	if err != nil {
		t.Errorf("the child failed by itself: %v", err)
	}
	return job, false, before
}

func fillDeadLetters(t *testing.T, task childTask) {
	b, _, err := openKilled(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{killSource.Name, killTarget.Name} {
		p := broker.Defaults(broker.Queue, broker.ServiceBus)
		p.LockDuration = killLock
		if err := b.CreateQueueWith(t.Context(), name, p); err != nil {
			t.Fatal(err)
		}
	}
	for n := 0; n < killMessages(); n += 500 {
		var msgs []*message.Message
		var seqs []int64
		for i := n; i < n+500; i++ {
			msgs = append(msgs, &message.Message{ID: message.String(strconv.Itoa(i)), Body: message.DataBody(fmt.Appendf(nil, `{"order":%d}`, i))})
			seqs = append(seqs, int64(i)+1)
		}
		if err := b.Send(t.Context(), killSource.MainQueue(), msgs); err != nil {
			t.Fatal(err)
		}
		dead := backends.Outcome{Action: backends.DeadLetter, Reason: "Test", Description: "made to die"}
		if err := b.SettleDirect(t.Context(), killSource.MainQueue(), dead, seqs...); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

// checkKilled holds the report of the job against the queues, message by message.
func checkKilled(t *testing.T, task childTask, total *killTotal) {
	b, env, err := openKilled(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	jobs, err := env.Journals.List()
	if err != nil || len(jobs) != 1 {
		t.Fatalf("%d jobs, want 1; %v", len(jobs), err)
	}
	job, err := env.Journals.Job(jobs[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	r := job.Report
	left, arrived := idsIn(t, b, killSource), idsIn(t, b, killTarget)
	uncertain := map[string]bool{}
	for _, item := range r.Uncertain {
		uncertain[item.ID] = true
	}
	moved := 0
	for i := range killMessages() {
		id := strconv.Itoa(i)
		switch {
		case left[id]+arrived[id] == 0:
			t.Errorf("message %s is lost", id)
		case left[id] > 1 || arrived[id] > 1:
			t.Errorf("message %s is there %d times and was sent %d times", id, left[id], arrived[id])
		case uncertain[id] != (left[id] == 1):
			t.Errorf("message %s: possibly twice is reported %v; it is at the source %d times and at the destination %d times", id, uncertain[id], left[id], arrived[id])
		case left[id] == 0:
			moved++
		case arrived[id] == 1:
			total.twice++
		}
	}
	total.uncertain += len(r.Uncertain)
	if r.Matched != int64(killMessages()) || r.Done != int64(moved) || r.Lost != 0 || r.Left != 0 || len(r.Skipped)+len(r.Failed) > 0 {
		t.Errorf("the report says %d matched, %d done, %d left, %d lost, %d skipped, %d failed; %d were moved",
			r.Matched, r.Done, r.Left, r.Lost, len(r.Skipped), len(r.Failed), moved)
	}
}

func idsIn(t *testing.T, b *local.Backend, id backends.EntityID) map[string]int {
	ids := map[string]int{}
	for m, err := range b.Peek(t.Context(), id, backends.PeekOptions{NoBody: true}) {
		if err != nil {
			t.Fatal(err)
		}
		ids[message.FormatValue(m.ID)]++
	}
	return ids
}
