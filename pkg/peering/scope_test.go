package peering

import (
	"slices"
	"testing"

	"github.com/kopf-go/kopf/pkg/settings"
)

func TestPeeringFollowsTheScopeUnlessItIsConfigured(t *testing.T) {
	tests := map[string]struct {
		scope   []string
		peering settings.Peering
		want    []string // none: the peering of the cluster
		follows bool
	}{
		"an operator for the cluster":              {nil, settings.Peering{}, nil, false},
		"an operator for namespaces":               {[]string{"a", "b-*"}, settings.Peering{}, []string{"a"}, true},
		"cluster-wide, for namespaces":             {[]string{"a"}, settings.Peering{ClusterWide: true}, nil, false},
		"cluster-wide, for the cluster":            {nil, settings.Peering{ClusterWide: true}, nil, false},
		"namespaces, for the cluster":              {nil, settings.Peering{Namespaces: []string{"a"}}, []string{"a"}, false},
		"other namespaces than those of the scope": {[]string{"b"}, settings.Peering{Namespaces: []string{"a"}}, []string{"a"}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, follows := NamespacesOf(settings.Settings{Scope: settings.Scope{Namespaces: test.scope}, Peering: test.peering})
			if !slices.Equal(got, test.want) || follows != test.follows {
				t.Errorf("got %v, %v", got, follows)
			}
		})
	}
}
