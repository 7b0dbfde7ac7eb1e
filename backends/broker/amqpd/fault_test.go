package amqpd

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// strike runs operations past the faults and writes down what happened to each: "-" for nothing.
func strike(f *Faults, n int, op Op, entity string) string {
	out := make([]string, n)
	for i := range out {
		out[i] = "-"
		if fault, ok := f.Next(op, entity); ok {
			out[i] = fault.Kind.String()
			if fault.Delay > 0 {
				out[i] += "+" + fault.Delay.String()
			}
		}
	}
	return strings.Join(out, " ")
}

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		spec   string
		op     Op
		entity string
		want   string // what happens to six operations
	}{
		{"throttle=every:3", OpSend, "orders", "- - throttle - - throttle"},
		{"throttle=first:2", OpSend, "orders", "throttle throttle - - - -"},
		{"error=at:2", OpHTTP, "", "- error - - - -"},
		{"disconnect=always", OpManage, "orders", "disconnect disconnect disconnect disconnect disconnect disconnect"},
		{"throttle/send=always", OpReceive, "orders", "- - - - - -"},
		{"throttle/send=every:6", OpSend, "orders", "- - - - - throttle"},
		{"lock-lost=every:2", OpSettle, "orders", "- lock-lost - lock-lost - lock-lost"},
		{"lock-lost=always", OpSend, "orders", "- - - - - -"},
		{"duplicate=every:3", OpReceive, "orders", "- - duplicate - - duplicate"},
		{"duplicate=always", OpSettle, "orders", "- - - - - -"},
		{"detach=always", OpHTTP, "orders", "- - - - - -"},
		{"delay=200ms", OpSend, "orders", "delay+200ms delay+200ms delay+200ms delay+200ms delay+200ms delay+200ms"},
		{"delay=2s:at:3", OpSend, "orders", "- - delay+2s - - -"},
		{"throttle=every:2@ORDERS", OpSend, "orders", "- throttle - throttle - throttle"},
		{"throttle=every:2@orders", OpSend, "orders/$DeadLetterQueue", "- throttle - throttle - throttle"},
		{"throttle=always@orders", OpSend, "orders2", "- - - - - -"},
		{"throttle=always@orders", OpSend, "", "- - - - - -"},
		{"delay=1s:every:2, delay=2s:every:3, throttle=every:4, error=every:4", OpSend, "q", "- delay+1s delay+2s throttle+1s - delay+3s"},
		{"Throttle/Send=Every:2", OpSend, "orders", "- throttle - throttle - throttle"},
	} {
		t.Run(c.spec, func(t *testing.T) {
			f, err := ParseFaults(c.spec)
			if err != nil {
				t.Fatal(err)
			}
			if got := strike(f, 6, c.op, c.entity); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestNoFaults(t *testing.T) {
	var f *Faults
	if fault, ok := f.Next(OpSend, "orders"); ok {
		t.Error("a server without faults has one:", fault)
	}
}

// TestFaultsWithoutAKind: what a server cannot have happen neither hides what it can nor is counted.
func TestFaultsWithoutAKind(t *testing.T) {
	f, err := ParseFaults("duplicate=always,throttle=every:2,delay/receive=1s:at:3")
	if err != nil {
		t.Fatal(err)
	}
	const want = "- throttle delay+1s throttle"
	for range 2 { // each counts for itself
		if got := strike(f.Without(FaultDuplicate, FaultDetach), 4, OpReceive, "orders"); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	if got := strike(f, 2, OpReceive, "orders"); got != "duplicate duplicate" {
		t.Errorf("with all kinds: %s", got)
	}
	if (*Faults)(nil).Without(FaultDelay) != nil {
		t.Error("no faults have become some")
	}
}

// TestFaultPercentages: about as many as was said are hit, the same in every run, others with
// another seed.
func TestFaultPercentages(t *testing.T) {
	run := func(spec string) string {
		f, err := ParseFaults(spec)
		if err != nil {
			t.Fatal(err)
		}
		return strike(f, 10_000, OpSend, "orders")
	}
	first := run("throttle=10%")
	if n := strings.Count(first, "throttle"); n < 900 || n > 1100 {
		t.Errorf("10%% of 10,000 were %d", n)
	}
	if run("throttle=10%") != first {
		t.Error("a second run has other faults")
	}
	if run("seed=7,throttle=10%") == first {
		t.Error("another seed has the same faults")
	}
	if n := strings.Count(run("throttle=100%"), "throttle"); n != 10_000 {
		t.Errorf("100%% of 10,000 were %d", n)
	}
}

// TestFaultsCountEachOperationOnce: from many connections too.
func TestFaultsCountEachOperationOnce(t *testing.T) {
	f, err := ParseFaults("throttle=every:4")
	if err != nil {
		t.Fatal(err)
	}
	const workers, each = 8, 100
	hits := make(chan int, workers)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			n := 0
			for range each {
				if _, ok := f.Next(OpSend, "orders"); ok {
					n++
				}
			}
			hits <- n
		})
	}
	wg.Wait()
	close(hits)
	total := 0
	for n := range hits {
		total += n
	}
	if total != workers*each/4 {
		t.Errorf("%d of %d were hit", total, workers*each)
	}
}

func TestParseFaultsRefuses(t *testing.T) {
	for spec, want := range map[string]string{
		"":                         "position 1: \"\": want KIND=WHEN",
		"throttle":                 "say when: throttle=10%",
		"throttle=10%,":            "position 14: \"\"",
		"throttle=10%, trottle=5%": "position 15: \"trottle=5%\": no fault is called \"trottle\"; there are delay, throttle",
		"throttle/sent=5%":         `no operation is called "sent"; there are send, receive`,
		"lock-lost/send=always":    "lock-lost cannot happen to send; it can to settle",
		"detach/http=always":       "detach cannot happen to http",
		"throttle=0%":              "more than 0 and at most 100",
		"throttle=101%":            "more than 0 and at most 100",
		"throttle=NaN%":            "more than 0 and at most 100",
		"throttle=every:0":         "every takes a number from 1 on",
		"throttle=every":           "every takes a number from 1 on",
		"throttle=sometimes":       `"sometimes" says no time`,
		"throttle=5%@":             "name of the entity is missing",
		"delay=fast":               `"fast" is no duration`,
		"delay=-1s":                "more than 0",
		"delay=1h":                 "at most 5m0s",
		"seed=x":                   "a seed is a whole number",
		strings.Repeat("error=1%,", maxFaultRules) + "error=1%": "more than 100",
	} {
		_, err := ParseFaults(spec)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseFaults(%.30q) = %v, want …%s…", spec, err, want)
		}
	}
}

func FuzzParseFaults(f *testing.F) {
	f.Add("throttle=10%@orders,delay/send=200ms:every:5,seed=3")
	f.Add("lock-lost=at:7, disconnect/attach=first:2@a/b")
	f.Fuzz(func(t *testing.T, spec string) {
		faults, err := ParseFaults(spec)
		if err != nil {
			return
		}
		for op := range ops {
			fault, ok := faults.Next(op, "orders")
			if ok && fault.Kind == FaultDelay && fault.Delay <= 0 || fault.Delay > maxFaultRules*maxFaultDelay || fault.Delay < 0 {
				t.Errorf("%q makes the fault %v", spec, fault)
			}
			if ok && fault.Kind != FaultDelay && !fault.Kind.strikes(op) {
				t.Errorf("%q makes %s happen to %s", spec, fault.Kind, op)
			}
		}
	})
}

func ExampleFaults_Next() {
	faults, err := ParseFaults("throttle/send=every:2@orders, delay=50ms")
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		fault, _ := faults.Next(OpSend, "orders")
		fmt.Println(fault.Kind, fault.Delay.Round(time.Millisecond))
	}
	// Output:
	// delay 50ms
	// throttle 50ms
}
