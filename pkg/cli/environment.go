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
	if _, without := flag.Annotations[withoutVariable]; without || flag.Name == "help" || flag.Name == "version" {
		return ""
	}
	return "KOPF_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
}

// withoutVariable is the annotation of a flag that has no environment variable.
const withoutVariable = "without variable"

// applyEnvironment sets flags from the environment that are not on the command line, and
// checks the result. A flag on the command line also disables the variables that it
// excludes. The variables of Kopf's command of that name are aliases.
func applyEnvironment(set *pflag.FlagSet, kopfCommand string, lookup func(string) string) error {
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
		if !silent[flag.Name] && mistake == nil {
			mistake = setFromEnvironment(set, flag, kopfCommand, lookup)
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
