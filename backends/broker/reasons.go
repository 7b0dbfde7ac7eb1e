package broker

import "fmt"

// The reasons and descriptions that the broker itself gives a dead letter, word for word
// those of Azure Service Bus, since people filter on them.
// Source: https://learn.microsoft.com/azure/service-bus-messaging/service-bus-dead-letter-queues
const reasonMaxDeliveryCount = "MaxDeliveryCountExceeded"

func descriptionMaxDeliveryCount(n uint32) string {
	return fmt.Sprintf("Message could not be consumed after %d delivery attempts.", n)
}
