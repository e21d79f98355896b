package cli

import (
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/kopf-go/kopf/pkg/cli/launch"
)

// kopfNames are the names of options in the variables of Kopf's command line, where they
// differ from those of our flags.
var kopfNames = map[string][]string{
	"namespace":      {"NAMESPACES", "NAMESPACE"},
	"all-namespaces": {"CLUSTERWIDE"},
	"liveness":       {"LIVENESS_ENDPOINT"},
}

// kopfVariables returns the variables that Kopf reads for a flag of one of its commands, such
// as KOPF_RUN_PRIORITY. Kopf's operators are configured by them, and so are those that take
// over from one.
func kopfVariables(kopfCommand string, flag *pflag.Flag) []string {
	names, differ := kopfNames[flag.Name]
	if !differ {
		names = []string{strings.TrimPrefix(environmentVariable(flag), "KOPF_")}
	}
	variables := make([]string, len(names))
	for i, name := range names {
		variables[i] = "KOPF_" + strings.ToUpper(kopfCommand) + "_" + name
	}
	return variables
}

// setFromEnvironment sets a flag from its variable or from one of Kopf's. It is a mistake if
// several are set to different values.
func setFromEnvironment(set *pflag.FlagSet, flag *pflag.Flag, kopfCommand string, lookup func(string) string) error {
	ours := environmentVariable(flag)
	if ours == "" {
		return nil
	}
	var name, value string
	var values []string
	for _, variable := range append([]string{ours}, kopfVariables(kopfCommand, flag)...) {
		text := lookup(variable)
		if text == "" {
			continue
		}
		found := []string{text}
		if variable != ours {
			found = kopfValues(flag, text)
		}
		if values != nil && !slices.Equal(values, found) {
			return usageErrorf("%s=%q and %s=%q in the environment contradict each other: set only one of them", name, value, variable, text)
		}
		name = variable
		value = text
		values = found
	}
	for _, one := range values {
		if err := set.Set(flag.Name, one); err != nil {
			return usageErrorf("%s=%q in the environment: %s", name, value, valueError(flag, err))
		}
	}
	return nil
}

// kopfValues parses a variable of Kopf: the values of lists are separated by spaces, and
// booleans can be words.
func kopfValues(flag *pflag.Flag, text string) []string {
	if _, list := flag.Value.(pflag.SliceValue); list {
		return strings.Fields(text)
	}
	if flag.Value.Type() == "bool" {
		switch strings.ToLower(text) {
		case "yes", "y", "on":
			return []string{"true"}
		case "no", "n", "off":
			return []string{"false"}
		}
	}
	return []string{text}
}

// serviceVariable matches the variables that Kubernetes sets for services whose names begin
// with kopf.
var serviceVariable = regexp.MustCompile(`^KOPF_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// unknownVariables returns the variables of the environment, as NAME=value, that look like
// ours or Kopf's but have no effect on any command.
func unknownVariables(environ []string) []string {
	known := map[string]bool{launch.CalledAsVariable: true}
	for command, set := range map[string]*pflag.FlagSet{
		"run": newOperatorCommand("operator", nil).Flags(), "freeze": newFreezeCommand().Flags(), "resume": newResumeCommand().Flags(),
	} {
		set.VisitAll(func(flag *pflag.Flag) {
			for _, name := range append(kopfVariables(command, flag), environmentVariable(flag)) {
				known[name] = true
			}
		})
	}
	var unknown []string
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, "KOPF_") && !known[name] && !serviceVariable.MatchString(name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown
}
