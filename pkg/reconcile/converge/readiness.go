package converge

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Unready returns the children of a parent that are not ready, as texts, if their handlers wait for
// them. It does not say why, because that changes without an event for the parent.
func (c *Converger) Unready(parent types.UID) (children []string) {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, hash := range c.owners[parent] {
		s := c.states[hash]
		if s == nil || !s.waits {
			continue
		}
		for _, key := range slices.SortedFunc(maps.Keys(s.known), compareKeys) {
			if s.known[key].readiness != current {
				children = append(children, key.String())
			}
		}
	}
	return children
}
