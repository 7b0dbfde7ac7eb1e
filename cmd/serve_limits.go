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
	"dlq/backends/broker/port"
	"dlq/backends/broker/sqsd"
)

// serverLimits are those of the servers.
type serverLimits struct {
	amqp amqpd.Limits
	port port.Limits
	sqs  sqsd.Limits
}

// knob is a limit that --limit sets.
type knob struct {
	of, name string
	at       func(*serverLimits) any // a pointer to a number or a duration
}

func knobs() []knob {
	return []knob{
		{"port", "connections", func(l *serverLimits) any { return &l.port.Connections }},
		{"port", "connections-unidentified", func(l *serverLimits) any { return &l.port.Unidentified }},
		{"port", "connections-unidentified-of-a-host", func(l *serverLimits) any { return &l.port.PerAddress }},
		{"port", "identify-timeout", func(l *serverLimits) any { return &l.port.Identify }},
		{"port", "websocket-message-bytes", func(l *serverLimits) any { return &l.port.Message }},
		{"http", "header-timeout", func(l *serverLimits) any { return &l.port.ReadHeader }},
		{"http", "read-timeout", func(l *serverLimits) any { return &l.port.Read }},
		{"http", "answer-timeout", func(l *serverLimits) any { return &l.port.Write }},
		{"http", "keep-alive-timeout", func(l *serverLimits) any { return &l.port.Idle }},
		{"http", "header-bytes", func(l *serverLimits) any { return &l.port.HeaderBytes }},
		{"amqp", "amqp-connections", func(l *serverLimits) any { return &l.amqp.Connections }},
		{"amqp", "connections-opening", func(l *serverLimits) any { return &l.amqp.Opening }},
		{"amqp", "connections-opening-of-a-host", func(l *serverLimits) any { return &l.amqp.OpeningPerHost }},
		{"amqp", "open-timeout", func(l *serverLimits) any { return &l.amqp.OpenTimeout }},
		{"amqp", "idle-timeout", func(l *serverLimits) any { return &l.amqp.IdleTimeout }},
		{"amqp", "write-timeout", func(l *serverLimits) any { return &l.amqp.WriteTimeout }},
		{"amqp", "frame-bytes", func(l *serverLimits) any { return &l.amqp.MaxFrameSize }},
		{"amqp", "sessions-of-a-connection", func(l *serverLimits) any { return &l.amqp.Sessions }},
		{"amqp", "links-of-a-session", func(l *serverLimits) any { return &l.amqp.Links }},
		{"amqp", "unsettled-of-a-link", func(l *serverLimits) any { return &l.amqp.Unsettled }},
		{"amqp", "held-bytes-of-a-connection", func(l *serverLimits) any { return &l.amqp.Held }},
		{"amqp", "partial-bytes-of-a-connection", func(l *serverLimits) any { return &l.amqp.Partial }},
		{"amqp", "outgoing-bytes-of-a-connection", func(l *serverLimits) any { return &l.amqp.Outgoing }},
		{"sqs", "request-bytes", func(l *serverLimits) any { return &l.sqs.BodyBytes }},
		{"sqs", "form-parameters", func(l *serverLimits) any { return &l.sqs.FormKeys }},
		{"sqs", "waiting-receives", func(l *serverLimits) any { return &l.sqs.Waiting }},
		{"sqs", "calls-per-second", func(l *serverLimits) any { return &l.sqs.Calls }},
		{"sqs", "fifo-calls-per-second", func(l *serverLimits) any { return &l.sqs.FIFOCalls }},
		{"sqs", "name-rests-after-delete", func(l *serverLimits) any { return &l.sqs.AfterDelete }},
	}
}

// serverLimits are the servers' own limits, unless the tier or --limit says otherwise.
func (o *serveOptions) serverLimits(tier namespace.Tier) (serverLimits, error) {
	l := serverLimits{amqpd.DefaultLimits(), port.DefaultLimits(), sqsd.DefaultLimits()}
	if tier.Connections > 0 {
		l.amqp.Connections = tier.Connections
	}
	all := knobs()
	for _, arg := range o.limit {
		name, value, _ := strings.Cut(arg, "=")
		i := slices.IndexFunc(all, func(k knob) bool { return strings.EqualFold(k.name, name) })
		if i < 0 {
			return l, fail(exitUsage, "dlq serve --print-limits lists them", "--limit %s: there is no such limit of a server", name)
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
		rows = append(rows, limitRow{k.of, k.name, limitText(k.at(&server))})
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
	const off = "off" // nothing is bound
	switch at := at.(type) {
	case *time.Duration:
		if *at == 0 {
			return off
		}
		return at.String()
	case *int:
		if *at == 0 {
			return off
		}
		return strconv.Itoa(*at)
	case *uint32:
		return strconv.FormatUint(uint64(*at), 10)
	case *int64:
		return strconv.FormatInt(*at, 10)
	}
	return fmt.Sprint(at)
}
