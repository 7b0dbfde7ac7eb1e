// Package port serves several protocols on one TCP port: AMQP, HTTP and AMQP over WebSocket, each
// of them plain or over TLS. It also keeps the local certificate authority that TLS needs.
//
// It answers: which protocol does this connection speak, and may it? What is said in the protocol
// is the business of the handlers that [Server] is given.
//
// # One port
//
// The client speaks first in every protocol served here, so its first bytes tell:
//
//	0x16     a TLS handshake; within it the first bytes are looked at again
//	"AMQP"   AMQP
//	a letter HTTP; a request to /$servicebus/websocket becomes AMQP
//
// Thus one connection string is good for messaging and for management, whatever the transport of
// the SDK. A connection that has not yet said what it is costs little and is waited for briefly;
// when there are too many of them, the one that has been silent longest goes first, so that a
// client that speaks is served however many others keep silent.
//
// # Browsers
//
// A page of the web can send requests to a port of the reader's own machine. Therefore the name in
// Host has to be one of ours (a foreign name that resolves to us is an attack by DNS rebinding),
// and what a browser declares to come from another page is refused before a body is read. No
// response allows another origin.
package port
