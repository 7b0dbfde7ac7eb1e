package atomd

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"dlq/backends/broker"
	"dlq/backends/broker/sas"
)

// Bounds of the authorization rules of an entity.
// https://learn.microsoft.com/azure/service-bus-messaging/service-bus-quotas
const (
	maxKeys      = 12
	maxKeyLength = 256 // bytes of a name or of a key
)

// authorizationRule is an authorization rule of an entity, which is a key by another name.
type authorizationRule struct {
	KeyName, PrimaryKey, SecondaryKey string
	Rights                            []string
	ClaimType, ClaimValue             string
	Created, Modified                 string // as the client wrote them; "": it did not
}

// authorizationRules returns the authorization rules of an entity.
func authorizationRules(p *broker.Properties) []authorizationRule {
	var rules []authorizationRule
	_ = json.Unmarshal([]byte(p.Extra[extraPrefix+extraKeys]), &rules) // what this package wrote, or nothing
	return rules
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

// setKeys takes the authorization rules of an entity, all of them.
func setKeys(p *broker.Properties, list *element) error {
	rules := []authorizationRule{}
	for _, e := range list.children {
		r, err := readKey(e)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(rules, func(other authorizationRule) bool { return strings.EqualFold(other.KeyName, r.KeyName) }) {
			return badRequest("There are two authorization rules with the KeyName '%s'.", r.KeyName)
		}
		rules = append(rules, r)
	}
	if len(rules) > maxKeys {
		return badRequest("An entity has at most %d authorization rules.", maxKeys)
	}
	b, err := json.Marshal(rules)
	if err != nil {
		return err
	}
	keep(p, extraKeys, string(b))
	return nil
}

// readKey reads one authorization rule. A key that it leaves out is made.
func readKey(e *element) (authorizationRule, error) {
	r := authorizationRule{
		KeyName: e.get("KeyName"), PrimaryKey: e.get("PrimaryKey"), SecondaryKey: e.get("SecondaryKey"),
		ClaimType: "SharedAccessKey", ClaimValue: "None", Created: e.get("CreatedTime"), Modified: e.get("ModifiedTime"),
	}
	for _, right := range e.child("Rights").list() {
		name := strings.TrimSpace(right.text)
		if name != "Manage" && name != "Send" && name != "Listen" {
			return r, badRequest("'%s' is not one of the rights Manage, Send and Listen.", name)
		}
		r.Rights = append(r.Rights, name)
	}
	for _, at := range []string{r.Created, r.Modified} {
		if _, err := time.Parse(time.RFC3339, at); at != "" && err != nil {
			return r, badRequest("The time '%s' of an authorization rule is no dateTime.", at)
		}
	}
	for _, key := range []*string{&r.PrimaryKey, &r.SecondaryKey} {
		if *key == "" {
			*key = sas.Generate().Reveal()
		}
	}
	switch {
	case r.KeyName == "":
		return r, badRequest("An authorization rule needs a KeyName.")
	case max(len(r.KeyName), len(r.PrimaryKey), len(r.SecondaryKey)) > maxKeyLength:
		return r, badRequest("The name and the keys of an authorization rule have at most %d bytes each.", maxKeyLength)
	case len(r.Rights) == 0:
		return r, badRequest("The authorization rule '%s' gives no rights.", r.KeyName)
	case slices.Contains(r.Rights, "Manage") && !(slices.Contains(r.Rights, "Send") && slices.Contains(r.Rights, "Listen")):
		return r, badRequest("The right Manage needs Send and Listen, too.")
	}
	return r, nil
}

// writeKeys writes the authorization rules of an entity.
func writeKeys(w *writer, info *broker.Info) {
	w.open("AuthorizationRules")
	for _, r := range authorizationRules(&info.Properties) {
		w.open("AuthorizationRule", "i:type", "SharedAccessAuthorizationRule")
		w.text("ClaimType", r.ClaimType)
		w.text("ClaimValue", r.ClaimValue)
		w.open("Rights")
		for _, right := range r.Rights {
			w.text("AccessRights", right)
		}
		w.close("Rights")
		w.optional("CreatedTime", r.Created)
		w.optional("ModifiedTime", r.Modified)
		w.text("KeyName", r.KeyName)
		w.text("PrimaryKey", r.PrimaryKey)
		w.text("SecondaryKey", r.SecondaryKey)
		w.close("AuthorizationRule")
	}
	w.close("AuthorizationRules")
}
