package discovery

import (
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// Resolution is the result of applying the selectors of an operator to a cluster.
type Resolution struct {
	// Resources are the resources to serve, in the order of the Snapshot.
	Resources []SelectedResource
	// Warnings say, for people, what is not served and what to do about it:
	// *selector.NotFoundError, *selector.AmbiguousError, *UnwatchableError,
	// *IncompleteError. After an IncompleteError, scan again:
	// its cause passes without a change of the operator.
	Warnings []error
}

// SelectedResource is a resource to serve, with the selectors that found it.
type SelectedResource struct {
	selector.Resource
	Selectors []selector.Selector
	// Unserved are other versions of it that are not served, with the selectors that find only these.
	Unserved []SelectedResource
}

// Resolve finds the resources of all selectors in a snapshot.
func Resolve(selectors []selector.Selector, in Snapshot) Resolution {
	var result Resolution
	selecting := map[schema.GroupVersionResource][]selector.Selector{}
	for _, sel := range selectors {
		found, err := in.resolveIsolated(sel)
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
	return result
}

// InOneVersion returns the resolution with one version of each resource whose handlers write to its objects:
// the preferred one, or else the first. Handlers of several versions would share the records and the
// finalizer, and what is compared with the last handled state can change with a conversion.
func (r Resolution) InOneVersion(writes func(SelectedResource) bool) Resolution {
	result := Resolution{Warnings: r.Warnings}
	for rest := r.Resources; len(rest) > 0; {
		same := 1 // versions of one resource follow each other
		for same < len(rest) && rest[same].GVR().GroupResource() == rest[0].GVR().GroupResource() {
			same++
		}
		versions := rest[:same]
		rest = rest[same:]
		writing := slices.DeleteFunc(slices.Clone(versions), func(v SelectedResource) bool { return !writes(v) })
		if len(writing) < 2 {
			result.Resources = append(result.Resources, versions...)
			continue
		}
		served := max(0, slices.IndexFunc(writing, func(v SelectedResource) bool { return v.Preferred }))
		keep := writing[served]
		for _, version := range writing {
			version.Selectors = slices.DeleteFunc(slices.Clone(version.Selectors), func(sel selector.Selector) bool { return slices.Contains(keep.Selectors, sel) })
			if len(version.Selectors) > 0 {
				keep.Unserved = append(keep.Unserved, version)
			}
		}
		for _, version := range versions {
			switch {
			case version.GVR() == keep.GVR():
				result.Resources = append(result.Resources, keep)
			case !writes(version):
				result.Resources = append(result.Resources, version)
			}
		}
		if len(keep.Unserved) > 0 {
			result.Warnings = append(result.Warnings, &MultipleVersionsError{Served: keep})
		}
	}
	return result
}

// selectionPatience is how long the function of a selector may take.
const selectionPatience = 10 * time.Second

// unreturned are the selectors whose functions have not returned. They are not called again until then.
var unreturned sync.Map

// errNoSelection means that the function of a selector has not returned.
var errNoSelection = errors.New("it does not return")

// resolveIsolated is resolve for selectors with a function of the user, which may panic, or never return.
func (s Snapshot) resolveIsolated(sel selector.Selector) (found []selector.Resource, err error) {
	if _, runs := unreturned.Load(sel); runs {
		return nil, &SelectionError{Selector: sel, Err: errNoSelection}
	}
	type answer struct {
		found []selector.Resource
		err   error
	}
	answered := make(chan answer, 1)
	failed := handler.Start(func() error {
		found, err := s.resolve(sel)
		answered <- answer{found, err}
		return nil
	})
	timer := time.NewTimer(selectionPatience)
	defer timer.Stop()
	select {
	case failure := <-failed:
		if failure != nil {
			return nil, &SelectionError{Selector: sel, Err: failure}
		}
		a := <-answered
		return a.found, a.err
	case <-timer.C:
		unreturned.Store(sel, true)
		go func() {
			<-failed //nolint:errcheck // whatever it answers now, the next discovery asks again
			unreturned.Delete(sel)
		}()
		return nil, &SelectionError{Selector: sel, Err: errNoSelection}
	}
}

// resolve finds the resources of one selector. The error is a warning about what is
// missing; there can be resources, too.
func (s Snapshot) resolve(sel selector.Selector) ([]selector.Resource, error) {
	found, err := sel.Resolve(filter(s.Resources, isWatchable))
	unseen := s.unavailableFor(sel)
	var ambiguous *selector.AmbiguousError
	if len(unseen) == 0 || errors.As(err, &ambiguous) {
		var missing *selector.NotFoundError
		if errors.As(err, &missing) {
			if unwatchable := sel.Select(s.Resources); len(unwatchable) > 0 {
				return found, &UnwatchableError{Selector: sel, Found: unwatchable}
			}
		}
		return found, err
	}
	certain := filter(found, func(r selector.Resource) bool { return !isUncertainFor(r, sel, unseen) })
	if sel.Specific() && len(certain) > 0 {
		return certain, nil
	}
	return certain, &IncompleteError{Selector: sel, Unavailable: unseen, Failed: s.Failed}
}

// isUncertainFor reports whether the selector may mean another resource than this one once the
// unavailable versions are back. The preferred version of the resource could be among them, or
// the core group could have a resource with the same name, which wins.
func isUncertainFor(r selector.Resource, sel selector.Selector, unseen []schema.GroupVersion) bool {
	return slices.ContainsFunc(unseen, func(gv schema.GroupVersion) bool {
		return gv.Group == r.Group || sel.Specific() && gv.Group == ""
	})
}

// isWatchable reports whether the objects of a resource can be listed and watched.
func isWatchable(r selector.Resource) bool { return r.Can("list", "watch") }

// IsTerminating reports whether the definition of a resource is deleted, and waits for its objects.
// The API server then offers exactly these verbs, although it accepts changes of the objects until
// the last one is gone.
func IsTerminating(r selector.Resource) bool {
	return r.Can("delete", "deletecollection", "get", "list", "watch") && len(r.Verbs) == 5
}

// filter returns the resources that pass the test.
func filter(resources []selector.Resource, test func(selector.Resource) bool) []selector.Resource {
	return slices.DeleteFunc(slices.Clone(resources), func(r selector.Resource) bool { return !test(r) })
}
