package broker

import (
	"errors"
	"slices"
	"testing"
)

// Queues of other regions and accounts have names of their own, which compare with case, and
// are dead-letter queues of each other.
func TestQueuesOfOtherAccounts(t *testing.T) {
	b := newBench(t)
	b.queue.Name = "eu-west-1/123456789012/jobs"
	dlq := Address{Name: "eu-west-1/123456789012/jobs-dlq"}
	b.create(dlq.Name, func(p *Properties) { p.RedriveAllow = RedriveAllow{AllowByQueue, []string{b.queue.Name}} })
	b.create(b.queue.Name, func(p *Properties) { p.Redrive = Redrive{dlq.Name, 1} })
	b.create("jobs", nil)
	b.create("eu-west-1/123456789013/jobs", nil)

	b.send("a")
	b.wantBodies(Address{Name: "jobs"})
	b.wantBodies(Address{Name: "eu-west-1/123456789013/jobs"})
	b.want(b.visible(b.wantBodies(b.queue, "a")[0], 0), nil)
	b.wantBodies(b.queue)
	b.wantContents(dlq, "a/1")
	b.wantContents(Address{Name: b.queue.Name, Sub: DeadLetter}, "a/1")
	if got := b.info(dlq.Name).Sources; !slices.Equal(got, []string{b.queue.Name}) {
		t.Errorf("the sources are %v", got)
	}
	if _, err := b.e.Entity("EU-WEST-1/123456789012/jobs"); !errors.Is(err, ErrNoEntity) {
		t.Errorf("another name: %v", err)
	}
	b.restart()
	b.wantContents(dlq, "a/1")
}

// A policy that names a queue without its region and account, as it does when the text of it
// gave an ARN, means one of the region and account that the policy's own queue has.
// Source: sqs-wire.md 4.2: the dead-letter queue is of the same region and account.
func TestPoliciesMeanTheOwnAccount(t *testing.T) {
	for own, want := range map[string]string{"": "", "ru-central1/b1g/": "ru-central1/b1g/"} {
		b := newBench(t)
		b.create(own+"dlq", nil)
		b.create(own+"jobs", func(p *Properties) { p.Redrive = Redrive{"dlq", 3} })
		if got := b.info(own + "jobs").Redrive.Target; got != want+"dlq" {
			t.Errorf("the target of %sjobs is %s", own, got)
		}
		b.change(own+"jobs", func(p *Properties) { p.Redrive = Redrive{} })
		b.change(own+"dlq", func(p *Properties) {
			b.want(p.Set(Queue, "RedriveAllowPolicy", `{"redrivePermission":"byQueue","sourceQueueArns":["arn:aws:sqs:r:1:jobs"]}`), nil)
		})
		b.change(own+"jobs", func(p *Properties) {
			b.want(p.Set(Queue, "RedrivePolicy", `{"deadLetterTargetArn":"yrn:yc:ymq:ru-central1:b1g:dlq","maxReceiveCount":"2"}`), nil)
		})
		i := b.info(own + "jobs")
		if i.Redrive != (Redrive{want + "dlq", 2}) {
			t.Errorf("the policy of %sjobs is %+v", own, i.Redrive)
		}
	}
}
