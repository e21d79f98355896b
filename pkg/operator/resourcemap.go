package operator

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
)

// resourceMap contains the known resources of the cluster. It is safe for concurrent use.
type resourceMap struct {
	mu        sync.RWMutex
	resources map[schema.GroupVersionResource]selector.Resource
}

// update replaces the resources. It keeps the resources of unavailable API groups.
func (m *resourceMap) update(found discovery.Snapshot) {
	resources := make(map[schema.GroupVersionResource]selector.Resource, len(found.Resources))
	m.mu.Lock()
	defer m.mu.Unlock()
	for gvr, known := range m.resources {
		if _, unknown := found.Failed[gvr.GroupVersion()]; unknown {
			resources[gvr] = known
		}
	}
	for _, resource := range found.Resources {
		resources[resource.GVR()] = resource
	}
	m.resources = resources
}

func (m *resourceMap) find(gvr schema.GroupVersionResource) (selector.Resource, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	resource, found := m.resources[gvr]
	return resource, found
}

// all returns the resources in the order of their names.
func (m *resourceMap) all() []selector.Resource {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.SortedFunc(maps.Values(m.resources), func(a, b selector.Resource) int {
		return strings.Compare(a.String(), b.String())
	})
}
