package broker

import "time"

// kindSet is a set of kinds of entities.
type kindSet uint8

const (
	forQueues kindSet = 1 << iota
	forTopics
	forSubscriptions
	forHolders = forQueues | forSubscriptions // what messages are received from
	forAll     = forQueues | forTopics | forSubscriptions
)

func (k Kind) set() kindSet {
	switch k {
	case Queue:
		return forQueues
	case Topic:
		return forTopics
	case Subscription:
		return forSubscriptions
	}
	return 0
}

// propertySpec is one property: what it is called, what it applies to, and how it is written.
type propertySpec struct {
	field     string  // of Properties; its name in the store
	name      string  // as the service calls it; dlq's own where no service has it; "": not to be set
	alias     string  // another name that is understood
	dialect   Dialect // "": both
	kinds     kindSet // to which it applies
	fifo      bool    // only to FIFO forQueues
	immutable bool    // fixed when the entity is created
	form
}

// The services' defaults and bounds.
// https://learn.microsoft.com/azure/service-bus-messaging/service-bus-quotas
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html
const (
	defaultLockDuration     = time.Minute
	minLockDuration         = 5 * time.Second
	maxLockDuration         = 5 * time.Minute
	minEngineLock           = time.Millisecond // because tests want short locks
	defaultMaxDeliveryCount = 10
	maxMaxDeliveryCount     = 2000
	maxEngineDeliveryCount  = 1<<31 - 1
	defaultMaxSize          = 1 << 30
	maxMaxSize              = 81920 << 20
	minMaxMessageBytes      = 1 << 10
	maxMaxMessageBytes      = 100 << 20 // of the largest tier
	defaultDuplicateWindow  = 10 * time.Minute
	minDuplicateWindow      = 20 * time.Second
	minEngineWindow         = time.Second // because the official emulator goes below that
	maxDuplicateWindow      = 7 * day
	minIdle                 = 5 * time.Minute
	maxUserMetadata         = 1024

	defaultVisibilityTimeout = 30 * time.Second
	maxVisibilityTimeout     = 12 * time.Hour
	defaultRetention         = 4 * day
	minRetention             = time.Minute
	maxRetention             = 14 * day
	maxDelay                 = 15 * time.Minute
	maxReceiveWait           = 20 * time.Second
	maxSQSMessageBytes       = 1 << 20
	maxMaxInFlight           = 120_000
	fifoDuplicateWindow      = 5 * time.Minute
)

// propertySpecs is the table of properties in the order in which [Properties.List] shows them. Each
// field of Properties has a row at least, Extra excepted; the first row of a field is how the
// store holds it.
var propertySpecs = [...]propertySpec{
	{field: "Dialect", name: "Dialect", kinds: forAll, immutable: true, form: choiceForm(func(p *Properties) *Dialect { return &p.Dialect }, ServiceBus, SQS)},
	{field: "Groups", name: "FifoQueue", dialect: SQS, kinds: forQueues, immutable: true, form: flagForm(func(p *Properties) *bool { return &p.Groups })},
	{field: "Status", name: "Status", kinds: forHolders, form: choiceForm(func(p *Properties) *Status { return &p.Status }, Enabled, Disabled, SendDisabled, ReceiveDisabled)},
	{field: "Status", name: "Status", kinds: forTopics, form: choiceForm(func(p *Properties) *Status { return &p.Status }, Enabled, Disabled, SendDisabled)},

	// What may be sent.
	{field: "MaxSize", name: "MaxSizeInMegabytes", dialect: ServiceBus, kinds: forQueues | forTopics, form: sizeForm(func(p *Properties) *int64 { return &p.MaxSize }, 1<<20, 1, 1<<20, maxMaxSize, true)},
	{field: "MaxMessageBytes", name: "MaxMessageSizeInKilobytes", dialect: ServiceBus, kinds: forQueues | forTopics, form: sizeForm(func(p *Properties) *int64 { return &p.MaxMessageBytes }, 1<<10, 1, minMaxMessageBytes, maxMaxMessageBytes, false)},
	{field: "MaxMessageBytes", name: "MaximumMessageSize", dialect: SQS, kinds: forQueues, form: sizeForm(func(p *Properties) *int64 { return &p.MaxMessageBytes }, 1, 1, minMaxMessageBytes, maxSQSMessageBytes, false)},
	{field: "RequiresSession", name: "RequiresSession", dialect: ServiceBus, kinds: forHolders, immutable: true, form: flagForm(func(p *Properties) *bool { return &p.RequiresSession })},
	{field: "DetectDuplicates", name: "RequiresDuplicateDetection", dialect: ServiceBus, kinds: forQueues | forTopics, immutable: true, form: flagForm(func(p *Properties) *bool { return &p.DetectDuplicates })},
	{field: "DuplicateWindow", name: "DuplicateDetectionHistoryTimeWindow", dialect: ServiceBus, kinds: forQueues | forTopics, form: spanForm(func(p *Properties) *time.Duration { return &p.DuplicateWindow }, inISO, minEngineWindow, minDuplicateWindow, maxDuplicateWindow)},
	{field: "DuplicateWindow", name: "DuplicateWindow", dialect: SQS, kinds: forQueues, fifo: true, form: spanForm(func(p *Properties) *time.Duration { return &p.DuplicateWindow }, inSeconds, minDuplicateWindow, minDuplicateWindow, maxDuplicateWindow)},
	{field: "ContentDeduplication", name: "ContentBasedDeduplication", dialect: SQS, kinds: forQueues, fifo: true, form: flagForm(func(p *Properties) *bool { return &p.ContentDeduplication })},
	{field: "DeduplicationPerGroup", name: "DeduplicationScope", dialect: SQS, kinds: forQueues, fifo: true, immutable: true, form: eitherForm(func(p *Properties) *bool { return &p.DeduplicationPerGroup }, "queue", "messageGroup")},
	{field: "Delay", name: "DelaySeconds", dialect: SQS, kinds: forQueues, form: spanForm(func(p *Properties) *time.Duration { return &p.Delay }, inSeconds, 0, 0, maxDelay)},

	// How it is received.
	{field: "LockDuration", name: "LockDuration", dialect: ServiceBus, kinds: forHolders, form: spanForm(func(p *Properties) *time.Duration { return &p.LockDuration }, inISO, minEngineLock, minLockDuration, maxLockDuration)},
	{field: "LockDuration", name: "VisibilityTimeout", dialect: SQS, kinds: forQueues, form: spanForm(func(p *Properties) *time.Duration { return &p.LockDuration }, inSeconds, 0, 0, maxVisibilityTimeout)},
	{field: "LocksEndWithConnection", name: "LocksEndWithConnection", dialect: ServiceBus, kinds: forHolders, form: flagForm(func(p *Properties) *bool { return &p.LocksEndWithConnection })},
	{field: "ReceiveWait", name: "ReceiveMessageWaitTimeSeconds", dialect: SQS, kinds: forQueues, form: spanForm(func(p *Properties) *time.Duration { return &p.ReceiveWait }, inSeconds, 0, 0, maxReceiveWait)},
	{field: "GroupHeadOnly", name: "GroupHeadOnly", dialect: SQS, kinds: forQueues, fifo: true, form: flagForm(func(p *Properties) *bool { return &p.GroupHeadOnly })},
	{field: "MaxInFlight", name: "MaxInFlight", dialect: SQS, kinds: forQueues, form: countForm(func(p *Properties) *int { return &p.MaxInFlight }, 1, maxMaxInFlight, maxMaxInFlight, true)},

	// How long it is kept.
	{field: "DefaultTTL", name: "DefaultMessageTimeToLive", dialect: ServiceBus, kinds: forAll, form: longSpanForm(func(p *Properties) *time.Duration { return &p.DefaultTTL }, time.Millisecond, time.Second)},
	{field: "DeadLetterOnExpiration", name: "DeadLetteringOnMessageExpiration", alias: "EnableDeadLetteringOnMessageExpiration", dialect: ServiceBus, kinds: forHolders, form: flagForm(func(p *Properties) *bool { return &p.DeadLetterOnExpiration })},
	{field: "Retention", name: "MessageRetentionPeriod", dialect: SQS, kinds: forQueues, form: spanForm(func(p *Properties) *time.Duration { return &p.Retention }, inSeconds, minRetention, minRetention, maxRetention)},
	{field: "AutoDeleteOnIdle", name: "AutoDeleteOnIdle", dialect: ServiceBus, kinds: forAll, form: longSpanForm(func(p *Properties) *time.Duration { return &p.AutoDeleteOnIdle }, minIdle, minIdle)},

	// Where it goes then.
	{field: "MaxDeliveryCount", name: "MaxDeliveryCount", dialect: ServiceBus, kinds: forHolders, form: countForm(func(p *Properties) *int { return &p.MaxDeliveryCount }, 1, maxMaxDeliveryCount, maxEngineDeliveryCount, false)},
	{field: "Redrive", name: "RedrivePolicy", dialect: SQS, kinds: forQueues, form: redrivePolicy()},
	{field: "RedriveAllow", name: "RedriveAllowPolicy", dialect: SQS, kinds: forQueues, form: redriveAllowPolicy()},
	{field: "RedriveKeepsAge", name: "RedriveKeepsAge", dialect: SQS, kinds: forQueues, form: flagForm(func(p *Properties) *bool { return &p.RedriveKeepsAge })},
	{field: "RedriveKeepsCount", name: "RedriveKeepsCount", dialect: SQS, kinds: forQueues, form: flagForm(func(p *Properties) *bool { return &p.RedriveKeepsCount })},
	{field: "ForwardTo", name: "ForwardTo", dialect: ServiceBus, kinds: forHolders, form: nameForm(func(p *Properties) *string { return &p.ForwardTo })},
	{field: "ForwardDeadLettersTo", name: "ForwardDeadLetteredMessagesTo", dialect: ServiceBus, kinds: forHolders, form: nameForm(func(p *Properties) *string { return &p.ForwardDeadLettersTo })},
	{field: "DeadLetterOnFilterError", name: "DeadLetteringOnFilterEvaluationExceptions", alias: "EnableDeadLetteringOnFilterEvaluationExceptions", dialect: ServiceBus, kinds: forSubscriptions, form: flagForm(func(p *Properties) *bool { return &p.DeadLetterOnFilterError })},
	{field: "FilterBeforePublishing", name: "FilteringMessagesBeforePublishing", dialect: ServiceBus, kinds: forTopics, form: flagForm(func(p *Properties) *bool { return &p.FilterBeforePublishing })},

	// Kept and shown.
	{field: "UserMetadata", name: "UserMetadata", dialect: ServiceBus, kinds: forAll, form: lineForm(func(p *Properties) *string { return &p.UserMetadata }, maxUserMetadata)},
	{field: "BatchedOperations", name: "EnableBatchedOperations", dialect: ServiceBus, kinds: forAll, form: flagForm(func(p *Properties) *bool { return &p.BatchedOperations })},
	{field: "Partitioning", name: "EnablePartitioning", dialect: ServiceBus, kinds: forQueues | forTopics, immutable: true, form: flagForm(func(p *Properties) *bool { return &p.Partitioning })},
	{field: "SupportOrdering", name: "SupportOrdering", dialect: ServiceBus, kinds: forQueues | forTopics, form: flagForm(func(p *Properties) *bool { return &p.SupportOrdering })},

	// What the dialect says once and for all.
	{field: "CaseSensitive", form: flagForm(func(p *Properties) *bool { return &p.CaseSensitive })},
	{field: "StaleTokens", form: flagForm(func(p *Properties) *bool { return &p.StaleTokens })},
	{field: "CountOnReceive", form: flagForm(func(p *Properties) *bool { return &p.CountOnReceive })},
	{field: "SubQueues", form: flagForm(func(p *Properties) *bool { return &p.SubQueues })},
	{field: "DelayKeepsPlace", form: flagForm(func(p *Properties) *bool { return &p.DelayKeepsPlace })},
	{field: "DeduplicationID", form: flagForm(func(p *Properties) *bool { return &p.DeduplicationID })},
}

// Defaults returns the properties that an entity of that kind has when it is created.
func Defaults(kind Kind, dialect Dialect) Properties {
	if dialect == SQS {
		p := Properties{
			Dialect: SQS, CaseSensitive: true, Status: Enabled,
			MaxMessageBytes: maxSQSMessageBytes, LockDuration: defaultVisibilityTimeout, MaxInFlight: maxMaxInFlight,
			CountOnReceive: true, RedriveKeepsCount: true, Retention: defaultRetention, DelayKeepsPlace: true,
		}
		p.setFIFO(false)
		return p
	}
	p := Properties{
		Dialect: ServiceBus, Status: Enabled, MaxMessageBytes: maxMaxMessageBytes, BatchedOperations: true,
	}
	if kind != Subscription {
		p.MaxSize, p.DuplicateWindow, p.SupportOrdering = defaultMaxSize, defaultDuplicateWindow, true
	}
	if kind != Topic {
		p.LockDuration, p.MaxDeliveryCount, p.SubQueues = defaultLockDuration, defaultMaxDeliveryCount, true
	}
	p.DeadLetterOnFilterError = kind == Subscription
	return p
}

// setFIFO makes a queue of SQS a FIFO queue or a standard one, with all that belongs to it.
func (p *Properties) setFIFO(fifo bool) {
	p.Groups, p.DetectDuplicates, p.DeduplicationID = fifo, fifo, fifo
	p.StaleTokens, p.RedriveKeepsAge = !fifo, !fifo
	p.DuplicateWindow = 0
	if fifo {
		p.DuplicateWindow = fifoDuplicateWindow
	}
}
