// Package sqlfilter is the Service Bus SQL expression language: what subscription rules
// filter with, and what dlq selects dead letters with (--where, and / in the terminal UI).
//
// It answers: does this message match, and if the expression is wrong, where, and what is
// the nearest form that is right?
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
// Rules: the grammar, types and logic follow the published syntax of Service Bus SQL filters.
package sqlfilter
