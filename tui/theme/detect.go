package theme

import "strings"

// DetectDark tells from the environment whether the background is dark: first
// DLQ_THEME (dark or light), then COLORFGBG, which some terminals set. When
// neither says, known is false and dark the better guess. It does not ask the
// terminal: that takes time and belongs to the UI alone.
func DetectDark(getenv func(string) string) (dark, known bool) {
	switch strings.ToLower(getenv("DLQ_THEME")) {
	case "dark":
		return true, true
	case "light":
		return false, true
	}
	// "15;0", or with a middle part "15;default;0": the last is the background.
	fgbg := getenv("COLORFGBG")
	if !strings.Contains(fgbg, ";") {
		return true, false
	}
	switch fgbg[strings.LastIndexByte(fgbg, ';')+1:] {
	case "0", "1", "2", "3", "4", "5", "6", "8":
		return true, true
	case "7", "9", "10", "11", "12", "13", "14", "15":
		return false, true
	}
	return true, false
}
