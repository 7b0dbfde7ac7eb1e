package cmd

import (
	"dlq/backends/broker/sas"
)

// keys returns the keys that count: generated ones, which a data directory keeps, unless configured
// ones alone do, and those of the configuration.
func (s serving) keys() ([]sas.Key, error) {
	var keys []sas.Key
	switch {
	case s.mode == sas.Require:
	case s.dir == "":
		keys = []sas.Key{
			{Name: sas.RootKeyName, Primary: sas.Generate(), Rights: sas.Manage},
			{Name: sas.SendOnlyName, Primary: sas.Generate(), Rights: sas.Send},
			{Name: sas.ListenOnlyName, Primary: sas.Generate(), Rights: sas.Listen},
		}
	default:
		var err error
		if keys, err = sas.LoadOrCreate(s.dir); err != nil {
			return nil, fail(exitFailed, "", "%w", err)
		}
	}
	if s.config != nil {
		keys = append(keys, s.config.Keys...)
	}
	return keys, nil
}
