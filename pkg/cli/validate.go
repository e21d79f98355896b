package cli

import (
	"slices"

	"github.com/spf13/pflag"
)

// flagRule is a flag that cannot be used together with others.
type flagRule struct {
	flag    string
	others  []string
	message string
}

// flagRules returns the rules for the flags of all commands.
func flagRules() []flagRule {
	return []flagRule{
		{"all-namespaces", []string{"namespace"}, "--all-namespaces and --namespace cannot be used together"},
		{"standalone", []string{"peering"}, "--standalone cannot be used with --peering, because it ignores peers"},
		{"quiet", []string{"verbose", "debug"}, "--quiet cannot be used with --verbose or --debug"},
		{"no-log-prefix", []string{"log-prefix"}, "--no-log-prefix and --log-prefix cannot be used together"},
	}
}

// conflictingFlags returns the flags that cannot be used together with a flag.
func conflictingFlags(name string) []string {
	var found []string
	for _, rule := range flagRules() {
		if rule.flag == name {
			found = append(found, rule.others...)
		}
		if slices.Contains(rule.others, name) {
			found = append(found, rule.flag)
		}
	}
	return found
}

// isSet reports whether one of the flags is set, and is not false.
func isSet(set *pflag.FlagSet, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		flag := set.Lookup(name)
		return flag != nil && flag.Changed && (flag.Value.Type() != "bool" || flag.Value.String() == "true")
	})
}

// validateFlags returns the first mistake in the flags.
func validateFlags(set *pflag.FlagSet) error {
	for _, rule := range flagRules() {
		if isSet(set, rule.flag) && isSet(set, rule.others...) {
			return usageErrorf("%s", rule.message)
		}
	}
	// An empty value is more likely an unset variable in a script than intended.
	if namespaces := set.Lookup("namespace"); isSet(set, "namespace") {
		list, _ := namespaces.Value.(pflag.SliceValue)
		if names := splitNamespaces(list.GetSlice()); len(names) == 0 || slices.Contains(names, "") {
			return usageErrorf("--namespace is empty: set a name, or use --all-namespaces")
		}
	}
	for _, name := range []string{"peering", "lease-name", "lease-namespace", "log-refkey", "id"} {
		if isSet(set, name) && set.Lookup(name).Value.String() == "" {
			return usageErrorf("--%s is empty: set a value, or omit the flag", name)
		}
	}
	if isSet(set, "metrics-secure") && !isSet(set, "metrics") {
		return usageErrorf("--metrics-secure requires --metrics, the address to listen on")
	}
	return nil
}
