package cmd

import (
	"slices"

	"dlq/backends/broker/namespace"
)

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
	var rows []limitRow
	for _, l := range tier.Limits() {
		rows = append(rows, limitRow{"namespace", l.Name, l.Value})
	}
	out := newListing(a, opts.format, []column[limitRow]{
		{title: "OF", cell: func(r limitRow) string { return r.Of }},
		{title: "LIMIT", cell: func(r limitRow) string { return r.Name }},
		{title: "VALUE", cell: func(r limitRow) string { return r.Value }},
	}, func(dst []byte, r limitRow) ([]byte, error) { return appendJSON(dst, r) })
	return out.all(succeeding(slices.Values(rows)))
}
