package inspect

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/pager"

	"github.com/kopf-go/kopf/pkg/internal/plural"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/model/verdict"
	"github.com/kopf-go/kopf/pkg/reconcile"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
)

// rollout is how far the rollout of one handler is, as the objects have it.
type rollout struct {
	*reconcile.Rollout

	err     error // why it is unknown
	unknown int   // objects that could not be judged
}

// awaitsRollout reports whether a handler is called again when the rollout of its revision
// reaches the object.
func (s changing) awaitsRollout(h reconcile.InspectedHandler) bool {
	return awaitsRollout(s.Inspection, h)
}

func awaitsRollout(n *reconcile.Inspection, h reconcile.InspectedHandler) bool {
	isOutdated := h.Revision != "" && h.RevisionMark != h.Revision && (!h.Baseline || h.RevisionMark != "")
	isDeleted := n.Reason == cause.Delete || n.Reason == cause.Free
	return isOutdated && len(h.Rollout) > 0 && n.WasHandled && !isDeleted && !h.Selected && h.Undecidable == nil && h.OutOfScope.Matches()
}

// rollouts counts the objects of the rollouts that the object waits for. Nearly all objects wait
// for none, and nothing is read.
func (c *Cluster) rollouts(ctx context.Context, found discovery.SelectedResource, s *situation) map[string]rollout {
	all := map[string]rollout{}
	for _, h := range s.Handlers {
		if _, known := all[h.ID]; !known && (changing{s}).awaitsRollout(h) {
			all[h.ID] = c.rollout(ctx, found, h)
		}
	}
	return all
}

func (c *Cluster) rollout(ctx context.Context, found discovery.SelectedResource, h reconcile.InspectedHandler) rollout {
	r := rollout{Rollout: &reconcile.Rollout{Declaration: h.Declaration}}
	r.err = each(ctx, c.objects.Resource(found.GVR()), metav1.ListOptions{}, func(obj *unstructured.Unstructured) {
		isServed := obj.GetNamespace() == "" || selector.Namespaces(c.Settings.Scope.Namespaces).Match(obj.GetNamespace())
		if isServed && c.inspector.Count(ctx, found, obj.Object, r.Rollout) != nil {
			r.unknown++
		}
	})
	return r
}

// each calls a function for each object of a list, which it reads in pages.
func each(ctx context.Context, from dynamic.ResourceInterface, options metav1.ListOptions, call func(*unstructured.Unstructured)) error {
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return from.List(ctx, options)
	})
	pages.PageSize = pageSize
	return pages.EachListItem(ctx, options, func(item runtime.Object) error {
		if obj, ok := item.(*unstructured.Unstructured); ok {
			call(obj)
		}
		return nil
	})
}

// ofRollout is about a handler that waits for the rollout of its revision.
func (s changing) ofRollout(h reconcile.InspectedHandler) (state, message, todo string) {
	waiting, text := string(verdict.Waiting), fmt.Sprintf("waits for the rollout of its revision %s", h.Revision)
	r := s.rollouts[h.ID]
	if r.Rollout == nil || r.err != nil {
		return waiting, fmt.Sprintf("%s; how far that is, is not decidable here: the objects cannot be listed: %v", text, r.err), ""
	}
	at := r.Of(s.object.GetNamespace(), s.object.GetName())
	unknown := ""
	if r.unknown > 0 {
		unknown = "; that is not certain, because the filters are not decidable here for " + plural.Of(r.unknown, "object", "objects")
	}
	switch {
	case at.Failed > 0:
		failed := s.namedAs(at.FailedObject.Namespace, at.FailedObject.Name)
		return waiting, fmt.Sprintf("%s, which is stopped: %d of %s %s failed, such as %s, and %s%s", text, at.Failed, plural.Of(at.Total(), "object", "objects"),
				plural.Word(at.Failed, "has", "have"), failed, plural.Of(at.Waiting, "waits", "wait"), unknown),
			"correct the cause, and then: " + s.commands.Of("rerun", failed+" "+h.ID)
	case at.Begins():
		return string(verdict.Due), fmt.Sprintf("will run: an operator with its revision %s calls it for the object in step %d of the rollout%s", h.Revision, at.Step, unknown), ""
	default:
		return waiting, fmt.Sprintf("%s: step %d allows %d of %s, of which %s ended, and %s before this one%s", text, at.Step, at.Limit,
			plural.Of(at.Total(), "object", "objects"), plural.Of(at.Done, "has", "have"), plural.Of(at.Ahead, "begins", "begin"), unknown), ""
	}
}
