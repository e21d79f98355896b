package inspect

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/verdict"
	"github.com/kopf-go/kopf/pkg/internal/plural"
	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/converge"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
)

// Child is the answer about one child of the object.
type Child struct {
	Object string `json:"object"`
	// Handler is the id of the handler that returns it.
	Handler string `json:"handler"`
	// State is one word: ready, waiting, failed, deleting, foreign, or undeclared.
	State   string `json:"state"`
	Message string `json:"message"`
	// Accepted are the fields that are left to others.
	Accepted []string `json:"accepted,omitempty"`
}

// addChildren says what is known about the children of handlers of Ensure.
func (c *Cluster) addChildren(ctx context.Context, found discovery.SelectedResource, s *subject, e *Explanation) {
	owners := map[string]*handler.Declaration{} // by the labels of children
	for _, h := range s.Handlers {
		if h.Ensures == nil {
			continue
		}
		owner := converge.Owner{Operator: c.Settings.Name, Handler: h.Top().ID, Parent: converge.Parent{
			Key: object.Key{}, UID: s.object.GetUID(), GVK: found.GVK(),
		}}
		for _, owner.Operator = range append([]string{c.Settings.Name}, c.Settings.FormerNames...) {
			owners[owner.Hash()] = h.Top()
		}
	}
	places := convergence.ReadPlaces(s.Body)
	switch {
	case len(owners)+len(places) == 0:
		return
	case c.Settings.Name == "":
		e.Notes = append(e.Notes, "The children of the object are unknown here, because settings.Name is not set: set it in kopf.Configure, or in the options of the operator.")
		return
	case len(owners) == 0:
		e.Notes = append(e.Notes, "The object has children of a handler of kopf.Ensure, but this program declares none for it: they are left alone, unless another operator takes care of them.")
	default:
		e.Notes = append(e.Notes, "Whether children differ from what a handler wants, or are missing, is not decidable here, because the handler is not called.")
	}
	for place := range places {
		if err := c.addChildrenAt(ctx, place, s, owners, e); err != nil {
			e.Notes = append(e.Notes, fmt.Sprintf("The children of the kind %s are unknown: %v.", place.GroupKind, err))
		}
	}
	slices.SortFunc(e.Children, func(a, b Child) int { return strings.Compare(a.Object, b.Object) })

	// The children of handlers whose filters do not match anymore are left alone.
	for i := range e.Handlers {
		h := &e.Handlers[i]
		if h.Kind != ensureKind || h.State != string(verdict.Mismatched) {
			continue
		}
		left := 0
		for j := range e.Children {
			child := &e.Children[j]
			if child.Handler != h.ID || child.State == "foreign" || child.State == "undeclared" {
				continue
			}
			left++
			child.Message = strings.Replace(child.Message, laterWaves, "", 1) + "; it is not restored, because the filters of " + h.ID + " do not match the object"
		}
		if left > 0 {
			h.Message += fmt.Sprintf("; its %s: the operator neither restores nor deletes %s as long as that is so", plural.Of(left, "child stays", "children stay"), plural.Word(left, "it", "them"))
		}
	}
}

// laterWaves is said of a child that is not ready.
const laterWaves = "; the children of later waves are applied when it is"

// addChildrenAt lists the children of one kind.
func (c *Cluster) addChildrenAt(ctx context.Context, place convergence.Place, s *subject, owners map[string]*handler.Declaration, e *Explanation) error {
	i := slices.IndexFunc(c.served.Resources, func(r selector.Resource) bool {
		return r.Group == place.Group && r.Kind == place.Kind && slices.Contains(r.Verbs, "list")
	})
	if i < 0 {
		for down, err := range c.served.Failed {
			if down.Group == place.Group {
				return fmt.Errorf("its API group is unavailable: %w", err)
			}
		}
		return fmt.Errorf("the cluster does not serve it")
	}
	of := c.served.Resources[i]
	api := c.objects.Resource(of.GVR())
	var from dynamic.ResourceInterface = api
	switch place.Namespace {
	case convergence.NoNamespace:
	case "":
		from = api.Namespace(s.object.GetNamespace())
	default:
		from = api.Namespace(place.Namespace)
	}
	options := metav1.ListOptions{LabelSelector: convergence.OwnerLabel}
	if len(owners) > 0 { // by their hashes
		options.LabelSelector += " in (" + strings.Join(slices.Sorted(maps.Keys(owners)), ",") + ")"
	}
	parent := converge.Parent{Key: object.Key{NamespacedName: client.ObjectKeyFromObject(s.object)}, GVK: s.object.GroupVersionKind()}
	return each(ctx, from, options, func(u *unstructured.Unstructured) {
		seen := converge.See(u, c.Settings.Name, c.Settings.FormerNames...)
		switch d := owners[seen.Owner]; {
		case d != nil:
			child := childOf(seen, d)
			if by := seen.Controller; by != nil && by.UID != s.object.GetUID() {
				child.State = "foreign"
				child.Message = fmt.Sprintf("belongs to another controller, %s, not to %s (uid %s): it is neither changed nor deleted until that lets it go; if that controller does not need it, delete it: %s",
					converge.ControllerIn(u), parent, s.object.GetUID(), c.CommandLine.Kubectl("delete "+named(nameOf(of), u)))
			}
			e.Children = append(e.Children, child)
		case seen.Applied && seen.Parent == parent.String():
			e.Children = append(e.Children, Child{
				Object: seen.String(), Handler: seen.Handler, State: "undeclared",
				Message: fmt.Sprintf("is left alone, because its handler is not declared: if it was renamed, declare it with kopf.ID(%q); otherwise, delete the child", seen.Handler),
			})
		}
	})
}

// childOf says what can be seen of one child.
func childOf(seen converge.Seen, d *handler.Declaration) Child {
	child := Child{Object: seen.String(), Handler: d.ID, State: "ready", Message: "is ready"}
	why := strings.TrimSuffix(seen.Message, ".")
	switch {
	case !seen.Applied:
		child.State = "foreign"
		child.Message = fmt.Sprintf("has the label of a child of %s, but the operator has not applied it: it is left alone", d.ID)
		return child
	case seen.Deleting:
		child.State = "deleting"
		child.Message = "is being deleted"
	case seen.Failed:
		child.State = "failed"
		child.Message = "has failed: " + why
	case !seen.Ready && d.Ensures.WaitReady:
		child.State = "waiting"
		child.Message = "is not ready: " + why + laterWaves
	case !seen.Ready:
		child.State = "waiting"
		child.Message = "is not ready: " + why
	}
	child.Accepted = seen.Accepted
	if len(seen.Accepted) > 0 {
		child.Message += fmt.Sprintf("; it was accepted that others have changed %s, until %s returns another value", strings.Join(seen.Accepted, ", "), d.ID)
	}
	if seen.Kept {
		child.Message += "; it is never deleted, because of the annotation " + convergence.KeepAnnotation
	}
	return child
}
