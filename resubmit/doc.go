// Package resubmit is what one does with dead letters: choose, change, move, and prove it.
//
// It answers: what happens to a message between being sent and being completed when the
// process dies? The way of a job is
//
//	Selection → Query → Plan (preflight) → Run (transform, journal, move) → Report
//
// A [Selection] is the text of the flags or of the filter line; compiled it is a [Query],
// whose relative times are frozen. [NewPlan] looks, without side effects, at what matches and
// where it would go, and freezes the set of messages. [Run] writes a journal before it touches
// a message: the plan, then for each batch the whole originals (intent), then what became of
// them. [Resume] continues after a crash from that journal alone, [Restore] brings back what
// a job removed, and [Journals] lists the jobs and accounts for every message of each.
//
// # What a resubmit promises
//
// Where the backend moves atomically ([backends.Mover]), a message is in exactly one of the two
// places at every instant: nothing lost, nothing doubled, whatever is killed whenever.
//
// Elsewhere a message is sent, the acknowledgement is journalled, and only then the original
// is completed: nothing is lost. A kill between sending and journalling leaves it unknown
// whether the message was sent; those messages (at most the batches in flight) stay where they
// are, are named "possibly twice", and are never sent again by themselves.
//
// Some destinations accept a message and drop it: a topic where no rule lets it through, an entity that
// detects duplicates and knows its id. The plan finds out which messages that would be (see
// [Finding] and [Destination]) and is refused, unless it is told to drop the former; the latter get
// new ids unless they are to keep theirs. Where the backend moves atomically, the move itself
// refuses as well, should rules have changed or ids become known since.
//
// A message goes back to where it came from: its own entity, the topic of its subscription, or, in a queue
// that holds the dead letters of others, the entity that it names or the only one there is.
//
// Order: messages of one session go out in the order of their sequence numbers. Others go out
// in batches, several at a time.
package resubmit
