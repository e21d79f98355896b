package cli

import (
	"slices"

	"github.com/spf13/pflag"
)

// flagRule is about a flag that makes no sense together with others.
type flagRule struct {
	flag    string
	others  []string
	message string
}

// flagRules are about the flags of all commands.
func flagRules() []flagRule {
	return []flagRule{
		{"all-namespaces", []string{"namespace"}, "--all-namespaces and --namespace exclude each other"},
		{"dev", []string{"priority"}, "--dev is a priority of its own: it excludes --priority"},
		{"standalone", []string{"peering", "priority", "dev"}, "--standalone excludes --peering, --priority and --dev: there are no peers"},
		{"quiet", []string{"verbose", "debug"}, "--quiet excludes --verbose and --debug"},
		{"no-log-prefix", []string{"log-prefix"}, "--no-log-prefix and --log-prefix exclude each other"},
	}
}

// conflictingFlags are the flags that make no sense together with one of them.
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

// isSet reports whether one of the flags says something.
func isSet(set *pflag.FlagSet, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		flag := set.Lookup(name)
		return flag != nil && flag.Changed && (flag.Value.Type() != "bool" || flag.Value.String() == "true")
	})
}

// validateFlags finds what makes no sense.
func validateFlags(set *pflag.FlagSet) error {
	for _, rule := range flagRules() {
		if isSet(set, rule.flag) && isSet(set, rule.others...) {
			return usageErrorf("%s", rule.message)
		}
	}
	// It is more likely a variable that a script has not set than a wish.
	if namespaces := set.Lookup("namespace"); isSet(set, "namespace") {
		list, _ := namespaces.Value.(pflag.SliceValue)
		if names := splitNamespaces(list.GetSlice()); len(names) == 0 || slices.Contains(names, "") {
			return usageErrorf("--namespace is empty: give a name, or --all-namespaces")
		}
	}
	for _, name := range []string{"peering", "lease-name", "lease-namespace", "log-refkey", "id"} {
		if isSet(set, name) && set.Lookup(name).Value.String() == "" {
			return usageErrorf("--%s is empty: give a value, or leave it out", name)
		}
	}
	if isSet(set, "metrics-secure") && !isSet(set, "metrics") {
		return usageErrorf("--metrics-secure needs --metrics: the address to serve them at")
	}
	return nil
}
