package inspect

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/pager"

	"github.com/kopf-go/kopf/internal/verdict"
	"github.com/kopf-go/kopf/pkg/internal/plural"
	"github.com/kopf-go/kopf/pkg/model/cause"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/reconcile/inspection"
)

// rollout is how far the rollout of one handler is, as the objects have it.
type rollout struct {
	*inspection.Rollout

	err     error // why it is unknown
	unknown int   // objects that could not be judged
}

// awaitsRollout reports whether a handler is called again when the rollout of its revision
// reaches the object.
func awaitsRollout(n *inspection.Object, h inspection.Handler) bool {
	isOutdated := h.Revision != "" && h.RevisionMark != h.Revision && (!h.Baseline || h.RevisionMark != "")
	isDeleted := n.Reason == cause.Delete || n.Reason == cause.Free
	return isOutdated && len(h.Rollout) > 0 && n.WasHandled && !isDeleted && !h.Selected && h.Undecidable == nil && h.OutOfScope.Matches()
}

// awaited are the objects that wait until rollouts reach them.
type awaited struct {
	handlers map[string]inspection.Handler // by their ids
	// objects and examples are by the ids of all handlers that an object waits for.
	objects  map[string]int
	examples map[string][]string
}

// add notes an object, if it waits.
func (a *awaited) add(n *inspection.Object, name string, limit int) {
	if a.handlers == nil {
		*a = awaited{map[string]inspection.Handler{}, map[string]int{}, map[string][]string{}}
	}
	var ids []string
	for _, h := range n.Handlers {
		if !slices.Contains(ids, h.ID) && awaitsRollout(n, h) {
			ids = append(ids, h.ID)
			if _, known := a.handlers[h.ID]; !known {
				a.handlers[h.ID] = h
			}
		}
	}
	if len(ids) == 0 {
		return
	}
	all := strings.Join(ids, "\n")
	a.objects[all]++
	if len(a.examples[all]) < limit {
		a.examples[all] = append(a.examples[all], name+": rollout")
	}
}

// StoppedRollout is the rollout of a handler that is stopped, because objects have failed.
type StoppedRollout struct {
	Handler  string `json:"handler"`
	Revision string `json:"revision"`
	// Objects are all objects of the rollout, in all namespaces. Failed and Waiting are some of them.
	Objects int `json:"objects"`
	Failed  int `json:"failed"`
	Waiting int `json:"waiting"`
	// Example is an object that has failed, and Todo the command that calls the handler again for it.
	Example string `json:"example"`
	Todo    string `json:"todo"`
}

// String describes the rollout.
func (r StoppedRollout) String() string {
	return fmt.Sprintf("The rollout of %s (revision %s) is stopped: %d of %s %s failed, such as %s, and %s. Correct the cause, and then: %s", r.Handler, r.Revision, r.Failed,
		plural.Of(r.Objects, "object", "objects"), plural.Word(r.Failed, "has", "have"), r.Example, plural.Of(r.Waiting, "waits", "wait"), r.Todo)
}

// addAwaited counts the calls for the objects that wait for rollouts, unless these are stopped.
func (p *ResourcePlan) addAwaited(ctx context.Context, c *Cluster, found discovery.SelectedResource) {
	stopped := map[string]bool{}
	for _, id := range slices.Sorted(maps.Keys(p.waiting.handlers)) {
		h := p.waiting.handlers[id]
		r := c.rollout(ctx, found, h)
		if r.err != nil {
			p.notes = append(p.notes, fmt.Sprintf("Whether the rollout of %s is stopped is not decidable here: the objects of %s cannot be listed: %v.", id, p.Resource, r.err))
			continue
		}
		if at := r.Of("", ""); at.Failed > 0 {
			stopped[id] = true
			failed := (&subject{kubectl: p.Resource}).namedAs(at.FailedObject.Namespace, at.FailedObject.Name)
			p.StoppedRollouts = append(p.StoppedRollouts, StoppedRollout{
				Handler: id, Revision: h.Revision, Objects: at.Total(), Failed: at.Failed, Waiting: at.Waiting,
				Example: failed, Todo: c.CommandLine.Of("rerun", failed+" "+id),
			})
		}
	}
	for _, all := range slices.Sorted(maps.Keys(p.waiting.objects)) {
		objects := p.waiting.objects[all]
		ids := strings.Split(all, "\n")
		begins := slices.DeleteFunc(ids, func(id string) bool { return stopped[id] })
		if len(begins) == 0 {
			p.Waiting += objects
			continue
		}
		p.RollingOut += objects
		for _, id := range begins {
			p.Calls[id] += objects
		}
		examples := p.waiting.examples[all]
		p.Examples = append(p.Examples, examples[:min(len(examples), p.limit-len(p.Examples))]...)
	}
}

// rollout counts the objects of the rollout that a handler waits for.
func (c *Cluster) rollout(ctx context.Context, found discovery.SelectedResource, h inspection.Handler) rollout {
	r := rollout{Rollout: &inspection.Rollout{Declaration: h.Declaration}}
	selection, _ := c.selection(found)
	namespaces := []string{""}
	if own := c.Namespaces(); found.Namespaced && c.IsRunning && own != nil { // it may not list others
		namespaces = own
	}
	for _, namespace := range namespaces {
		r.err = errors.Join(r.err, each(ctx, c.apiOf(found, namespace), selection, func(obj *unstructured.Unstructured) {
			isServed := obj.GetNamespace() == "" || c.isServed(obj.GetNamespace())
			if isServed && c.inspector.Count(ctx, found, obj.Object, r.Rollout) != nil {
				r.unknown++
			}
		}))
	}
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
func (s *subject) ofRollout(h inspection.Handler) (state, message, todo string) {
	waiting := string(verdict.Waiting)
	text := fmt.Sprintf("waits for the rollout of its revision %s", h.Revision)
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
