package broker

import (
	"math"
	"testing"
	"time"
)

func TestParseISODuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"PT1M":                    time.Minute,
		"PT0S":                    0,
		"P14D":                    14 * 24 * time.Hour,
		"PT6H":                    6 * time.Hour,
		"PT90S":                   90 * time.Second,
		"PT0.5S":                  500 * time.Millisecond,
		"PT0.0000001S":            100,
		"PT0.1234567899S":         123456789, // what is finer than a nanosecond is dropped
		"P1DT2H3M4.5S":            26*time.Hour + 3*time.Minute + 4500*time.Millisecond,
		"P1Y2M3D":                 (365 + 60 + 3) * 24 * time.Hour,
		"P1M":                     30 * 24 * time.Hour, // before the T a month
		"PT1M1S":                  61 * time.Second,    // behind it a minute
		"-PT5S":                   -5 * time.Second,
		MaxTimeSpan:               math.MaxInt64, // what .NET says for ever
		"P99999999999999999999D":  math.MaxInt64,
		"PT9223372036.854775807S": math.MaxInt64,
	} {
		got, err := ParseISODuration(text)
		if err != nil || got != want {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "P", "PT", "-P", "P1", "1D", "PD", "P1DT", "PT1D", "P1H", "PT1S1M", "PT1M1M", "P1D1D", "P1D1Y", "PT1.S", "PT.5S",
		"P0.5D", "PT1.5M", "PT1,5S", "P 1D", "pt1m", "+PT1S", "PT-1S", "P1DT1HT1M", "PT1S ", "30s", "PT١S",
	} {
		if got, err := ParseISODuration(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

func TestFormatISODuration(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"PT0S":                          0,
		"PT1M":                          time.Minute,
		"PT6H":                          6 * time.Hour,
		"P14D":                          14 * 24 * time.Hour,
		"P1DT1S":                        24*time.Hour + time.Second,
		"PT1H0.05S":                     time.Hour + 50*time.Millisecond,
		"PT0.000000001S":                1,
		"-PT1M30S":                      -90 * time.Second,
		"P106751DT23H47M16.854775807S":  math.MaxInt64,
		"-P106751DT23H47M16.854775808S": math.MinInt64,
	} {
		if got := FormatISODuration(d); got != want {
			t.Errorf("%v is written %q, want %q", d, got, want)
		}
	}
}

// FuzzISODuration: what is read is written as a text that reads as the same.
func FuzzISODuration(f *testing.F) {
	for _, seed := range []string{"PT1M", MaxTimeSpan, "-P1Y2M3DT4H5M6.789S", "P1", "PT1M1S"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseISODuration(text)
		if err != nil {
			return
		}
		written := FormatISODuration(d)
		if again, err := ParseISODuration(written); err != nil || again != d {
			t.Errorf("%q is %v, written %q, and read again %v, %v", text, d, written, again, err)
		}
	})
}
