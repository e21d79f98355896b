package cli

import (
	"errors"
	"os"
	"strings"

	"github.com/spf13/pflag"
)

// environment looks a variable up; an empty one is as good as none.
func environment(name string) string { return os.Getenv(name) }

// environmentVariable is the name of the variable of a flag: KOPF_LOG_FORMAT.
func environmentVariable(flag *pflag.Flag) string {
	if flag.Name == "help" {
		return ""
	}
	return "KOPF_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
}

// applyEnvironment takes from the environment what the command line does not say, and
// finds what makes no sense then. A flag of the command line silences the variables
// that exclude it too.
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

// valueError is why a value was refused, without the repetition of flag and value.
func valueError(flag *pflag.Flag, err error) string {
	switch flag.Value.Type() {
	case "bool":
		return "it is neither true nor false"
	case "int":
		return "it is no whole number"
	case "duration":
		if _, ours := flag.Value.(*lifetimeFlag); !ours {
			return "it is no time with a unit, such as 30s or 5m"
		}
	}
	var refused *pflag.InvalidValueError
	if errors.As(err, &refused) && refused.Unwrap() != nil {
		err = refused.Unwrap()
	}
	return err.Error()
}

// flagError is a mistake that was found while the command line was read.
func flagError(err error) error {
	var refused *pflag.InvalidValueError
	if errors.As(err, &refused) {
		flag := refused.GetFlag()
		return usageErrorf("--%s=%q: %s", flag.Name, refused.GetValue(), valueError(flag, err))
	}
	return &usageError{err}
}
