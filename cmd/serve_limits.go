package cmd

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"dlq/backends/amqp"
	"dlq/backends/broker/amqpd"
	"dlq/backends/broker/namespace"
)

// knob is a limit of the AMQP server that --limit sets.
type knob struct {
	name string
	at   func(*amqpd.Limits) any // a pointer to a number or a duration
}

func knobs() []knob {
	return []knob{
		{"connections", func(l *amqpd.Limits) any { return &l.Connections }},
		{"connections-opening", func(l *amqpd.Limits) any { return &l.Opening }},
		{"connections-opening-of-a-host", func(l *amqpd.Limits) any { return &l.OpeningPerHost }},
		{"open-timeout", func(l *amqpd.Limits) any { return &l.OpenTimeout }},
		{"idle-timeout", func(l *amqpd.Limits) any { return &l.IdleTimeout }},
		{"write-timeout", func(l *amqpd.Limits) any { return &l.WriteTimeout }},
		{"frame-bytes", func(l *amqpd.Limits) any { return &l.MaxFrameSize }},
		{"sessions-of-a-connection", func(l *amqpd.Limits) any { return &l.Sessions }},
		{"links-of-a-session", func(l *amqpd.Limits) any { return &l.Links }},
		{"unsettled-of-a-link", func(l *amqpd.Limits) any { return &l.Unsettled }},
		{"held-bytes-of-a-connection", func(l *amqpd.Limits) any { return &l.Held }},
		{"partial-bytes-of-a-connection", func(l *amqpd.Limits) any { return &l.Partial }},
		{"outgoing-bytes-of-a-connection", func(l *amqpd.Limits) any { return &l.Outgoing }},
	}
}

// serverLimits are those of the AMQP server: its own, unless the tier or --limit says otherwise.
func (o *serveOptions) serverLimits(tier namespace.Tier) (amqpd.Limits, error) {
	l := amqpd.DefaultLimits()
	if tier.Connections > 0 {
		l.Connections = tier.Connections
	}
	for _, arg := range o.limit {
		name, value, _ := strings.Cut(arg, "=")
		all := knobs()
		i := slices.IndexFunc(all, func(k knob) bool { return strings.EqualFold(k.name, name) })
		if i < 0 {
			return l, fail(exitUsage, "dlq serve --print-limits lists them", "--limit %s: there is no such limit of AMQP", name)
		}
		if err := setLimit(all[i].at(&l), value); err != nil {
			return l, usagef("--limit %s: %w", arg, err)
		}
	}
	return l, nil
}

// setLimit reads a value that is more than zero: zero would mean the default.
func setLimit(at any, value string) error {
	var number uint64
	var err error
	switch at := at.(type) {
	case *time.Duration:
		if *at, err = time.ParseDuration(value); err != nil || *at <= 0 {
			return fmt.Errorf("want a duration such as 30s")
		}
		return nil
	case *int:
		number, err = strconv.ParseUint(value, 10, 31)
		*at = int(number)
	case *uint32:
		number, err = strconv.ParseUint(value, 10, 32)
		*at = uint32(number)
		if err == nil && number < 512 {
			return fmt.Errorf("a frame has at least 512 bytes")
		}
	case *int64:
		number, err = strconv.ParseUint(value, 10, 63)
		*at = int64(number)
	}
	if err != nil || number == 0 {
		return fmt.Errorf("want a whole number from 1 on")
	}
	return nil
}

// limitRow is a line of dlq serve --print-limits. Its keys are an interface.
type limitRow struct {
	Of    string `json:"of"`
	Name  string `json:"name"`
	Value string `json:"value"`
}

// runPrintLimits lists what the tier and the servers bound.
func runPrintLimits(a *app, opts serveOptions) error {
	tier, err := namespace.TierNamed(opts.limits)
	if err != nil {
		return usagef("--limits: %w", err)
	}
	server, err := opts.serverLimits(tier)
	if err != nil {
		return err
	}
	var rows []limitRow
	for _, l := range tier.Limits() {
		rows = append(rows, limitRow{"namespace", l.Name, l.Value})
	}
	for _, k := range knobs() {
		rows = append(rows, limitRow{"amqp", k.name, limitText(k.at(&server))})
	}
	for _, l := range []struct {
		name string
		max  int
	}{
		{"depth of a value", amqp.MaxDepth},
		{"elements of a value", amqp.MaxCount},
		{"elements without bytes", amqp.MaxZeroWidth},
		{"bytes of a symbol", amqp.MaxSymbol},
	} {
		rows = append(rows, limitRow{"amqp value", l.name, strconv.Itoa(l.max)})
	}
	out := newListing(a, opts.format, []column[limitRow]{
		{title: "OF", cell: func(r limitRow) string { return r.Of }},
		{title: "LIMIT", cell: func(r limitRow) string { return r.Name }},
		{title: "VALUE", cell: func(r limitRow) string { return r.Value }},
	}, func(dst []byte, r limitRow) ([]byte, error) { return appendJSON(dst, r) })
	return out.all(succeeding(slices.Values(rows)))
}

// limitText writes what a knob points to.
func limitText(at any) string {
	switch at := at.(type) {
	case *time.Duration:
		return at.String()
	case *int:
		return strconv.Itoa(*at)
	case *uint32:
		return strconv.FormatUint(uint64(*at), 10)
	case *int64:
		return strconv.FormatInt(*at, 10)
	}
	return fmt.Sprint(at)
}
