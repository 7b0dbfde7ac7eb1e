package theme

import "strings"

// Background is what colours have to be legible on.
type Background uint8

const (
	// Unknown stands for either: the colours are darker than they could be on black
	// and lighter than on white.
	Unknown Background = iota
	Dark
	Light
)

// Detect tells the background from the environment: first DLQ_THEME (dark or
// light), then COLORFGBG, which some terminals set. It does not ask the terminal:
// one that does not answer would be waited for, and an answer that comes late
// would be taken for keys.
func Detect(getenv func(string) string) Background {
	switch strings.ToLower(getenv("DLQ_THEME")) {
	case "dark":
		return Dark
	case "light":
		return Light
	}
	// "15;0", or with a middle part "15;default;0": the last is the background.
	fgbg := getenv("COLORFGBG")
	if !strings.Contains(fgbg, ";") {
		return Unknown
	}
	switch fgbg[strings.LastIndexByte(fgbg, ';')+1:] {
	case "0", "1", "2", "3", "4", "5", "6", "8":
		return Dark
	case "7", "9", "10", "11", "12", "13", "14", "15":
		return Light
	}
	return Unknown
}
