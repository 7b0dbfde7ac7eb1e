package atomd

import (
	"encoding/json"
	"strconv"
	"strings"

	"dlq/backends/broker"
	"dlq/backends/broker/sas"
)

// What is kept in the properties of an entity beside what the engine knows, by element.
const (
	extraPrefix = "atom:"
	extraRules  = extraPrefix + "AuthorizationRules" // JSON
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

// kept returns the text of an element as it was given, if it still means what the property is
// now.
func kept(p *broker.Properties, kind broker.Kind, name, now string) string {
	given, ok := p.Extra[extraPrefix+name]
	if !ok {
		return now
	}
	probe := *p
	if probe.Set(kind, name, given) != nil || value(&probe, kind, name) != value(p, kind, name) {
		return now
	}
	return given
}

// value returns a property as text.
func value(p *broker.Properties, kind broker.Kind, name string) string {
	for _, one := range p.List(kind) {
		if one.Name == name {
			return one.Value
		}
	}
	return ""
}

// authorizationRule is a key of an entity.
type authorizationRule struct {
	KeyName, PrimaryKey, SecondaryKey string
	Rights                            []string
	ClaimType, ClaimValue             string
}

// authorizationRules returns the keys of an entity.
func authorizationRules(p *broker.Properties) []authorizationRule {
	var rules []authorizationRule
	_ = json.Unmarshal([]byte(p.Extra[extraRules]), &rules) // what this package wrote, or nothing
	return rules
}

func keepRules(p *broker.Properties, rules []authorizationRule) error {
	if len(rules) > 12 {
		return badRequest("An entity has at most 12 authorization rules.")
	}
	b, err := json.Marshal(rules)
	if err != nil {
		return err
	}
	keep(p, strings.TrimPrefix(extraRules, extraPrefix), string(b))
	return nil
}

// AuthorizationKeys returns the keys that the authorization rules of an entity hold, which
// sign tokens for it.
func AuthorizationKeys(entity string, p broker.Properties) []sas.Key {
	var keys []sas.Key
	for _, r := range authorizationRules(&p) {
		rights, err := sas.ParseRights(r.Rights...)
		if err != nil {
			continue // it was refused when it was set
		}
		keys = append(keys, sas.Key{
			Name: r.KeyName, Primary: sas.NewSecret(r.PrimaryKey), Secondary: sas.NewSecret(r.SecondaryKey), Rights: rights, Entity: entity,
		})
	}
	return keys
}

func parseBool(s string) (bool, error) {
	b, err := strconv.ParseBool(strings.TrimSpace(s))
	if err != nil {
		return false, badRequest("'%s' is neither true nor false.", s)
	}
	return b, nil
}
