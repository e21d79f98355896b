package discovery

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/pkg/model/selector"
)

// Resolution is what the selectors of an operator mean in a cluster.
type Resolution struct {
	// Resources are the resources to serve, in the order of the Snapshot.
	Resources []SelectedResource
	// Warnings tell, for people, what is not served and what to do about it:
	// *selector.NotFoundError, *selector.AmbiguousError, *UnwatchableError,
	// *IncompleteError, *VersionsError. After an incomplete one it is worth
	// scanning again, for the cause passes without a change of the operator.
	Warnings []error
}

// SelectedResource is a resource to serve, and the selectors that have found it.
type SelectedResource struct {
	selector.Resource
	Selectors []selector.Selector
}

// Resolve finds the resources of different selectors in a snapshot.
func Resolve(selectors []selector.Selector, in Snapshot) Resolution {
	var result Resolution
	selecting := map[schema.GroupVersionResource][]selector.Selector{}
	for _, sel := range selectors {
		found, err := in.resolve(sel)
		for _, r := range found {
			selecting[r.GVR()] = append(selecting[r.GVR()], sel)
		}
		if err != nil {
			result.Warnings = append(result.Warnings, err)
		}
	}
	for _, r := range in.Resources {
		if by := selecting[r.GVR()]; len(by) > 0 {
			result.Resources = append(result.Resources, SelectedResource{Resource: r, Selectors: by})
		}
	}
	result.Warnings = append(result.Warnings, result.multipleVersions()...)
	return result
}

// resolve finds the resources of one selector; the error is a warning about what
// is missing, and can come along with resources.
func (s Snapshot) resolve(sel selector.Selector) ([]selector.Resource, error) {
	found, err := sel.Resolve(filter(s.Resources, isWatchable))
	unseen := s.unavailableFor(sel)
	var ambiguous *selector.AmbiguousError
	if len(unseen) == 0 || errors.As(err, &ambiguous) {
		return found, s.explain(sel, err)
	}
	certain := filter(found, func(r selector.Resource) bool { return !isUncertainFor(r, sel, unseen) })
	if sel.Specific() && len(certain) > 0 {
		return certain, nil
	}
	return certain, &IncompleteError{Selector: sel, Unavailable: unseen, Failed: s.Failed}
}

// doubtful tells whether a resource might not be the one that is meant once the
// unseen versions are back: another version of it could be the preferred one, or
// the core group could have one of that name, and win.
func isUncertainFor(r selector.Resource, sel selector.Selector, unseen []schema.GroupVersion) bool {
	return slices.ContainsFunc(unseen, func(gv schema.GroupVersion) bool {
		return gv.Group == r.Group || sel.Specific() && gv.Group == ""
	})
}

// explain tells resources that are not there from those that cannot be watched.
func (s Snapshot) explain(sel selector.Selector, err error) error {
	var missing *selector.NotFoundError
	if !errors.As(err, &missing) {
		return err
	}
	if unwatchable := sel.Select(s.Resources); len(unwatchable) > 0 {
		return &UnwatchableError{Selector: sel, Found: unwatchable}
	}
	return err
}

// doubled finds the resources that are served in several versions.
func (r Resolution) multipleVersions() []error {
	var warnings []error
	served := r.Resources
	for len(served) > 0 {
		same := 1 // versions of one resource follow each other
		for same < len(served) && served[same].GVR().GroupResource() == served[0].GVR().GroupResource() {
			same++
		}
		if same > 1 {
			warnings = append(warnings, &MultipleVersionsError{Versions: served[:same]})
		}
		served = served[same:]
	}
	return warnings
}

func isWatchable(r selector.Resource) bool { return r.Can("list", "watch") }

func filter(resources []selector.Resource, test func(selector.Resource) bool) []selector.Resource {
	return slices.DeleteFunc(slices.Clone(resources), func(r selector.Resource) bool { return !test(r) })
}
