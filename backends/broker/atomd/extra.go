package atomd

import (
	"strconv"
	"strings"

	"dlq/backends/broker"
)

// What is kept in the properties of an entity beside what the engine knows, by element.
const (
	extraPrefix = "atom:"
	extraKeys   = "AuthorizationRules" // JSON
)

// textual are the elements whose text is given back as it came as long as it means what the
// engine has: clients compare it.
var textual = []string{
	"LockDuration", "DefaultMessageTimeToLive", "DuplicateDetectionHistoryTimeWindow", "AutoDeleteOnIdle",
	"ForwardTo", "ForwardDeadLetteredMessagesTo",
}

// unused are the elements that mean nothing here and are given back.
var unused = []string{"IsAnonymousAccessible", "EnableExpress", "EnableSubscriptionPartitioning"}

// keep notes the text of an element.
func keep(p *broker.Properties, name, text string) {
	if p.Extra == nil {
		p.Extra = map[string]string{}
	}
	p.Extra[extraPrefix+name] = text
}

// maxKept bounds the texts of textual, in bytes. What is longer is given back in our own form.
const maxKept = 512

// kept returns the text of an element as it was given, if it still means what the property is
// now.
func kept(p *broker.Properties, kind broker.Kind, name, now string) string {
	given, ok := p.Extra[extraPrefix+name]
	if !ok {
		return now
	}
	probe := *p
	if probe.Set(kind, name, plain(name, given)) != nil || field(&probe, name) != field(p, name) {
		return now
	}
	return given
}

// field returns the property of an element that is textual or immutable.
func field(p *broker.Properties, name string) any {
	switch name {
	case "LockDuration":
		return p.LockDuration
	case "DefaultMessageTimeToLive":
		return p.DefaultTTL
	case "DuplicateDetectionHistoryTimeWindow":
		return p.DuplicateWindow
	case "AutoDeleteOnIdle":
		return p.AutoDeleteOnIdle
	case "ForwardTo":
		return p.ForwardTo
	case "ForwardDeadLetteredMessagesTo":
		return p.ForwardDeadLettersTo
	case "RequiresSession":
		return p.RequiresSession
	case "RequiresDuplicateDetection":
		return p.DetectDuplicates
	case "EnablePartitioning":
		return p.Partitioning
	}
	return nil
}

// keepFlag notes a flag that means nothing here.
func keepFlag(p *broker.Properties, name, text string) error {
	b, err := parseBool(text)
	if err == nil {
		keep(p, name, strconv.FormatBool(b))
	}
	return err
}

// keptFlag writes a flag that means nothing here.
func keptFlag(w *writer, info *broker.Info, name string) {
	w.flag(name, info.Extra[extraPrefix+name] == "true")
}

// parseBool reads a boolean of XML Schema.
func parseBool(s string) (bool, error) {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "true", "1":
		return true, nil
	case "false", "0":
		return false, nil
	}
	return false, badRequest("'%s' is neither true nor false.", s)
}
