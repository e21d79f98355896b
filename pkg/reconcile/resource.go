package reconcile

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/indexing"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/kube"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/plan"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/triggers"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/watch"
)

// resource is a watched resource with its handlers.
type resource struct {
	*watch.Resource

	*plan.Handlers

	events registry.Handlers
	// idling is set if a daemon or timer waits until the object is idle.
	idling bool
	// isAttended is set if a daemon is woken by changes of fields.
	isAttended bool
	// outlastsDeletion is set if a daemon also runs while its object is being deleted.
	outlastsDeletion bool
	indexer          *indexing.Indexer // nil without indices
	// reportedIDs are the ids under which handlers are reported, by their own ids, if these differ.
	reportedIDs map[string]string
	// drifting contains the handlers that decide about what others change in children.
	drifting registry.Handlers
	// asChild is set if the objects can be children of others.
	asChild *triggers.ChildKind
	// awaitsIdle is set if handlers of changes wait until their object is idle.
	awaitsIdle bool
	// runsCode is set if code of users decides about the handlers.
	runsCode bool
	// leaving contains the daemons of objects that are no longer watched.
	leaving groups
}

func newResource(watched *watch.Resource, handlers registry.Handlers) *resource {
	r := &resource{Resource: watched, Handlers: plan.Sort(handlers)}
	r.events = handlers.Where(func(d *handler.Declaration) bool { return d.Kind == handler.OnEvent })
	for _, d := range r.Triggered {
		if id := handler.ReportedID(d); id != d.ID {
			if r.reportedIDs == nil {
				r.reportedIDs = map[string]string{}
			}
			r.reportedIDs[d.ID] = id
		}
	}
	r.drifting = handlers.OfKind(handler.OnDrift)
	r.runsCode = slices.ContainsFunc(handlers, (*handler.Declaration).RunsCode)
	isIdle := func(d *handler.Declaration) bool { return d.Idle > 0 }
	r.idling = slices.ContainsFunc(r.Background, isIdle)
	r.isAttended = slices.ContainsFunc(r.Background, func(d *handler.Declaration) bool { return len(d.WakeOn) > 0 })
	r.outlastsDeletion = slices.ContainsFunc(r.Background, func(d *handler.Declaration) bool { return d.Deleted })
	r.awaitsIdle = slices.ContainsFunc(r.Changing, isIdle)
	return r
}

// measured returns how the metrics call the handler. Sub-handlers are counted as the handler
// that has registered them.
func (r *resource) measured(d *handler.Declaration) metrics.Handler {
	return metrics.Handler{Resource: r.Name, Kind: string(d.Kind), ID: d.Top().ID}
}

// isObservedOnly reports whether the resource is only watched for indices, or because its
// objects are children, so that there are no passes over its objects.
func (r *resource) isObservedOnly() bool {
	return len(r.events) == 0 && !r.storesState()
}

// storesState reports whether handlers have a state that is stored.
func (r *resource) storesState() bool {
	return len(r.Changing) > 0 || len(r.Background) > 0 || len(r.Triggered) > 0
}

// checkFields logs the handlers of fields that the objects do not have: nothing else would say why they are not
// called. It reads the definition later, if the operator watches definitions anyway.
func (r *resource) checkFields(ctx context.Context, e *Engine) {
	if !plan.HasFields(r.Declared) {
		return
	}
	e.watcher.ReadDefinition(ctx, r.definitionName(), func(definition map[string]any) {
		var scheme *runtime.Scheme
		if e.Client != nil {
			scheme = e.Client.Scheme()
		}
		for _, problem := range plan.UnknownFields(r.Declared, r.Resource.Resource, definition, scheme) {
			if e.reported.First(problem.Error()) {
				e.Logger.Error(problem, "A handler is for a field that does not exist.", "resource", r.Name)
			}
		}
	})
}

// checkConditions returns an error if the resource cannot have conditions, or if no handler
// decides about them. Without the permission to get the definition, the API server shows with
// the first write whether it stores them.
func (r *resource) checkConditions(ctx context.Context, e *Engine) error {
	if !r.HasConditions {
		return nil
	}
	definition, permitted, err := r.definition(ctx, e)
	if err != nil {
		return fmt.Errorf("%s: the definition of %s cannot be read: %w", r.Declared.OfKind(handler.Conditions)[0].DeclaredAt, r.Name, err)
	}
	if err := plan.CheckConditions(r.Declared, r.Resource.Resource, definition, permitted); err != nil {
		return err
	}
	if !permitted {
		e.Logger.Info("The schema cannot be checked for the fields of conditions: grant the permission to get customresourcedefinitions.apiextensions.k8s.io.",
			"resource", r.Name, "definition", r.definitionName())
	}
	return nil
}

// definitionName returns the name of the definition, if the resource is a custom resource.
func (r *resource) definitionName() string { return r.Plural + "." + r.Group }

// definition returns the definition of the resource, which is nil if it is not a custom resource.
// It asks for the permission first, because the operator works without it, and a refused request
// raises an alert.
func (r *resource) definition(ctx context.Context, e *Engine) (definition map[string]any, permitted bool, err error) {
	of := discovery.CustomResourceDefinitions
	access, err := discovery.NewAccess(e.REST, e.HTTP, of)
	if err != nil {
		return nil, false, err
	}
	asking, cancel := context.WithTimeout(ctx, e.Settings.Networking.RequestTimeout)
	defer cancel()
	if permitted, err := access.Permits(asking, "get", r.definitionName()); err == nil && !permitted {
		return nil, false, nil
	}
	api, err := kube.New(e.REST, e.HTTP, selector.Resource{Group: of.Group, Version: of.Version, Plural: of.Resource, Kind: "CustomResourceDefinition"}, e.Settings)
	if err != nil {
		return nil, false, err
	}
	found, err := api.Get(ctx, types.NamespacedName{Name: r.definitionName()})
	switch {
	case apierrors.IsForbidden(err): // the answer to the question was lost
		return nil, false, nil
	case err != nil:
		return nil, true, client.IgnoreNotFound(err)
	}
	return found.Body().Raw(), true, nil
}

// resources contains the current and former resources. A former resource stays without
// streams for the passes that still need it. It is safe for concurrent use; a pass keeps
// using the same resource.
type resources struct {
	mu     sync.RWMutex
	byName map[string]*resource
}

// get returns a resource by its name, or nil if it is unknown.
func (rs *resources) get(name string) *resource {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	return rs.byName[name]
}

// put adds a resource, or replaces the one of the same name.
func (rs *resources) put(r *resource) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.byName == nil {
		rs.byName = map[string]*resource{}
	}
	rs.byName[r.Name] = r
}

// all returns the resources in the order of their names.
func (rs *resources) all() []*resource {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	return slices.SortedFunc(maps.Values(rs.byName), func(a, b *resource) int { return strings.Compare(a.Name, b.Name) })
}
