// Package namespace answers: what is a Service Bus namespace to hold when the server starts, and
// what does its tier allow?
//
// The first is said by a file in the format of the official emulator's Config.json, which is read
// as it is, comments included, and may say more than that emulator understands (see [Config]).
// The second is a [Tier]: the quotas of Basic, Standard and Premium, those of the official emulator,
// or none. The package knows no wire and opens no file; the server applies what it says.
package namespace
