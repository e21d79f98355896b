package cli

import (
	"errors"
	"os"
	"strings"

	"github.com/spf13/pflag"
)

// environment looks a variable up; an empty one is as good as none.
func environment(name string) string { return os.Getenv(name) }

// variable is the name of the variable of a flag: KOPF_LOG_FORMAT.
func variable(flag *pflag.Flag) string {
	if flag.Name == "help" {
		return ""
	}
	return "KOPF_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
}

// completed takes from the environment what the command line does not say, and
// finds what makes no sense then. A flag of the command line silences the variables
// that exclude it too.
func completed(set *pflag.FlagSet, lookup func(string) string) error {
	silent := map[string]bool{}
	set.Visit(func(flag *pflag.Flag) {
		silent[flag.Name] = true
		if !given(set, flag.Name) {
			return
		}
		for _, name := range excluding(flag.Name) {
			silent[name] = true
		}
	})
	var mistake error
	set.VisitAll(func(flag *pflag.Flag) {
		name := variable(flag)
		if name == "" || silent[flag.Name] || mistake != nil {
			return
		}
		if value := lookup(name); value != "" {
			if err := set.Set(flag.Name, value); err != nil {
				mistake = misused("%s=%q in the environment: %s", name, value, reason(flag, err))
			}
		}
	})
	if mistake != nil {
		return mistake
	}
	return check(set)
}

// reason is why a value was refused, without the repetition of flag and value.
func reason(flag *pflag.Flag, err error) string {
	switch flag.Value.Type() {
	case "bool":
		return "it is neither true nor false"
	case "int":
		return "it is no whole number"
	case "duration":
		if _, ours := flag.Value.(*lifetime); !ours {
			return "it is no time with a unit, such as 30s or 5m"
		}
	}
	var refused *pflag.InvalidValueError
	if errors.As(err, &refused) && refused.Unwrap() != nil {
		err = refused.Unwrap()
	}
	return err.Error()
}

// misspelt is a mistake that was found while the command line was read.
func misspelt(err error) error {
	var refused *pflag.InvalidValueError
	if errors.As(err, &refused) {
		flag := refused.GetFlag()
		return misused("--%s=%q: %s", flag.Name, refused.GetValue(), reason(flag, err))
	}
	return &usageError{err}
}
