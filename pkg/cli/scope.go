package cli

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/kopf-go/kopf/pkg/model/selector"
)

// scope are the flags that say which namespaces a command is about.
type scope struct {
	all        bool // the default too
	namespaces []string
}

func (s *scope) define(set *pflag.FlagSet) {
	set.StringArrayVarP(&s.namespaces, "namespace", "n", nil, "serve this `namespace`, or those that fit a pattern such as \"team-*,!team-x\"; can be repeated")
	set.BoolVarP(&s.all, "all-namespaces", "A", false, "serve all namespaces (the default)")
}

// splitNamespaces are the names of which several were given at once. In a pattern the
// comma has a meaning of its own.
func splitNamespaces(given []string) []string {
	var namespaces []string
	for _, value := range given {
		if selector.IsPattern(strings.ReplaceAll(value, ",", "")) {
			namespaces = append(namespaces, value)
		} else {
			namespaces = append(namespaces, strings.Split(value, ",")...)
		}
	}
	return namespaces
}
