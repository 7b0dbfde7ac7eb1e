// Package sas knows the keys of a Service Bus namespace and what they entitle to: it makes and
// verifies shared access signatures, and decides which tokens a server takes.
//
// It answers: who signed this token, for which part of the namespace, with which rights and
// until when? It knows no AMQP and no HTTP; servers ask [Gate] about a token and [Claim] about
// an entity.
//
// A token names a resource (sr), an expiry (se), a key (skn) and carries the HMAC-SHA256 of the
// first two (sig). Three rules are where others go wrong:
//
//   - The signature is over sr as it was received. Clients escape differently, and one lowers
//     the case after escaping; what is decoded and escaped again is another text.
//   - The key is the characters of the connection string, not the bytes they would decode to.
//   - The resource is a prefix, at the borders of segments: a token for the namespace or for a
//     topic is good for the topic's subscriptions.
//
// https://learn.microsoft.com/azure/service-bus-messaging/service-bus-sas
package sas
