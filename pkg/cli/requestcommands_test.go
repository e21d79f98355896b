package cli

import (
	"errors"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func TestTheEndOfASuspension(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 5000, time.UTC)
	for name, test := range map[string]struct {
		arguments []string
		want      time.Time
		mistake   string
	}{
		"by default":    {nil, now.Add(24 * time.Hour).Truncate(time.Second), ""},
		"a duration":    {[]string{"--for=2h"}, now.Add(2 * time.Hour).Truncate(time.Second), ""},
		"a time":        {[]string{"--until=2026-01-31T14:00:00+01:00"}, time.Date(2026, 1, 31, 13, 0, 0, 0, time.UTC), ""},
		"no end":        {[]string{"--forever"}, time.Time{}, ""},
		"nothing":       {[]string{"--for=0"}, time.Time{}, "--for must be positive, such as 2h"},
		"two ends":      {[]string{"--for=2h", "--forever"}, time.Time{}, "--for, --until, and --forever say when the suspension ends: choose one"},
		"no time zone":  {[]string{"--until=2026-01-31"}, time.Time{}, `--until is "2026-01-31": use a time with a time zone, such as 2026-01-31T13:00:00Z`},
		"the past":      {[]string{"--until=2026-01-31T12:30:00+01:00"}, time.Time{}, "--until is 2026-01-31T12:30:00+01:00, which is over"},
		"a strange end": {[]string{"--until=forever"}, time.Time{}, `--until is "forever": use a time with a time zone, such as 2026-01-31T13:00:00Z`},
	} {
		t.Run(name, func(t *testing.T) {
			end, set := suspensionEnd{}, pflag.NewFlagSet("suspend", pflag.ContinueOnError)
			end.define(set)
			if err := set.Parse(test.arguments); err != nil {
				t.Fatal(err)
			}
			got, err := end.parse(set, now)
			var usage *usageError
			switch {
			case test.mistake == "" && (err != nil || !got.Equal(test.want)):
				t.Errorf("got %v, %v", got, err)
			case test.mistake != "" && (!errors.As(err, &usage) || err.Error() != test.mistake):
				t.Errorf("got %v", err)
			}
		})
	}
}
