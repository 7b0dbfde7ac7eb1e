package cmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"dlq/backends"
	"dlq/resubmit"
)

func TestOutcome(t *testing.T) {
	tests := []struct {
		err  error
		want exitCode
	}{
		{nil, exitDone},
		{errors.New("disk full"), exitFailed},
		{usagef("no"), exitUsage},
		{fmt.Errorf("wrapped: %w", usagef("no")), exitUsage},
		{fail(exitPartly, "", "half"), exitPartly},
		{context.Canceled, exitInterrupted},
		{fmt.Errorf("peek: %w", context.Canceled), exitInterrupted},
		{&backends.Error{Op: "peek", Code: backends.Unknown, Err: context.Canceled}, exitInterrupted},
		{&backends.Error{Op: "peek", Code: backends.NotFound}, exitFailed},
		{fmt.Errorf("preflight: %w", resubmit.ErrRefused), exitRefused},
		{&resubmit.RunningError{Job: "x"}, exitRefused},
		{fmt.Errorf("%w: x", resubmit.ErrNoJob), exitNothing},
		{fmt.Errorf("%w: x", resubmit.ErrAmbiguousJob), exitUsage},
	}
	for _, tt := range tests {
		if got, _ := outcome(tt.err); got != tt.want {
			t.Errorf("outcome(%v) = %d, want %d", tt.err, got, tt.want)
		}
	}
}

// TestErrorVoice holds every refusal to the form of all of them: "dlq: " in front, no
// capital, no period, the hint on a line of its own, nothing on standard output.
func TestErrorVoice(t *testing.T) {
	w := newWorld(t)
	w.deadLetters("orders", "Broken", "why", text("order-1", "{}"))
	tests := []struct {
		line string
		code exitCode
		says string
	}{
		{"nonsense", exitUsage, `there is no command "nonsense"`},
		{"lst", exitUsage, "did you mean list?"},
		{"list a b", exitUsage, `"b" is one argument too many`},
		{"peek", exitUsage, "ENTITY is missing"},
		{"peek orders --nonsense", exitUsage, "unknown flag: --nonsense"},
		{"peek orders -o yaml", exitUsage, "the formats are table, json and jsonl"},
		{"peek //", exitUsage, "has no name"},
		{"peek orders --active --transfer", exitUsage, "exclude each other"},
		{"peek orders/dlq --active", exitUsage, "names its dead letters"},
		{"peek orders --limit -1", exitUsage, "--limit -1"},
		{"peek orders --where x=", exitUsage, ""},
		{"peek orders --where sys.Nonsense=1", exitUsage, "Nonsense"},
		{"peek orders --jq ((", exitUsage, ""},
		{"peek orders --since yesterday", exitUsage, "yesterday"},
		{"peek orders --id other", exitNothing, "nothing matched in orders/$DeadLetterQueue"},
		{"peek missing", exitFailed, "dlq list shows what there is"},
		{"list zzz", exitNothing, "no entity begins with"},
		{"show orders", exitUsage, "--seq or --id"},
		{"show orders --seq 1 --id order-1", exitUsage, "--seq or --id"},
		{"show orders --seq 99", exitNothing, "no such message"},
		{"groups orders --reason Other", exitNothing, "nothing matched"},
		{"export orders --id other", exitNothing, "nothing matched"},
		{"export orders -f yaml", exitUsage, "jsonl, json or csv"},
		{"import /nonexistent --to orders", exitUsage, "no such file"},
		{"import - --to orders/dlq", exitUsage, "nothing can be sent to a dead-letter queue"},
		{"import -", exitUsage, "--to ENTITY is missing"},
		{"send orders --set n:int=x", exitUsage, "--set"},
		{"send orders --body x --body-file y", exitUsage, "exclude each other"},
		{"send orders --ttl -1s", exitUsage, "negative"},
		{"resubmit orders --all --yes --rate NaN", exitUsage, "--rate NaN"},
		{"resubmit orders --all --yes --rate Inf", exitUsage, "--rate +Inf"},
		{"receive orders", exitNothing, "no message is free"},
		{"send orders --body x --ttl 1ns", exitUsage, "at least a millisecond"},
		{"send orders/dlq --body x", exitUsage, "nothing can be sent to a dead-letter queue"},
		{"send billing/Subscriptions/a --body x", exitUsage, "send to its topic"},
		{"import - --to billing/subscription/a", exitUsage, "send to its topic"},
		{"resubmit orders --all --yes --to billing/Subscriptions/a", exitUsage, "send to its topic"},
		{"resubmit orders --all --yes --max 0 --concurrency -1", exitUsage, "negative"},
		{"receive orders/dlq --complete", exitUsage, "dlq complete orders removes dead letters"},
		{"receive orders --complete --abandon", exitUsage, "exclude each other"},
		{"receive orders --reason R", exitUsage, "go with --dead-letter"},
		{"receive orders --limit 0", exitUsage, "at least one"},
		{"resubmit orders", exitUsage, "nothing is selected"},
		{"resubmit orders --limit 5", exitUsage, "nothing is selected"},
		{"resubmit orders --all", exitRefused, "no terminal to ask"},
		{"resubmit orders --all --rate -1", exitUsage, "negative"},
		{"resubmit orders --all --concurrency 65", exitUsage, "at most 64"},
		{"resubmit orders --all --message-id other", exitUsage, "keep, new or auto"},
		{"resubmit orders --all --to x/dlq", exitUsage, "nothing can be sent to a dead-letter queue"},
		{"resubmit orders --all --body-jq ((", exitUsage, ""},
		{"resubmit orders --all --body-jq . --body-file x", exitUsage, "exclude each other"},
		{"complete orders", exitUsage, "nothing is selected"},
		{"complete orders --all", exitRefused, "no terminal to ask"},
		{"purge orders", exitRefused, "no terminal to ask"},
		{"edit orders --seq 1", exitRefused, "no terminal to ask"},
		{"jobs nonsense", exitUsage, "there is no command"},
		{"jobs show 77", exitNothing, "dlq jobs lists them"},
		{"entity create", exitUsage, "NAME is missing"},
		{"entity create orders", exitFailed, "already exists"},
		{"entity create new/dlq", exitUsage, "comes and goes with new"},
		{"entity create new --kind bucket", exitUsage, "queue, topic or subscription"},
		{"entity create new --kind topic --dialect sqs", exitUsage, "sqs has queues only"},
		{"entity create new --dialect kafka", exitUsage, "want one of servicebus, sqs"},
		{"entity create new LockDuration", exitUsage, "want PROPERTY=VALUE"},
		{"entity create new LockDuration=10m", exitUsage, "PT5S to PT5M (default PT1M)"},
		{"entity create new lockdurations=10s", exitUsage, "the nearest is LockDuration"},
		{"entity create new VisibilityTimeout=30", exitUsage, "here it is LockDuration"},
		{"entity create new --filter a=1", exitUsage, "name it with --rule"},
		{"entity create new --rule r --filter a=1 --correlation a=1", exitUsage, "exclude each other"},
		{"entity create new --rule r --correlation a", exitUsage, "name=value"},
		{"entity create new --rule r", exitUsage, "a queue has no rules"},
		{"entity create t/Subscriptions/s", exitFailed, "create the topic before its subscription"},
		{"entity show missing", exitFailed, "dlq list shows what there is"},
		{"entity show orders/dlq", exitUsage, "which is the entity"},
		{"entity set orders", exitUsage, "nothing to change"},
		{"entity set orders RequiresSession=true", exitUsage, "is fixed when a queue is created"},
		{"entity set orders MaxDeliveryCount=3 LockDuration=1s", exitUsage, "dlq entity show orders lists"},
		{"entity set orders MaxDeliveryCount=3 --add-rule r", exitPartly, "a subscription has rules"},
		{"entity delete orders", exitRefused, "no terminal to ask"},
		{"entity delete orders --yes", exitRefused, "holds 1 dead-letter message"},
		{"entity delete missing --yes", exitFailed, "dlq list shows what there is"},
		{"completion tcsh", exitUsage, "bash, zsh, fish, powershell"},
		{"help nonsense", exitUsage, "selection, json and promises"},
		{"man nonsense", exitUsage, "nonsense"},
		{"tui", exitRefused, "needs a terminal"},
		{"version --output json", exitUsage, "unknown flag"},
	}
	for _, tt := range tests {
		t.Run(tt.line, func(t *testing.T) {
			r := w.run(strings.Fields(tt.line)...)
			if r.code != tt.code {
				t.Errorf("exit code %d, want %d: %s", r.code, tt.code, r.err)
			}
			if r.out != "" {
				t.Errorf("standard output has %q", r.out)
			}
			if !strings.Contains(r.err, tt.says) {
				t.Errorf("got %q, want it to say %q", r.err, tt.says)
			}
			checkVoice(t, r.err)
		})
	}
}

func checkVoice(t *testing.T, stderr string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(stderr, "\n"), "\n")
	rest, ok := strings.CutPrefix(lines[0], "dlq: ")
	if !ok || rest == "" {
		t.Fatalf("%q does not begin with dlq:", stderr)
	}
	if rest[0] >= 'A' && rest[0] <= 'Z' && !strings.HasPrefix(rest, "ENTITY") && !strings.HasPrefix(rest, "NAME ") && !strings.HasPrefix(rest, "FILE") {
		t.Errorf("%q begins with a capital", rest)
	}
	for _, line := range lines {
		if strings.HasSuffix(line, ".") {
			t.Errorf("%q ends with a period", line)
		}
		if !strings.HasPrefix(line, "dlq: ") && !strings.HasPrefix(line, "hint: ") {
			t.Errorf("%q is neither an error nor a hint", line)
		}
	}
}
