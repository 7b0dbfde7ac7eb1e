package broker

import "fmt"

// cause is why the broker itself dead-letters a message.
type cause struct{ reason, description string }

// The reasons and descriptions are, word for word, those of Azure Service Bus, since people
// filter on them.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-dead-letter-queues
var (
	// The time to live ran out, in an entity that dead-letters what expires.
	causeExpired = cause{"TTLExpiredException", "The message expired and was dead lettered."}
	// The application properties, with what was added to them on the way, exceed 64 KB.
	causeHeaderSize = cause{"HeaderSizeExceeded", "The size quota for this stream has been exceeded."}
	// A message without a session was forwarded to an entity that requires sessions.
	causeNoSession = cause{"Session ID is null.", "Session enabled entity doesn't allow a message whose session identifier is null."}
	// It was forwarded more often than maxHops.
	causeHops = cause{"MaxTransferHopCountExceeded", fmt.Sprintf("The maximum number of allowed hops when forwarding between queues. Value is set to %d.", maxHops)}
)

// causeDeliveries is that n deliveries failed.
func causeDeliveries(n int) cause {
	return cause{"MaxDeliveryCountExceeded", fmt.Sprintf("Message could not be consumed after %d delivery attempts.", n)}
}

// The destination of a transfer could not take the message. The services give no text for
// these; a transfer dead-letter queue holds nothing else.
func causeNoDestination(name string) cause {
	return cause{"DestinationNotFound", fmt.Sprintf("The messaging entity '%s' could not be found.", name)}
}

func causeDestinationDisabled(name string) cause {
	return cause{"DestinationDisabled", fmt.Sprintf("The messaging entity '%s' is currently disabled.", name)}
}

func causeDestinationFull(name string) cause {
	return cause{"DestinationQuotaExceeded", fmt.Sprintf("The messaging entity '%s' has reached its size quota.", name)}
}

// causeFilter is that a rule failed: the type of the exception and its message.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-dead-letter-queues#errors-while-processing-subscription-rules
func causeFilter(exception, text string) cause { return cause{exception, text} }
