package discovery

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/pkg/model/selector"
)

// Tracker tells what is to be served as the cluster changes. It trusts good news
// at once, and bad news when it is confirmed:
//
//   - What is missing is given up when two snapshots in a row lack it. API servers
//     that stand behind one address learn of changes at different times.
//   - While some API groups are down, what could be among them stays as it was.
//   - A version of a resource is not served before the earlier one is given up.
//
// The zero value is ready to use; it is for one goroutine.
type Tracker struct {
	selected []SelectedResource
	missing  map[schema.GroupVersionResource]struct{}
}

// Update takes a resolution, and the snapshot that it was made of. It returns what
// is to be served, and whether another snapshot may have something else to say
// though nothing happens meanwhile.
func (t *Tracker) Update(r Resolution, in Snapshot) (served []SelectedResource, settled bool) {
	missed := map[schema.GroupVersionResource]struct{}{}
	for _, before := range t.selected {
		if slices.ContainsFunc(r.Resources, before.isSame) {
			continue
		}
		if _, again := t.missing[before.GVR()]; again && !in.isUncertain(before.Resource) {
			continue
		}
		missed[before.GVR()] = struct{}{}
		served = append(served, before)
	}
	kept := len(served)
	for _, found := range r.Resources {
		if !slices.ContainsFunc(served[:kept], found.isOtherVersion) {
			served = append(served, t.keepSelectors(found, in))
		}
	}
	t.selected, t.missing = served, missed
	return served, len(missed) == 0 && r.isComplete()
}

// merged keeps the selectors that cannot find anything for now.
func (t *Tracker) keepSelectors(found SelectedResource, in Snapshot) SelectedResource {
	if len(in.Failed) == 0 {
		return found
	}
	for _, before := range t.selected {
		if !before.isSame(found) {
			continue
		}
		for _, sel := range before.Selectors {
			if !slices.Contains(found.Selectors, sel) {
				found.Selectors = append(slices.Clip(found.Selectors), sel)
			}
		}
	}
	return found
}

// doubts tells whether it is not known whether a resource should be served.
func (s Snapshot) isUncertain(r selector.Resource) bool {
	if _, down := s.Failed[r.GroupVersion()]; down {
		return true
	}
	return len(s.Failed) > 0 && slices.ContainsFunc(s.Resources, func(other selector.Resource) bool { return other.GVR() == r.GVR() })
}

// complete tells whether all selectors have found what they mean.
func (r Resolution) isComplete() bool {
	return !slices.ContainsFunc(r.Warnings, func(warning error) bool {
		switch warning.(type) { //nolint:errorlint // they are not wrapped
		case *selector.NotFoundError, *IncompleteError:
			return true
		default:
			return false
		}
	})
}

func (s SelectedResource) isSame(other SelectedResource) bool { return s.GVR() == other.GVR() }

// sibling tells whether it is another version of the same resource.
func (s SelectedResource) isOtherVersion(other SelectedResource) bool {
	return s.GVR() != other.GVR() && s.GVR().GroupResource() == other.GVR().GroupResource()
}
