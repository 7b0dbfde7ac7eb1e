package local

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"dlq/backends"
	"dlq/backends/message"
)

// childVariable makes the test binary a process of its own: "own DIR" owns a directory and
// stays, "hold DIR" holds all messages of the queue under a lease.
const childVariable = "DLQ_TEST_LOCAL_CHILD"

var shared = backends.EntityID{Name: "shared"}

func TestMain(m *testing.M) {
	what, dir, ok := strings.Cut(os.Getenv(childVariable), " ")
	if !ok {
		os.Exit(m.Run())
	}
	if err := beChild(what, dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// beChild says a line when it is ready, and stays until it is killed or its input ends.
func beChild(what, dir string) error {
	ctx := context.Background()
	b, err := Connect(ctx, Options{Dir: dir, Command: "child", Stay: what == "own"})
	if err != nil {
		return err
	}
	if what == "hold" {
		l, err := b.Lease(ctx, shared, backends.LeaseOptions{})
		if err != nil {
			return err
		}
		for err == nil {
			_, err = l.Next(ctx)
		}
		if !errors.Is(err, io.EOF) {
			return err
		}
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return b.Close()
}

// child starts such a process and waits until it is ready. stop kills it, or lets it end by
// itself.
func child(t testing.TB, what, dir string) (stop func(kill bool)) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), childVariable+"="+what+" "+dir)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	stop = func(kill bool) {
		once.Do(func() {
			if kill {
				_ = c.Process.Kill()
			}
			_ = in.Close()
			_ = c.Wait()
		})
	}
	t.Cleanup(func() { stop(true) })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the other process: %q, %v", line, err)
	}
	return stop
}

// owned is a directory with an owner in this process, which stays.
func owned(t testing.TB, o Options) *Backend {
	t.Helper()
	o.Stay = true
	b, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// through reaches the owner of a directory.
func through(t testing.TB, o Options) *connection {
	t.Helper()
	b, err := Connect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	c, ok := b.(*connection)
	if !ok {
		t.Fatalf("connected to a %T, want the socket of the owner", b)
	}
	return c
}

func text(body string) *message.Message {
	return &message.Message{Body: message.DataBody([]byte(body))}
}

func send(t testing.TB, b backends.Backend, n int) {
	t.Helper()
	msgs := make([]*message.Message, n)
	for i := range msgs {
		msgs[i] = text(fmt.Sprint("message ", i))
	}
	if err := b.Send(t.Context(), shared, msgs); err != nil {
		t.Fatal(err)
	}
}

func count(t testing.TB, b backends.Backend) (n int) {
	t.Helper()
	for _, err := range b.(backends.Peeker).Peek(t.Context(), shared, backends.PeekOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// soon waits for what another goroutine or process is about to do.
func soon(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 20 s", what)
		}
	}
}

// TestSocketIsPrivateAndReplaced: what a dead owner left behind goes, and only the user may
// connect.
func TestSocketIsPrivateAndReplaced(t *testing.T) {
	dir := shortDir(t)
	path := filepath.Join(dir, socketFile)
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	b := owned(t, Options{Dir: dir})
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the socket has mode %v, want 0600", info.Mode().Perm())
	}
	if err := through(t, Options{Dir: dir}).CreateQueue(t.Context(), "q"); err != nil {
		t.Error(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after the owner closed there is still a socket: %v", err)
	}
}

// shortDir is a directory in which a socket's address is not too long.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "dlq")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// TestSocketOfALongPath: an address that no socket can have is no obstacle.
func TestSocketOfALongPath(t *testing.T) {
	dir := filepath.Join(shortDir(t), strings.Repeat("long-", 20), strings.Repeat("longer-", 20))
	b := owned(t, Options{Dir: dir})
	if err := through(t, Options{Dir: dir}).CreateQueue(t.Context(), "q"); err != nil {
		t.Error(err)
	}
	elsewhere := filepath.Dir(b.others.self.Socket)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(elsewhere); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left behind: %v", elsewhere, err)
	}
}

// TestOwnerLeaves: who worked through an owner that has ended goes on as the owner, or through
// the next one; only leases and calls underway are lost.
func TestOwnerLeaves(t *testing.T) {
	for _, kill := range []bool{false, true} {
		t.Run(fmt.Sprintf("kill=%v", kill), func(t *testing.T) {
			dir := t.TempDir()
			stop := child(t, "own", dir)
			first := through(t, Options{Dir: dir, Command: "first", Stay: true})
			second := through(t, Options{Dir: dir, Command: "second"})
			if err := first.CreateQueue(t.Context(), shared.Name); err != nil {
				t.Fatal(err)
			}
			send(t, second, 3)
			l, err := first.Lease(t.Context(), shared, backends.LeaseOptions{})
			if err != nil {
				t.Fatal(err)
			}
			m, err := l.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			stop(kill)
			if n := count(t, first); n != 3 {
				t.Errorf("the next call sees %d messages, want 3", n)
			}
			if first.at != nil {
				t.Error("who made the next call is not the owner")
			}
			if err := l.Settle(t.Context(), backends.Outcome{Action: backends.Complete}, m); !backends.IsCode(err, backends.Unavailable) {
				t.Errorf("settling in a lease of the owner that ended: %v, want unavailable", err)
			}
			if err := l.Release(t.Context()); err != nil {
				t.Errorf("releasing it: %v", err)
			}
			send(t, second, 1)
			if second.at == nil {
				t.Error("there are two owners")
			}
			if n := count(t, second); n != 4 {
				t.Errorf("the other one sees %d messages, want 4", n)
			}
		})
	}
}

// TestOwnerKilledWhileSending: what was acknowledged is there, what was not may be, and the
// error of the latter says which it is.
func TestOwnerKilledWhileSending(t *testing.T) {
	dir := t.TempDir()
	stop := child(t, "own", dir)
	c := through(t, Options{Dir: dir})
	if err := c.CreateQueue(t.Context(), shared.Name); err != nil {
		t.Fatal(err)
	}
	acknowledged, uncertain := 0, 0
	for acknowledged < 2000 {
		if acknowledged == 20 {
			go stop(true)
		}
		err := c.Send(t.Context(), shared, []*message.Message{text("x")})
		code, coded := backends.CodeOf(err)
		switch {
		case err == nil:
			acknowledged++
		case coded && code == backends.Unknown:
			uncertain++
		default:
			t.Fatalf("a send when the owner was killed: %v", err)
		}
		if c.at == nil { // this process is the owner now
			break
		}
	}
	if n := count(t, c); n < acknowledged || n > acknowledged+uncertain {
		t.Errorf("%d messages are there, %d were acknowledged and %d uncertain", n, acknowledged, uncertain)
	}
}

// TestClientKilledWithLease: the locks of a dead process are free at once, not when they
// expire.
func TestClientKilledWithLease(t *testing.T) {
	dir := t.TempDir()
	b := owned(t, Options{Dir: dir})
	if err := b.CreateQueue(t.Context(), shared.Name); err != nil {
		t.Fatal(err)
	}
	send(t, b, 500)
	stop := child(t, "hold", dir)
	if n := receivable(t, b); n != 0 {
		t.Fatalf("%d messages are free, the other process holds all", n)
	}
	stop(true)
	soon(t, "the locks of the dead", func() bool { return receivable(t, b) == 500 })
	soon(t, "the end of its lease", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.leases) == 0
	})
}

func receivable(t testing.TB, b backends.Backend) (n int) {
	t.Helper()
	l, err := b.Lease(t.Context(), shared, backends.LeaseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Release(context.Background()) }()
	for {
		if _, err := l.Next(t.Context()); err != nil {
			return n
		}
		n++
	}
}

// cancelConn cancels a call in the moment in which the end of its answer arrives.
type cancelConn struct {
	net.Conn
	answer io.Reader
	cancel context.CancelFunc
}

func (c *cancelConn) Write(b []byte) (int, error) { return len(b), nil }

func (c *cancelConn) Read(b []byte) (int, error) {
	n, err := c.answer.Read(b)
	c.cancel()
	return n, err
}

// TestCanceledAsTheAnswerArrives: the connection is not used again, because its deadline is set on
// another goroutine, at any moment; the answer counts.
func TestCanceledAsTheAnswerArrives(t *testing.T) {
	frame, err := encode(&reply{})
	if err != nil {
		t.Fatal(err)
	}
	var answer bytes.Buffer
	if err := (&wire{out: bufio.NewWriter(&answer)}).send(replyFrame, frame); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		ctx, cancel := context.WithCancel(t.Context())
		w := newWire(&cancelConn{Conn: ours, answer: bytes.NewReader(answer.Bytes()), cancel: cancel})
		c := &client{open: map[*wire]struct{}{w: {}}}
		kept, _, err := c.exchange(ctx, w, &request{}, nil, func(reply) bool { return true })
		if err != nil || kept != nil {
			t.Fatalf("got connection %v and error %v, want neither", kept, err)
		}
		if len(c.open) != 0 {
			t.Fatal("the connection is still open")
		}
	}
}
