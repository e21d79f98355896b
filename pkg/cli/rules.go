package cli

import (
	"slices"

	"github.com/spf13/pflag"
)

// rule is about a flag that makes no sense together with others.
type rule struct {
	flag   string
	others []string
	why    string
}

// rules are about the flags of all commands.
func rules() []rule {
	return []rule{
		{"all-namespaces", []string{"namespace"}, "--all-namespaces and --namespace exclude each other"},
		{"dev", []string{"priority"}, "--dev is a priority of its own: it excludes --priority"},
		{"standalone", []string{"peering", "priority", "dev"}, "--standalone excludes --peering, --priority and --dev: there are no peers"},
		{"quiet", []string{"verbose", "debug"}, "--quiet excludes --verbose and --debug"},
		{"no-log-prefix", []string{"log-prefix"}, "--no-log-prefix and --log-prefix exclude each other"},
	}
}

// excluding are the flags that make no sense together with one of them.
func excluding(name string) []string {
	var found []string
	for _, rule := range rules() {
		if rule.flag == name {
			found = append(found, rule.others...)
		}
		if slices.Contains(rule.others, name) {
			found = append(found, rule.flag)
		}
	}
	return found
}

// given tells whether one of the flags says something.
func given(set *pflag.FlagSet, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		flag := set.Lookup(name)
		return flag != nil && flag.Changed && (flag.Value.Type() != "bool" || flag.Value.String() == "true")
	})
}

// check finds what makes no sense.
func check(set *pflag.FlagSet) error {
	for _, rule := range rules() {
		if given(set, rule.flag) && given(set, rule.others...) {
			return misused("%s", rule.why)
		}
	}
	// It is more likely a variable that a script has not set than a wish.
	if namespaces := set.Lookup("namespace"); given(set, "namespace") {
		list, _ := namespaces.Value.(pflag.SliceValue)
		if names := separated(list.GetSlice()); len(names) == 0 || slices.Contains(names, "") {
			return misused("--namespace is empty: give a name, or --all-namespaces")
		}
	}
	for _, name := range []string{"peering", "lease-name", "lease-namespace", "log-refkey", "id"} {
		if given(set, name) && set.Lookup(name).Value.String() == "" {
			return misused("--%s is empty: give a value, or leave it out", name)
		}
	}
	if given(set, "metrics-secure") && !given(set, "metrics") {
		return misused("--metrics-secure needs --metrics: the address to serve them at")
	}
	return nil
}
