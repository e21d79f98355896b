package discovery

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/pkg/model/selector"
)

// Tracker decides what is served as the cluster changes. It applies additions at once,
// and removals once they are confirmed:
//
//   - A missing resource is given up when two consecutive snapshots lack it: API
//     servers behind one address learn of changes at different times.
//   - While some API groups are unavailable, resources that could be in them stay
//     as they were. A selector that has become ambiguous does not wait for them.
//   - A version of a resource is not served before the earlier one is given up.
//
// The zero value is ready to use. A Tracker is not safe for concurrent use.
type Tracker struct {
	selected []SelectedResource
	missing  map[schema.GroupVersionResource]struct{}
}

// Update takes a resolution and the snapshot that it was made from. It returns the
// resources to serve, and whether the result is complete: otherwise another snapshot
// may change it although the cluster does not change.
func (t *Tracker) Update(r Resolution, in Snapshot) (selected []SelectedResource, complete bool) {
	missing := map[schema.GroupVersionResource]struct{}{}
	for _, before := range t.selected {
		if slices.ContainsFunc(r.Resources, before.isSame) {
			continue
		}
		if _, again := t.missing[before.GVR()]; again && !r.isUncertain(before, in) {
			continue
		}
		missing[before.GVR()] = struct{}{}
		selected = append(selected, before)
	}
	kept := len(selected)
	for _, found := range r.Resources {
		if !slices.ContainsFunc(selected[:kept], found.isOtherVersion) {
			selected = append(selected, t.keepSelectors(found, r, in))
		}
	}
	t.selected = selected
	t.missing = missing
	return selected, len(missing) == 0 && r.isComplete()
}

// keepSelectors adds the earlier selectors that cannot find anything while some API
// groups are unavailable.
func (t *Tracker) keepSelectors(found SelectedResource, r Resolution, in Snapshot) SelectedResource {
	for _, before := range t.selected {
		if !before.isSame(found) {
			continue
		}
		for _, sel := range before.Selectors {
			if !slices.Contains(found.Selectors, sel) && r.mayMean(sel, found.Resource, in) {
				found.Selectors = append(slices.Clip(found.Selectors), sel)
			}
		}
	}
	return found
}

// isUncertain reports whether it is unknown if a resource should still be served.
func (r Resolution) isUncertain(before SelectedResource, in Snapshot) bool {
	if _, down := in.Failed[before.GroupVersion()]; down {
		return true
	}
	isPresent := slices.ContainsFunc(in.Resources, func(other selector.Resource) bool { return other.GVR() == before.GVR() })
	return isPresent && slices.ContainsFunc(before.Selectors, func(sel selector.Selector) bool { return r.mayMean(sel, before.Resource, in) })
}

// mayMean reports whether a selector that does not find a resource now can find it again when the
// unavailable API groups are back, or its function does not fail. An ambiguous selector stays ambiguous, and other groups than
// those that matter to the resource change nothing.
func (r Resolution) mayMean(sel selector.Selector, of selector.Resource, in Snapshot) bool {
	isAmbiguous := slices.ContainsFunc(r.Warnings, func(warning error) bool {
		ambiguous, ok := warning.(*selector.AmbiguousError) //nolint:errorlint // they are not wrapped
		return ok && ambiguous.Selector == sel
	})
	hasFailed := slices.ContainsFunc(r.Warnings, func(warning error) bool {
		failed, ok := warning.(*SelectionError) //nolint:errorlint // they are not wrapped
		return ok && failed.Selector == sel
	})
	return hasFailed || !isAmbiguous && isUncertainFor(of, sel, in.unavailableFor(sel))
}

// isComplete reports whether all selectors have found what they mean.
func (r Resolution) isComplete() bool {
	return !slices.ContainsFunc(r.Warnings, func(warning error) bool {
		switch warning.(type) { //nolint:errorlint // they are not wrapped
		case *selector.NotFoundError, *IncompleteError, *SelectionError:
			return true
		default:
			return false
		}
	})
}

// isSame reports whether both are the same version of the same resource.
func (s SelectedResource) isSame(other SelectedResource) bool { return s.GVR() == other.GVR() }

// isOtherVersion reports whether both are different versions of the same resource.
func (s SelectedResource) isOtherVersion(other SelectedResource) bool {
	return s.GVR() != other.GVR() && s.GVR().GroupResource() == other.GVR().GroupResource()
}
