package local

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"dlq/backends"
	"dlq/backends/message"
)

// BenchmarkThroughTheOwner measures what the socket costs: each call here, and through it.
func BenchmarkThroughTheOwner(b *testing.B) {
	dir := b.TempDir()
	here := owned(b, Options{Dir: dir})
	if err := here.CreateQueue(b.Context(), shared.Name); err != nil {
		b.Fatal(err)
	}
	const depth = 10_000
	for range depth / 1000 {
		send(b, here, 1000)
	}
	for _, side := range []struct {
		name string
		b    everything
	}{{"owner", here}, {"socket", through(b, Options{Dir: dir})}} {
		b.Run("describe/"+side.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := side.b.DescribeEntity(b.Context(), shared); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("peek/"+side.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if n := count(b, side.b); n != depth {
					b.Fatal(n)
				}
			}
			b.ReportMetric(float64(b.N*depth)/b.Elapsed().Seconds(), "messages/s")
		})
		b.Run("sweep/"+side.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if n := passOver(b, side.b); n != depth {
					b.Fatal(n)
				}
			}
			b.ReportMetric(float64(b.N*depth)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}

// passOver locks everything, wants nothing, and lets go.
func passOver(b *testing.B, backend backends.Backend) (n int) {
	b.Helper()
	l, err := backend.Lease(b.Context(), shared, backends.LeaseOptions{Want: func(*message.Message) bool { n++; return false }})
	if err == nil {
		_, err = l.Next(b.Context())
	}
	if !errors.Is(err, io.EOF) {
		b.Fatal(err)
	}
	if err := l.Release(b.Context()); err != nil {
		b.Fatal(fmt.Errorf("release: %w", err))
	}
	return n
}
