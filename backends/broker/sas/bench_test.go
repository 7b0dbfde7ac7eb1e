package sas_test

import (
	"testing"
	"time"

	"dlq/backends/broker/sas"
)

func BenchmarkVerify(b *testing.B) {
	k := testKeyring()
	token := sas.Sign("amqps://localhost:5672/orders", sas.RootKeyName, rootKey, now.Add(time.Hour))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := k.Verify(token, now); err != nil {
			b.Fatal(err)
		}
	}
}
