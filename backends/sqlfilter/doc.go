// Package sqlfilter is the Service Bus SQL expression language: what subscription rules
// filter with, and what dlq selects dead letters with (--where, and / in the terminal UI).
//
// It answers: does this message match, what does a rule's action make of it, and if the
// text is wrong, where, and what is the nearest form that is right?
//
//	expr, err := sqlfilter.Compile("sys.Label LIKE 'order%' AND tenant = 'acme'", sqlfilter.RuleNames(), nil)
//	ok, err := expr.Match(&sqlfilter.Env{Message: m})
//
// # The language
//
// Comparison, AND, OR, NOT, IS [NOT] NULL, [NOT] IN, [NOT] LIKE ... ESCAPE, EXISTS(p),
// arithmetic, newid(), property(name), parameters @x, and properties of two scopes: sys.Name
// is what the broker and the sender's fixed fields hold, name or user.name is an application
// property. [odd name] and "odd name" are identifiers; text stands in single quotes. Keywords
// and property names compare without case, text compares ordinal and with case.
//
// Logic has three values. A property that is missing or null makes a comparison unknown, and
// so does a comparison of two types that do not compare (text with a number); only true
// matches. AND and OR are evaluated from left to right and stop when the rest cannot change
// the outcome.
//
// Two times have a difference, which is a duration, and a duration moves a time.
//
// # Actions
//
// An [Action] is SET property = value and REMOVE property, up to 32 of them. What SET gives to
// an application property that was not there:
//
//	integer                long
//	decimal, float         double
//	text                   string
//	TRUE, FALSE            boolean
//	NULL, unknown          null
//	newid()                uuid
//	a time                 timestamp, in milliseconds
//	a duration             described com.microsoft:timespan, in ticks of 100 ns
//	a property or @param   what it is, with its type, if the value is nothing else
//
// A property that was there keeps its type, and the value is converted: integers and whole
// doubles among all numeric types in their ranges; any number to float, double and decimal,
// to the nearest; text to a number, boolean, time, duration or GUID that it reads as; all of
// these to text. What would be another value then (2.5 or 'many' as an int), and arithmetic
// with types that have none, is a [RuleActionException].
//
// # Correlation filters
//
// [Correlation] compares fields for equality alone; there may be 100,000 of them on a topic.
//
// # Runtime errors
//
// What cannot be evaluated for one message is an [*EvalError] with the service's name for it
// and one line of text, which are the reason and the description of a dead letter.
//
// # Two sets of names
//
// What an expression may name is a value, [Names]. [RuleNames] is what the service knows.
// [SelectionNames] adds sys.DeadLetterReason, sys.DeadLetterErrorDescription, body and
// body.$.path. There, and only there:
//
//   - body is the text of the body; an application property of that name is user.body or [body];
//   - text that reads as a time, a duration or a GUID compares with one:
//     sys.EnqueuedTimeUtc < '2026-01-02T15:04:05Z';
//   - sys.State is 'active', 'deferred' or 'scheduled', where a rule sees a number;
//   - a condition that can never be true is refused at compile time, where a rule accepts it
//     because the service does: x = NULL, sys.DeliveryCount = '5', x = "text", x LIKE 'a*'.
//
// An unscoped name is an application property in both. DeadLetterReason works unscoped,
// because a dead letter carries it as an application property; MessageId does not, and
// [Expr.Warnings] asks whether sys.MessageId was meant.
//
// Rules: the grammar, types and logic follow the published syntax of Service Bus SQL filters
// and actions, and the published examples.
package sqlfilter
