package export

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Format is a file format.
type Format uint8

const (
	// JSONL is one message per line (NDJSON): exact, and the format to choose.
	JSONL Format = iota
	// JSON is one array of messages: exact.
	JSON
	// CSV is a table for spreadsheets. It cannot be read back.
	CSV
)

// String returns the name that [ParseFormat] reads.
func (f Format) String() string {
	switch f {
	case JSONL:
		return "jsonl"
	case JSON:
		return "json"
	case CSV:
		return "csv"
	}
	return "unknown"
}

// ParseFormat reads the name of a format, in any case; "ndjson" is another name of jsonl.
func ParseFormat(s string) (Format, error) {
	switch strings.ToLower(s) {
	case "jsonl", "ndjson":
		return JSONL, nil
	case "json":
		return JSON, nil
	case "csv":
		return CSV, nil
	}
	return JSONL, fmt.Errorf("unknown format %q: use jsonl, json or csv", s)
}

// FormatOf returns the format that the extension of a file name stands for, and whether
// it stands for one.
func FormatOf(path string) (Format, bool) {
	f, err := ParseFormat(strings.TrimPrefix(filepath.Ext(path), "."))
	return f, err == nil
}
