package cli

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/kopf-go/kopf/pkg/model/selector"
)

// scope holds the flags that select namespaces.
type scope struct {
	all        bool // also the default
	namespaces []string
}

func (s *scope) define(set *pflag.FlagSet) {
	set.StringArrayVarP(&s.namespaces, "namespace", "n", nil, "serve this `namespace`, or the namespaces that match a pattern such as \"team-*,!team-x\"; can be repeated")
	set.BoolVarP(&s.all, "all-namespaces", "A", false, "serve all namespaces (the default)")
}

// splitNamespaces splits lists of names at commas. It does not split patterns, in which
// commas separate globs.
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
