package atomd

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dlq/backends/broker"
	"dlq/backends/message"
)

var update = flag.Bool("update", false, "write the answers that are found into testdata")

// A description of each kind with all that a client may set, in an order that is not the
// service's.
const (
	everyQueue = `<UserMetadata>  mine &amp; "yours"	</UserMetadata><LockDuration>PT0H4M</LockDuration><MaxSizeInMegabytes>2048</MaxSizeInMegabytes>
		<RequiresDuplicateDetection>true</RequiresDuplicateDetection><RequiresSession>true</RequiresSession><DefaultMessageTimeToLive>PT72H</DefaultMessageTimeToLive>
		<DeadLetteringOnMessageExpiration>true</DeadLetteringOnMessageExpiration><DuplicateDetectionHistoryTimeWindow>PT600S</DuplicateDetectionHistoryTimeWindow>
		<MaxDeliveryCount>5</MaxDeliveryCount><EnableBatchedOperations>false</EnableBatchedOperations><IsAnonymousAccessible>true</IsAnonymousAccessible>
		<Status>SendDisabled</Status><ForwardDeadLetteredMessagesTo>sb://contoso.example/sink</ForwardDeadLetteredMessagesTo>
		<AutoDeleteOnIdle>P1DT0S</AutoDeleteOnIdle><EnablePartitioning>true</EnablePartitioning><EnableExpress>true</EnableExpress>
		<MaxMessageSizeInKilobytes>1024</MaxMessageSizeInKilobytes><SizeInBytes>7</SizeInBytes><MessageCount>7</MessageCount>
		<AuthorizationRules><AuthorizationRule i:type="SharedAccessAuthorizationRule"><ClaimType>SharedAccessKey</ClaimType><ClaimValue>None</ClaimValue>
		<Rights><AccessRights>Manage</AccessRights><AccessRights>Send</AccessRights><AccessRights>Listen</AccessRights></Rights>
		<CreatedTime>2020-01-01T00:00:00Z</CreatedTime><KeyName>all</KeyName><PrimaryKey>one=</PrimaryKey><SecondaryKey>two=</SecondaryKey></AuthorizationRule></AuthorizationRules>`
	everySubscription = `<AutoDeleteOnIdle>PT5M</AutoDeleteOnIdle><LockDuration>PT30S</LockDuration><RequiresSession>false</RequiresSession>
		<DefaultMessageTimeToLive>P14D</DefaultMessageTimeToLive><DeadLetteringOnMessageExpiration>true</DeadLetteringOnMessageExpiration>
		<DeadLetteringOnFilterEvaluationExceptions>false</DeadLetteringOnFilterEvaluationExceptions><MaxDeliveryCount>2000</MaxDeliveryCount>
		<EnableBatchedOperations>true</EnableBatchedOperations><Status>ReceiveDisabled</Status><ForwardTo>https://contoso.example:5671/sink</ForwardTo><UserMetadata/>`
	everyRule = `<Name>ignored</Name><Action i:type="SqlRuleAction"><SqlExpression>SET a = @x</SqlExpression><CompatibilityLevel>20</CompatibilityLevel>
		<Parameters><KeyValueOfstringanyType><Key>@x</Key><Value i:type="l28:int" xmlns:l28="http://www.w3.org/2001/XMLSchema">1</Value></KeyValueOfstringanyType></Parameters></Action>
		<Filter i:type="CorrelationFilter"><ContentType>t</ContentType><CorrelationId>c</CorrelationId><Label>l</Label><MessageId>m</MessageId><ReplyTo>r</ReplyTo>
		<ReplyToSessionId>rs</ReplyToSessionId><SessionId>s</SessionId><To></To>
		<Properties><KeyValueOfstringanyType><Key>k</Key><Value i:type="l28:string" xmlns:l28="http://www.w3.org/2001/XMLSchema">v</Value></KeyValueOfstringanyType></Properties></Filter>`
)

// TestGolden holds whole answers against those in testdata, line by line: clients depend on the
// order of the elements, on prefixes, and on each being there. go test -update writes them.
func TestGolden(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.SKU = "Premium" })
	f.must("PUT", "/sink", queueBody(""))
	f.must("PUT", "/sized", queueBody(everyQueue))
	f.must("PUT", "/plain", queueBody(""))
	f.must("PUT", "/events", topicBody("<DefaultMessageTimeToLive>PT1H</DefaultMessageTimeToLive><FilteringMessagesBeforePublishing>true</FilteringMessagesBeforePublishing><EnableSubscriptionPartitioning>true</EnableSubscriptionPartitioning>"))
	f.must("PUT", "/events/Subscriptions/plain", subscriptionBody(""))
	f.must("PUT", "/events/Subscriptions/every", subscriptionBody(everySubscription))
	f.must("PUT", "/events/Subscriptions/plain/Rules/every", ruleBody(everyRule))
	f.fill()
	for _, tt := range []struct{ name, path string }{
		{"namespace", "/$namespaceinfo?api-version=2024-05"},
		{"queue", "/plain?api-version=2021-05"},
		{"queue-every", "/sized?api-version=2021-05"},
		{"topic", "/events?api-version=2024-05"},
		{"topic-2021-05", "/events?api-version=2021-05"},
		{"subscription", "/events/Subscriptions/plain?api-version=2017-04"},
		{"subscription-every", "/events/subscriptions/every?api-version=2017-04"},
		{"rule", "/events/Subscriptions/plain/Rules/every?api-version=2017-04"},
		{"rule-default", "/events/Subscriptions/plain/Rules/$Default?api-version=2017-04"},
		{"queues", "/$Resources/Queues?api-version=2021-05&$skip=1&$top=1"},
		{"rules", "/events/Subscriptions/plain/Rules?api-version=2021-05"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := strings.ReplaceAll(f.must("GET", tt.path, "").body, "><", ">\n<") + "\n"
			file := filepath.Join("testdata", tt.name+".xml")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s has changed:\n%s\nwant:\n%s", tt.path, got, want)
			}
		})
	}
}

// fill sends messages, so that the queue plain has two active ones, of which one is locked, and
// one each that is deferred, dead-lettered and scheduled.
func (f *fixture) fill() {
	f.tb.Helper()
	f.now = f.now.Add(time.Minute)
	plain := broker.Address{Name: "plain"}
	msgs := make([]*message.Message, 5)
	for i := range msgs {
		msgs[i] = &message.Message{}
	}
	later := f.now.Add(time.Hour)
	msgs[4].ScheduledEnqueueTime = &later
	if _, err := f.engine.Send(plain, msgs); err != nil {
		f.tb.Fatal(err)
	}
	got, err := f.engine.Receive(plain, broker.ReceiveOptions{Max: 3})
	if err != nil || len(got) != 3 {
		f.tb.Fatal(len(got), err)
	}
	for i, action := range []broker.Action{broker.Defer, broker.Bury} {
		errs, err := f.engine.Settle(plain, broker.Outcome{Action: action}, got[i].Broker.LockToken)
		if err := errors.Join(append(errs, err)...); err != nil {
			f.tb.Fatal(err)
		}
	}
}
