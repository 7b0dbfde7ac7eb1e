package local

import "dlq/backends/broker"

func (b *Backend) Engine() *broker.Engine { return b.engine }
