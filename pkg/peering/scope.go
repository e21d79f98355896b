package peering

import (
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/settings"
)

// NamespacesOf returns the namespaces of the peerings of an operator at its start, none for the
// peering of the cluster. It reports whether they change with the scope of the operator.
func NamespacesOf(s settings.Settings) (namespaces []string, followsScope bool) {
	switch {
	case s.Peering.ClusterWide:
		return nil, false
	case len(s.Peering.Namespaces) > 0:
		return s.Peering.Namespaces, false
	default:
		return selector.Namespaces(s.Scope.Namespaces).Names(), len(s.Scope.Namespaces) > 0
	}
}
