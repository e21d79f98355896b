package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/kopf-go/kopf/pkg/model/convergence"
	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/converge"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
)

// Child is what is said about one child of the object.
type Child struct {
	Object string `json:"object"`
	// Handler is the id of the handler that returns it.
	Handler string `json:"handler"`
	// State is one word: ready, waiting, failed, deleting, or foreign.
	State   string `json:"state"`
	Message string `json:"message"`
	// Accepted are the fields that are left to others.
	Accepted []string `json:"accepted,omitempty"`
}

// addChildren says what is known about the children of handlers of Ensure.
func (c *Cluster) addChildren(ctx context.Context, found discovery.SelectedResource, s *situation, e *Explanation) {
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
	switch {
	case len(owners) == 0:
		return
	case c.Settings.Name == "":
		e.Notes = append(e.Notes, "The children of the object are unknown here, because settings.Name is not set: set it in kopf.Configure, or in the options of the operator.")
		return
	}
	e.Notes = append(e.Notes, "Whether children differ from what a handler wants is not decidable here, because the handler is not called.")
	for place := range convergence.ReadPlaces(s.Body) {
		if err := c.addChildrenAt(ctx, place, s, owners, e); err != nil {
			e.Notes = append(e.Notes, fmt.Sprintf("The children of the kind %s are unknown: %v.", place.GroupKind, err))
		}
	}
	slices.SortFunc(e.Children, func(a, b Child) int { return strings.Compare(a.Object, b.Object) })
}

// addChildrenAt lists the children of one kind.
func (c *Cluster) addChildrenAt(ctx context.Context, place convergence.Place, s *situation, owners map[string]*handler.Declaration, e *Explanation) error {
	i := slices.IndexFunc(c.served.Resources, func(r selector.Resource) bool {
		return r.Group == place.Group && r.Kind == place.Kind && slices.Contains(r.Verbs, "list")
	})
	if i < 0 {
		return fmt.Errorf("the cluster does not serve it")
	}
	api := c.objects.Resource(c.served.Resources[i].GVR())
	var from dynamic.ResourceInterface = api
	switch place.Namespace {
	case convergence.NoNamespace:
	case "":
		from = api.Namespace(s.object.GetNamespace())
	default:
		from = api.Namespace(place.Namespace)
	}
	hashes := make([]string, 0, len(owners))
	for hash := range owners {
		hashes = append(hashes, hash)
	}
	options := metav1.ListOptions{LabelSelector: convergence.OwnerLabel + " in (" + strings.Join(hashes, ",") + ")"}
	return c.each(ctx, from, options, func(u *unstructured.Unstructured) {
		seen := converge.See(u, c.Settings.Name, c.Settings.FormerNames...)
		e.Children = append(e.Children, childOf(seen, owners[seen.Owner]))
	})
}

// childOf says what can be seen of one child.
func childOf(seen converge.Seen, d *handler.Declaration) Child {
	child := Child{Object: seen.String(), Handler: d.ID, State: "ready", Message: "is ready"}
	why := strings.TrimSuffix(seen.Message, ".")
	switch {
	case !seen.Applied:
		child.State, child.Message = "foreign", fmt.Sprintf("has the label of a child of %s, but the operator has not applied it: it is left alone", d.ID)
		return child
	case seen.Deleting:
		child.State, child.Message = "deleting", "is being deleted"
	case seen.Failed:
		child.State, child.Message = "failed", "has failed: "+why
	case !seen.Ready && d.Ensures.WaitReady:
		child.State, child.Message = "waiting", "is not ready: "+why+"; the children of later waves are applied when it is"
	case !seen.Ready:
		child.State, child.Message = "waiting", "is not ready: "+why
	}
	if child.Accepted = seen.Accepted; len(seen.Accepted) > 0 {
		child.Message += fmt.Sprintf("; it was accepted that others have changed %s, until %s returns another value", strings.Join(seen.Accepted, ", "), d.ID)
	}
	if seen.Kept {
		child.Message += "; it is never deleted, because of the annotation " + convergence.KeepAnnotation
	}
	return child
}
