package sqsd_test

import (
	"maps"
	"slices"
	"sync"
	"testing"
)

// What Amazon SQS was recorded to say: a case for each statement, in both protocols where it is
// about what is said and not about how it is written. The JSON side is the AWS SDK for Go, with its
// MD5 checks on; the Query side is the client of recorded_query_test.go. The numbers sort the
// statements: 1 is how requests and answers are written, 2 are the actions, 3 the errors, 4 what
// becomes of messages, 5 Yandex Message Queue.
//
// Recorded statements that are not tested here, and why:
//
//   - 2.1, that recordings since August 2025 have a MaximumMessageSize of 1048576: the date. The
//     value is tested.
//   - 2.1, that attributes which nobody sets do not count when a queue is made again: whether the
//     service takes them in CreateQueue was not recorded. Here they are unknown attributes.
//   - 2.13, that policies are not enforced here: the service does enforce them.
//   - 2.14, that the service takes 36 hours for a task and 100 tasks for an account: documented, and
//     tested with the engine.
//   - 4.4, where a group stands after all that was received of it is deleted: the recording takes
//     two orders, and so does the case.
//   - 4.1 and 4.2, that the service does some things late: here they are done at once, which is
//     what a client has to be ready for.

// evidence is where a statement comes from.
type evidence string

const (
	recorded   evidence = "recorded from AWS"
	secondHand evidence = "second-hand"
	documented evidence = "documented"
	observed   evidence = "observed with SDKs"
	inferred   evidence = "inferred or of other emulators"
	yandexSays evidence = "YMQ's documentation or server"
)

// protocols are those that a statement is tested in.
type protocols uint8

const (
	inBoth    protocols = iota
	onlyJSON            // the statement is about the JSON protocol
	onlyQuery           // the statement is about the Query protocol
)

func (p protocols) names() []string {
	return [][]string{{"json", "query"}, {"json"}, {"query"}}[p]
}

// statement is one about the service.
type statement struct {
	section string
	from    evidence
	in      protocols
	says    string
	run     func(x *exam)
}

// recordedStatements are all about Amazon SQS, in the order of their numbers, but for a few.
func recordedStatements() []statement {
	var all []statement
	for _, table := range [][]statement{
		recordedWire, recordedSignatures, recordedMD5, recordedErrors, recordedCreate, recordedAttributes, recordedSend, recordedFIFOSend, recordedBatch,
		recordedReceive, recordedSettle, recordedPurge, recordedPermissions, recordedTasks, recordedTaskErrors,
		recordedDelivery, recordedRedrive, recordedGroups, recordedDuplicates,
	} {
		all = append(all, table...)
	}
	return all
}

func TestRecorded(t *testing.T) { examine(t, recordedStatements(), newExam) }

// examine runs statements, and logs how many there are and how many hold.
func examine(t *testing.T, statements []statement, begin func(t *testing.T, protocol string) *exam) {
	var mu sync.Mutex
	broken := map[string]bool{} // by name
	cases, failed := 0, 0
	t.Run("statements", func(t *testing.T) {
		names := map[string]bool{}
		for _, s := range statements {
			if names[s.name()] {
				t.Errorf("%q is there twice", s.name())
			}
			names[s.name()] = true
			for _, protocol := range s.in.names() {
				cases++
				t.Run(s.name()+"/"+protocol, func(t *testing.T) {
					t.Parallel()
					defer func() {
						if t.Failed() {
							mu.Lock()
							defer mu.Unlock()
							broken[s.name()] = true
							failed++
						}
					}()
					s.run(begin(t, protocol))
				})
			}
		}
	})
	count, holds := map[evidence]int{}, map[evidence]int{}
	for _, s := range statements {
		count[s.from]++
		if !broken[s.name()] {
			holds[s.from]++
		}
	}
	t.Logf("%d statements in %d cases, one for each protocol; %d cases hold", len(statements), cases, cases-failed)
	for _, from := range slices.Sorted(maps.Keys(count)) {
		t.Logf("%s: %d of %d statements hold", from, holds[from], count[from])
	}
}

func (s statement) name() string { return s.section + " " + s.says }
