package broker

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// natures are the kinds of entities that there are, with the dialects that they speak.
var natures = []struct {
	kind    Kind
	dialect Dialect
}{{Queue, ServiceBus}, {Topic, ServiceBus}, {Subscription, ServiceBus}, {Queue, SQS}}

// TestEveryPropertyIsInTheTable: a field without a row would be neither stored nor checked.
func TestEveryPropertyIsInTheTable(t *testing.T) {
	rows := map[string]bool{"Extra": true} // stored name by name
	for i := range propertySpecs {
		rows[propertySpecs[i].field] = true
	}
	fields := reflect.TypeFor[Properties]()
	for i := range fields.NumField() {
		if name := fields.Field(i).Name; !rows[name] {
			t.Errorf("%s has no row in the table", name)
		}
		delete(rows, fields.Field(i).Name)
	}
	for name := range rows {
		t.Errorf("the table has rows for %s, which is no field", name)
	}
}

// TestDefaults: the services' documented ones.
// https://learn.microsoft.com/rest/api/servicebus/queue-description and
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_CreateQueue.html
func TestDefaults(t *testing.T) {
	documented := map[Dialect]map[Kind]map[string]string{
		ServiceBus: {
			Queue: {
				"Dialect": "servicebus", "Status": "Active", "MaxSizeInMegabytes": "1024", "MaxMessageSizeInKilobytes": "102400",
				"RequiresSession": "false", "RequiresDuplicateDetection": "false", "DuplicateDetectionHistoryTimeWindow": "PT10M",
				"LockDuration": "PT1M", "LocksEndWithConnection": "false", "DefaultMessageTimeToLive": "never",
				"DeadLetteringOnMessageExpiration": "false", "AutoDeleteOnIdle": "never", "MaxDeliveryCount": "10", "ForwardTo": "",
				"ForwardDeadLetteredMessagesTo": "", "UserMetadata": "", "EnableBatchedOperations": "true", "EnablePartitioning": "false",
				"SupportOrdering": "true",
			},
			Topic: {
				"Dialect": "servicebus", "Status": "Active", "MaxSizeInMegabytes": "1024", "MaxMessageSizeInKilobytes": "102400",
				"RequiresDuplicateDetection": "false", "DuplicateDetectionHistoryTimeWindow": "PT10M", "DefaultMessageTimeToLive": "never",
				"AutoDeleteOnIdle": "never", "FilteringMessagesBeforePublishing": "false", "UserMetadata": "",
				"EnableBatchedOperations": "true", "EnablePartitioning": "false", "SupportOrdering": "true",
			},
			Subscription: {
				"Dialect": "servicebus", "Status": "Active", "RequiresSession": "false", "LockDuration": "PT1M",
				"LocksEndWithConnection": "false", "DefaultMessageTimeToLive": "never", "DeadLetteringOnMessageExpiration": "false",
				"AutoDeleteOnIdle": "never", "MaxDeliveryCount": "10", "ForwardTo": "", "ForwardDeadLetteredMessagesTo": "",
				"DeadLetteringOnFilterEvaluationExceptions": "true", "UserMetadata": "", "EnableBatchedOperations": "true",
			},
		},
		SQS: {Queue: {
			"Dialect": "sqs", "FifoQueue": "false", "Status": "Active", "MaximumMessageSize": "1048576", "DelaySeconds": "0",
			"VisibilityTimeout": "30", "ReceiveMessageWaitTimeSeconds": "0", "MaxInFlight": "120000", "MessageRetentionPeriod": "345600",
			"RedrivePolicy": "", "RedriveAllowPolicy": "", "RedriveKeepsAge": "true", "RedriveKeepsCount": "true",
		}},
	}
	for _, n := range natures {
		p := Defaults(n.kind, n.dialect)
		if err := p.validate(n.kind); err != nil {
			t.Errorf("%s %s: %v", n.dialect, n.kind, err)
		}
		got := map[string]string{}
		for _, property := range p.List(n.kind) {
			got[property.Name] = property.Value
			if property.Value != property.Default {
				t.Errorf("%s %s: %s is %q and by default %q", n.dialect, n.kind, property.Name, property.Value, property.Default)
			}
		}
		if want := documented[n.dialect][n.kind]; !reflect.DeepEqual(got, want) {
			t.Errorf("%s %s: got\n%v, want\n%v", n.dialect, n.kind, got, want)
		}
	}
}

// TestFIFOQueues: FifoQueue brings along what belongs to it, and nothing else may differ.
func TestFIFOQueues(t *testing.T) {
	p := Defaults(Queue, SQS)
	if !p.StaleTokens || !p.RedriveKeepsAge || p.Groups || p.DuplicateWindow != 0 {
		t.Errorf("a standard queue is %+v", p)
	}
	for _, set := range [][2]string{{"FifoQueue", "True"}, {"deduplicationscope", "messageGroup"}, {"ContentBasedDeduplication", "TRUE"}, {"GroupHeadOnly", "true"}} {
		if err := p.Set(Queue, set[0], set[1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.validate(Queue); err != nil {
		t.Error(err)
	}
	if !p.Groups || !p.DetectDuplicates || !p.DeduplicationID || p.StaleTokens || p.RedriveKeepsAge || p.DuplicateWindow != 5*time.Minute || !p.DeduplicationPerGroup {
		t.Errorf("a FIFO queue is %+v", p)
	}
	for _, property := range p.List(Queue) {
		if property.Name == "RedriveKeepsAge" && property.Default != "false" {
			t.Errorf("the default of RedriveKeepsAge is %s", property.Default)
		}
	}
	window := p.DuplicateWindow / 2
	p.DuplicateWindow = window
	if err := p.Set(Queue, "FifoQueue", "true"); err != nil || p.DuplicateWindow != window {
		t.Errorf("set to what it is, FifoQueue has changed the window to %v, %v", p.DuplicateWindow, err)
	}
}

func TestSet(t *testing.T) {
	for _, c := range []struct {
		kind              Kind
		dialect           Dialect
		name, value, want string
	}{
		{Queue, ServiceBus, "LockDuration", "30s", "PT30S"},
		{Queue, ServiceBus, "lockduration", "PT30S", "PT30S"},
		{Subscription, ServiceBus, "LockDuration", "5m", "PT5M"},
		{Queue, ServiceBus, "DefaultMessageTimeToLive", "P14D", "P14D"},
		{Queue, ServiceBus, "DefaultMessageTimeToLive", "336h", "P14D"},
		{Topic, ServiceBus, "DefaultMessageTimeToLive", MaxTimeSpan, "never"},
		{Topic, ServiceBus, "AutoDeleteOnIdle", "Never", "never"},
		{Queue, ServiceBus, "MaxDeliveryCount", "2000", "2000"},
		{Queue, ServiceBus, "MaxSizeInMegabytes", "2048", "2048"},
		{Queue, ServiceBus, "MaxSizeInMegabytes", "2GB", "2048"},
		{Queue, ServiceBus, "MaxSizeInMegabytes", "unlimited", "unlimited"},
		{Queue, ServiceBus, "MaxMessageSizeInKilobytes", "1 MiB", "1024"},
		{Queue, ServiceBus, "MaxMessageSizeInKilobytes", "1500B", "1500B"},
		{Queue, ServiceBus, "Status", "senddisabled", "SendDisabled"},
		{Queue, ServiceBus, "RequiresSession", "True", "true"},
		{Queue, ServiceBus, "ForwardTo", "sb://ns.servicebus.windows.net/audit/all", "audit/all"},
		{Queue, ServiceBus, "ForwardTo", "", ""},
		{Queue, ServiceBus, "Dialect", "ServiceBus", "servicebus"},
		{Queue, ServiceBus, "UserMetadata", strings.Repeat("é", 1024), strings.Repeat("é", 1024)},
		{Subscription, ServiceBus, "EnableDeadLetteringOnFilterEvaluationExceptions", "false", "false"},
		{Queue, SQS, "VisibilityTimeout", "45", "45"},
		{Queue, SQS, "VisibilityTimeout", "0", "0"},
		{Queue, SQS, "VisibilityTimeout", "12h", "43200"},
		{Queue, SQS, "MessageRetentionPeriod", "P1D", "86400"},
		{Queue, SQS, "DelaySeconds", "1500ms", "1.5s"},
		{Queue, SQS, "MaximumMessageSize", "256KB", "262144"},
		{Queue, SQS, "MaxInFlight", "none", "unlimited"},
		{Queue, SQS, "RedrivePolicy", "orders-dlq:5", `{"target":"orders-dlq","maxReceiveCount":5}`},
		{Queue, SQS, "RedrivePolicy", `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:orders-dlq","maxReceiveCount":"5"}`, `{"target":"orders-dlq","maxReceiveCount":5}`},
		{Queue, SQS, "RedrivePolicy", "arn:aws:sqs:us-east-1:000000000000:orders-dlq:5", `{"target":"orders-dlq","maxReceiveCount":5}`},
		{Queue, SQS, "RedrivePolicy", `{"target":"orders-dlq","maxReceiveCount":1000,"other":1}`, `{"target":"orders-dlq","maxReceiveCount":1000}`},
		{Queue, SQS, "RedrivePolicy", "", ""},
		{Queue, SQS, "RedriveAllowPolicy", "denyall", `{"redrivePermission":"denyAll"}`},
		{Queue, SQS, "RedriveAllowPolicy", "byQueue:a,b", `{"redrivePermission":"byQueue","sourceQueueArns":["a","b"]}`},
		{Queue, SQS, "RedrivePolicy", `{"deadLetterTargetArn":"yrn:yc:ymq:ru-central1:b1gABC:orders-dlq.fifo","maxReceiveCount":5}`, `{"target":"orders-dlq.fifo","maxReceiveCount":5}`},
		{Queue, SQS, "RedrivePolicy", "eu-west-1/123456789012/orders-dlq:5", `{"target":"eu-west-1/123456789012/orders-dlq","maxReceiveCount":5}`},
		{Queue, SQS, "RedrivePolicy", `{"target":"eu-west-1/123456789012/a.fifo","maxReceiveCount":5}`, `{"target":"eu-west-1/123456789012/a.fifo","maxReceiveCount":5}`},
		{Queue, SQS, "RedriveAllowPolicy", `{"redrivePermission":"byQueue","sourceQueueArns":["arn:aws:sqs:r:1:a"]}`, `{"redrivePermission":"byQueue","sourceQueueArns":["a"]}`},
		{Queue, SQS, "RedriveAllowPolicy", "byQueue:r/1/a,b", `{"redrivePermission":"byQueue","sourceQueueArns":["r/1/a","b"]}`},
	} {
		p := Defaults(c.kind, c.dialect)
		if err := p.Set(c.kind, c.name, c.value); err != nil {
			t.Errorf("%s %s: %s=%s: %v", c.dialect, c.kind, c.name, c.value, err)
			continue
		}
		if err := p.validate(c.kind); err != nil {
			t.Errorf("%s=%s is set and then refused: %v", c.name, c.value, err)
		}
		s, err := p.find(c.kind, c.name)
		if err != nil {
			t.Error(err)
		} else if got := s.get(&p); got != c.want {
			t.Errorf("%s %s: %s=%s is then %q, want %q", c.dialect, c.kind, c.name, c.value, got, c.want)
		}
	}
}

// TestSetRefuses: the text says what is wrong, what goes, and what the default is.
func TestSetRefuses(t *testing.T) {
	for _, c := range []struct {
		kind              Kind
		dialect           Dialect
		name, value, want string
	}{
		{Queue, ServiceBus, "LockDuration", "10m", "LockDuration PT10M is out of range: PT5S to PT5M (default PT1M)"},
		{Queue, ServiceBus, "LockDuration", "4s", "LockDuration PT4S is out of range: PT5S to PT5M (default PT1M)"},
		{Queue, ServiceBus, "LockDuration", "-PT5S", "LockDuration -PT5S is out of range: PT5S to PT5M (default PT1M)"},
		{Queue, ServiceBus, "LockDuration", "30", `LockDuration "30": want a duration such as 30s, 5m, PT30S or P14D (default PT1M)`},
		{Queue, ServiceBus, "LockDuration", "", `LockDuration "": want a duration such as 30s, 5m, PT30S or P14D (default PT1M)`},
		{Queue, ServiceBus, "MaxDeliveryCount", "0", "MaxDeliveryCount 0 is out of range: 1 to 2000 (default 10)"},
		{Queue, ServiceBus, "MaxDeliveryCount", "2001", "MaxDeliveryCount 2001 is out of range: 1 to 2000 (default 10)"},
		{Queue, ServiceBus, "MaxDeliveryCount", "ten", `MaxDeliveryCount "ten": want a whole number (default 10)`},
		{Queue, ServiceBus, "MaxSizeInMegabytes", "81921", "MaxSizeInMegabytes 81921 is out of range: 1 to 81920, unlimited (default 1024)"},
		{Queue, ServiceBus, "MaxMessageSizeInKilobytes", "unlimited", `MaxMessageSizeInKilobytes "unlimited": want a size such as 1024, 512KB or 2GB (default 102400)`},
		{Queue, ServiceBus, "MaxMessageSizeInKilobytes", "99999999999999999999GB", `MaxMessageSizeInKilobytes "99999999999999999999GB": want a size such as 1024, 512KB or 2GB (default 102400)`},
		{Queue, ServiceBus, "MaxMessageSizeInKilobytes", "9000000000GB", `MaxMessageSizeInKilobytes "9000000000GB": want a size such as 1024, 512KB or 2GB (default 102400)`},
		{Queue, ServiceBus, "DuplicateDetectionHistoryTimeWindow", "19s", "DuplicateDetectionHistoryTimeWindow PT19S is out of range: PT20S to P7D (default PT10M)"},
		{Queue, ServiceBus, "AutoDeleteOnIdle", "4m", "AutoDeleteOnIdle PT4M is out of range: PT5M or more, never (default never)"},
		{Queue, ServiceBus, "AutoDeleteOnIdle", "PT0S", `AutoDeleteOnIdle "PT0S": want a duration such as 30m or PT30M, or never (default never)`},
		{Queue, ServiceBus, "DefaultMessageTimeToLive", "1ms", "DefaultMessageTimeToLive PT0.001S is out of range: PT1S or more, never (default never)"},
		{Queue, ServiceBus, "UserMetadata", strings.Repeat("x", 1025), "is out of range: 0 to 1024 characters (default none)"},
		{Queue, ServiceBus, "Status", "Off", `Status "Off": want one of Active, Disabled, SendDisabled, ReceiveDisabled (default Active)`},
		{Topic, ServiceBus, "Status", "ReceiveDisabled", `Status "ReceiveDisabled": want one of Active, Disabled, SendDisabled (default Active)`},
		{Queue, ServiceBus, "RequiresSession", "yes", `RequiresSession "yes": want true or false (default false)`},
		{Queue, ServiceBus, "Dialect", "sqs", "the dialect is chosen before any property"},
		{Queue, ServiceBus, "VisibilityTimeout", "30", "a queue of servicebus has no VisibilityTimeout; here it is LockDuration"},
		{Queue, SQS, "LockDuration", "PT1M", "a queue of sqs has no LockDuration; here it is VisibilityTimeout"},
		{Queue, SQS, "MaxDeliveryCount", "5", "a queue of sqs has no MaxDeliveryCount"},
		{Topic, ServiceBus, "MaxDeliveryCount", "5", "a topic of servicebus has no MaxDeliveryCount"},
		{Queue, ServiceBus, "MaxDeliveryCuont", "5", `no property is named "MaxDeliveryCuont"; the nearest is MaxDeliveryCount`},
		{Queue, SQS, "redrive-policy", "a:1", `no property is named "redrive-policy"; the nearest is RedrivePolicy`},
		{Queue, ServiceBus, "", "5", `no property is named ""`},
		{Queue, SQS, "VisibilityTimeout", "43201", "VisibilityTimeout 43201 is out of range: 0 to 43200 (default 30)"},
		{Queue, SQS, "VisibilityTimeout", "99999999999999999999", `VisibilityTimeout "99999999999999999999": want a duration such as 30 (seconds)`},
		{Queue, SQS, "VisibilityTimeout", "9223372037", `VisibilityTimeout "9223372037": want a duration such as 30 (seconds)`},
		{Queue, SQS, "DelaySeconds", "901", "DelaySeconds 901 is out of range: 0 to 900 (default 0)"},
		{Queue, SQS, "MaximumMessageSize", "1023", "MaximumMessageSize 1023 is out of range: 1024 to 1048576 (default 1048576)"},
		{Queue, SQS, "MessageRetentionPeriod", "59", "MessageRetentionPeriod 59 is out of range: 60 to 1209600 (default 345600)"},
		{Queue, SQS, "ReceiveMessageWaitTimeSeconds", "21", "ReceiveMessageWaitTimeSeconds 21 is out of range: 0 to 20 (default 0)"},
		{Queue, SQS, "RedrivePolicy", "orders-dlq:1001", "is out of range: QUEUE:COUNT or JSON; count 1 to 1000 (default none)"},
		{Queue, SQS, "RedrivePolicy", "orders-dlq", "want QUEUE:COUNT"},
		{Queue, SQS, "RedrivePolicy", `{"target":"orders-dlq"}`, "does not contain maxReceiveCount"},
		{Queue, SQS, "RedrivePolicy", `{"maxReceiveCount":3}`, "does not contain target or deadLetterTargetArn"},
		{Queue, SQS, "RedrivePolicy", `{"target":"a","maxReceiveCount":1.5}`, "maxReceiveCount of the redrive policy is not a whole number"},
		{Queue, SQS, "RedrivePolicy", `{"target":`, "is no JSON object"},
		{Queue, SQS, "RedriveAllowPolicy", "byQueue", "is out of range"},
		{Queue, SQS, "RedriveAllowPolicy", "denyAll:a", "is out of range"},
		{Queue, SQS, "RedriveAllowPolicy", "someone", "allowAll, denyAll or byQueue"},
		{Queue, SQS, "RedriveAllowPolicy", `{"redrivePermission":`, "is no JSON object"},
	} {
		p := Defaults(c.kind, c.dialect)
		err := p.Set(c.kind, c.name, c.value)
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %s=%s: got %v, want %q", c.dialect, c.kind, c.name, c.value, err, c.want)
		}
		if want := Defaults(c.kind, c.dialect); !reflect.DeepEqual(p, want) {
			t.Errorf("%s=%s was refused and has changed the properties to %+v", c.name, c.value, p)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		kind    Kind
		dialect Dialect
		change  func(*Properties)
		want    string // "": it is valid
	}{
		{Queue, ServiceBus, func(p *Properties) { p.LockDuration = time.Millisecond }, ""}, // of the engine, for tests
		{Queue, ServiceBus, func(p *Properties) { p.LockDuration = time.Millisecond - 1 }, "LockDuration"},
		{Queue, ServiceBus, func(p *Properties) { p.LockDuration = 5*time.Minute + 1 }, "PT5S to PT5M (default PT1M)"},
		{Queue, ServiceBus, func(p *Properties) { p.MaxMessageBytes, p.MaxSize = 1, 1 }, ""},
		{Queue, ServiceBus, func(p *Properties) { p.MaxMessageBytes = 0 }, "MaxMessageSizeInKilobytes"},
		{Queue, ServiceBus, func(p *Properties) { p.MaxSize = -1 }, "MaxSizeInMegabytes"},
		{Queue, ServiceBus, func(p *Properties) { p.MaxDeliveryCount = 1 << 20 }, ""},
		{Queue, ServiceBus, func(p *Properties) { p.MaxDeliveryCount = 0 }, "MaxDeliveryCount"},
		{Queue, ServiceBus, func(p *Properties) { p.DefaultTTL = -1 }, "DefaultMessageTimeToLive"},
		{Queue, ServiceBus, func(p *Properties) { p.Status = "" }, "Status"},
		{Topic, ServiceBus, func(p *Properties) { p.Status = ReceiveDisabled }, "Status"},
		{Topic, ServiceBus, func(p *Properties) { p.RequiresSession = true }, "a topic of servicebus has no RequiresSession"},
		{Subscription, ServiceBus, func(p *Properties) { p.DetectDuplicates = true }, "a subscription of servicebus has no RequiresDuplicateDetection"},
		{Queue, ServiceBus, func(p *Properties) { p.CountOnReceive = true }, "a queue of servicebus has no CountOnReceive"},
		{Queue, ServiceBus, func(p *Properties) { p.Redrive = Redrive{"a", 1} }, "a queue of servicebus has no RedrivePolicy"},
		{Queue, ServiceBus, func(p *Properties) { p.SubQueues = false }, "a queue of servicebus has no SubQueues"},
		{Queue, ServiceBus, func(p *Properties) { p.ForwardTo = "a" }, ""},
		{Queue, ServiceBus, func(p *Properties) { p.ForwardTo, p.RequiresSession = "a", true }, "leave ForwardTo or RequiresSession out"},
		{Queue, SQS, func(p *Properties) { p.LockDuration = 0 }, ""},
		{Queue, SQS, func(p *Properties) { p.Redrive = Redrive{"a", 1000} }, ""},
		{Queue, SQS, func(p *Properties) { p.Redrive = Redrive{"a", 0} }, "RedrivePolicy"},
		{Queue, SQS, func(p *Properties) { p.Redrive = Redrive{"", 1} }, "RedrivePolicy"},
		{Queue, SQS, func(p *Properties) { p.Redrive = Redrive{"a b", 1} }, "RedrivePolicy"},
		{Queue, SQS, func(p *Properties) {
			p.RedriveAllow = RedriveAllow{AllowByQueue, slices.Repeat([]string{"a"}, 10)}
		}, ""},
		{Queue, SQS, func(p *Properties) {
			p.RedriveAllow = RedriveAllow{AllowByQueue, slices.Repeat([]string{"a"}, 11)}
		}, "RedriveAllowPolicy"},
		{Queue, SQS, func(p *Properties) { p.RedriveAllow = RedriveAllow{AllowByQueue, []string{"a", "b/c"}} }, "RedriveAllowPolicy"},
		{Queue, SQS, func(p *Properties) { p.ContentDeduplication = true }, "ContentBasedDeduplication is for FIFO queues: create the queue with FifoQueue=true"},
		{Queue, SQS, func(p *Properties) { p.DeduplicationPerGroup = true }, "DeduplicationScope is for FIFO queues"},
		{Queue, SQS, func(p *Properties) { p.Groups, p.DuplicateWindow = true, time.Minute }, "RequiresDuplicateDetection"}, // without what belongs to it
		{Queue, SQS, func(p *Properties) { p.setFIFO(true) }, ""},
		{Queue, SQS, func(p *Properties) { p.MaxDeliveryCount = 5 }, "a queue of sqs has no MaxDeliveryCount"},
		{Topic, SQS, func(*Properties) {}, "sqs has queues only, no topic"},
		{"bucket", ServiceBus, func(*Properties) {}, `no entity is a "bucket"`},
		{Queue, ServiceBus, func(p *Properties) { p.Dialect = "kafka" }, `no entity is a "queue" of "kafka"`},
		{Queue, SQS, func(p *Properties) { p.Extra = map[string]string{"Policy": "{}"} }, ""},
	} {
		p := Defaults(c.kind, c.dialect)
		c.change(&p)
		err := p.validate(c.kind)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s %s: got %v, want %q", c.dialect, c.kind, err, c.want)
		}
	}
}

func TestChanged(t *testing.T) {
	for _, c := range []struct {
		kind    Kind
		dialect Dialect
		change  func(*Properties)
		want    string // "": it may change
	}{
		{Queue, ServiceBus, func(p *Properties) { p.LockDuration, p.ForwardTo = time.Second, "a" }, ""},
		{Queue, ServiceBus, func(p *Properties) { p.RequiresSession = true }, "RequiresSession is fixed when a queue is created: it stays false"},
		{Queue, ServiceBus, func(p *Properties) { p.DetectDuplicates = true }, "RequiresDuplicateDetection is fixed"},
		{Topic, ServiceBus, func(p *Properties) { p.Partitioning = true }, "EnablePartitioning is fixed when a topic is created"},
		{Queue, ServiceBus, func(p *Properties) { *p = Defaults(Queue, SQS) }, "Dialect is fixed when a queue is created: it stays servicebus"},
		{Queue, SQS, func(p *Properties) { p.setFIFO(true) }, "FifoQueue is fixed when a queue is created: it stays false"},
		{Queue, SQS, func(p *Properties) { p.Redrive = Redrive{"a", 1} }, ""},
	} {
		from := Defaults(c.kind, c.dialect)
		p := from
		c.change(&p)
		err := p.changed(&from, c.kind)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s %s: got %v, want %q", c.dialect, c.kind, err, c.want)
		}
	}
}

// TestListSets: everything that is listed can be set to what it is, and to its default.
func TestListSets(t *testing.T) {
	for _, n := range natures {
		p := Defaults(n.kind, n.dialect)
		names := map[string]bool{}
		for _, property := range p.List(n.kind) {
			if names[property.Name] || property.Range == "" {
				t.Errorf("%s %s: %+v", n.dialect, n.kind, property)
			}
			names[property.Name] = true
			for _, value := range []string{property.Value, property.Default} {
				if err := p.Set(n.kind, property.Name, value); err != nil {
					t.Errorf("%s %s: %s=%s: %v", n.dialect, n.kind, property.Name, value, err)
				}
			}
		}
		if want := Defaults(n.kind, n.dialect); !reflect.DeepEqual(p, want) {
			t.Errorf("%s %s: got\n%+v, want\n%+v", n.dialect, n.kind, p, want)
		}
	}
}

func TestValidateName(t *testing.T) {
	fifo := Defaults(Queue, SQS)
	fifo.setFIFO(true)
	standard, bus := Defaults(Queue, SQS), Defaults(Queue, ServiceBus)
	for _, c := range []struct {
		name string
		kind Kind
		p    *Properties
		want string // "": it is valid
	}{
		{"orders", Queue, &bus, ""},
		{"a/b.c/d_e-f", Queue, &bus, ""},
		{strings.Repeat("x", 260), Topic, &bus, ""},
		{strings.Repeat("x", 261), Topic, &bus, "1 to 260 characters, this has 261"},
		{"", Queue, &bus, "1 to 260 characters, this has 0"},
		{"a//b", Queue, &bus, "a slash"},
		{"a/", Queue, &bus, "a slash"},
		{"a b", Queue, &bus, `' ' in the name "a b"; use letters, digits and ._-`},
		{"été", Queue, &bus, "'é' in the name"},
		{"a/$dlq", Queue, &bus, "'$' in the name"},
		{"orders.fifo", Queue, &bus, ""},
		{"billing/Subscriptions/invoices", Subscription, &bus, ""},
		{"billing/subscriptions/invoices", Subscription, &bus, ""},
		{"a/b/Subscriptions/c", Subscription, &bus, ""},
		{"t/Subscriptions/" + strings.Repeat("x", 50), Subscription, &bus, ""},
		{"t/Subscriptions/" + strings.Repeat("x", 51), Subscription, &bus, "1 to 50 characters, this has 51"},
		{"t/Subscriptions/", Subscription, &bus, "1 to 50 characters, this has 0"},
		{"Subscriptions/a", Subscription, &bus, "is named topic/Subscriptions/name"},
		{"billing/invoices", Subscription, &bus, "is named topic/Subscriptions/name"},
		{"billing/Subscriptions/invoices", Queue, &bus, "is the name of a subscription, not of a queue"},
		{"orders-DLQ_1", Queue, &standard, ""},
		{"a/b", Queue, &standard, "'/' in the name"},
		{"a.b", Queue, &standard, "'.' in the name"},
		{"us-east-1/000000000000/orders", Queue, &standard, ""},
		{"ru-central1/b1gABC/orders.fifo", Queue, &fifo, ""},
		{"us-east-1/000000000000/orders", Queue, &fifo, "call it orders.fifo"},
		{"us-east-1/000000000000/orders.fifo", Queue, &standard, "create it with FifoQueue=true"},
		{strings.Repeat("r", 40) + "/" + strings.Repeat("A", 40) + "/" + strings.Repeat("x", 80), Queue, &standard, ""},
		{"r/a/" + strings.Repeat("x", 81), Queue, &standard, "1 to 80 characters, this has 81"},
		{"r/a/", Queue, &standard, "1 to 80 characters, this has 0"},
		{strings.Repeat("r", 41) + "/a/orders", Queue, &standard, "the region"},
		{"r/" + strings.Repeat("a", 41) + "/orders", Queue, &standard, "the account"},
		{"/a/orders", Queue, &standard, "the region"},
		{"r//orders", Queue, &standard, "the account"},
		{"EU/a/orders", Queue, &standard, "the region"},
		{"r/a-b/orders", Queue, &standard, "the account"},
		{"r/Subscriptions/orders", Queue, &standard, "the account"},
		{"r/a/b.c", Queue, &standard, "'.' in the name"},
		{"r/a/b/c", Queue, &standard, "'/' in the name"},
		{"", Queue, &standard, "1 to 80 characters, this has 0"},
		{strings.Repeat("x", 80), Queue, &standard, ""},
		{strings.Repeat("x", 81), Queue, &standard, "1 to 80 characters, this has 81"},
		{strings.Repeat("x", 75) + ".fifo", Queue, &fifo, ""},
		{strings.Repeat("x", 76) + ".fifo", Queue, &fifo, "1 to 80 characters, this has 81"},
		{".fifo", Queue, &fifo, "1 to 80 characters"},
		{"orders", Queue, &fifo, "call it orders.fifo"},
		{"orders.fifo", Queue, &standard, "create it with FifoQueue=true"},
	} {
		err := validateName(c.name, c.kind, c.p)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s %q: got %v, want %q", c.kind, c.name, err, c.want)
		}
	}
	for name, want := range map[string]bool{"$Default": true, "eu-1": true, "": false, "$": false, "a/b": false, strings.Repeat("x", 51): false} {
		if err := validateRuleName(name); (err == nil) != want {
			t.Errorf("rule %q: %v", name, err)
		}
	}
}

// FuzzSet: what is accepted is valid by itself, and its text is accepted and means the same.
func FuzzSet(f *testing.F) {
	for _, seed := range [][2]string{
		{"LockDuration", "PT30S"},
		{"MaxSizeInMegabytes", "2GB"},
		{"VisibilityTimeout", "45"},
		{"Status", "disabled"},
		{"RedrivePolicy", `{"target":"a","maxReceiveCount":"3"}`},
		{"RedriveAllowPolicy", "byQueue:a,b"},
		{"ForwardTo", "sb://x/a/b"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		for _, n := range natures {
			p := Defaults(n.kind, n.dialect)
			if p.Set(n.kind, name, value) != nil {
				continue
			}
			s, err := p.find(n.kind, name)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.validate(n.kind); err != nil && !s.fifo && s.field != "ForwardTo" {
				t.Errorf("%s=%q is set and then refused: %v", name, value, err)
			}
			again := Defaults(n.kind, n.dialect)
			if err := again.Set(n.kind, name, s.get(&p)); err != nil || !reflect.DeepEqual(p, again) {
				t.Errorf("%s=%q is written %q, which is %+v, %v", name, value, s.get(&p), again, err)
			}
		}
	})
}
