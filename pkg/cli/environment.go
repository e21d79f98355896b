package cli

import (
	"errors"
	"os"
	"strings"

	"github.com/spf13/pflag"
)

// environment returns the value of a variable. An empty variable counts as unset.
func environment(name string) string { return os.Getenv(name) }

// environmentVariable returns the environment variable of a flag, such as KOPF_LOG_FORMAT.
func environmentVariable(flag *pflag.Flag) string {
	if flag.Name == "help" {
		return ""
	}
	return "KOPF_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
}

// applyEnvironment sets flags from the environment that are not on the command line, and
// checks the result. A flag on the command line also disables the variables that it
// excludes.
func applyEnvironment(set *pflag.FlagSet, lookup func(string) string) error {
	silent := map[string]bool{}
	set.Visit(func(flag *pflag.Flag) {
		silent[flag.Name] = true
		if !isSet(set, flag.Name) {
			return
		}
		for _, name := range conflictingFlags(flag.Name) {
			silent[name] = true
		}
	})
	var mistake error
	set.VisitAll(func(flag *pflag.Flag) {
		name := environmentVariable(flag)
		if name == "" || silent[flag.Name] || mistake != nil {
			return
		}
		if value := lookup(name); value != "" {
			if err := set.Set(flag.Name, value); err != nil {
				mistake = usageErrorf("%s=%q in the environment: %s", name, value, valueError(flag, err))
			}
		}
	})
	if mistake != nil {
		return mistake
	}
	return validateFlags(set)
}

// valueError returns why a value is invalid, without repeating the flag and the value.
func valueError(flag *pflag.Flag, err error) string {
	switch flag.Value.Type() {
	case "bool":
		return "expected true or false"
	case "int":
		return "expected an integer"
	case "duration":
		if _, ours := flag.Value.(*lifetimeFlag); !ours {
			return "expected a duration with a unit, such as 30s or 5m"
		}
	}
	var refused *pflag.InvalidValueError
	if errors.As(err, &refused) && refused.Unwrap() != nil {
		err = refused.Unwrap()
	}
	return err.Error()
}

// flagError returns the usage error for an error of the flag parser.
func flagError(err error) error {
	var refused *pflag.InvalidValueError
	if errors.As(err, &refused) {
		flag := refused.GetFlag()
		return usageErrorf("--%s=%q: %s", flag.Name, refused.GetValue(), valueError(flag, err))
	}
	return &usageError{err}
}
