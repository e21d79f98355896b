package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/inspect"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/storage"
)

// Options say what to release.
type Options struct {
	// Kinds are the resources; All means all that the operator stores something on.
	Kinds []string
	All   bool
	// Namespace limits it to a namespace. Default: the scope in the settings.
	Namespace string
	// DryRun only reads, and reports what would be done.
	DryRun bool
	// AbandonDeletions also releases objects that are being deleted and that the operator
	// holds: they disappear, and nothing cleans up for them.
	AbandonDeletions bool
	// AlsoIDs are ids of handlers that the program does not declare, whose records are removed.
	AlsoIDs []string
	// Finalizer and Prefixes are used instead of the settings, if there are any.
	Finalizer string
	Prefixes  []string
	// LeaseName and LeaseNamespace name the lease of the operator. Default: as in the settings,
	// where no namespace means all.
	LeaseName, LeaseNamespace string
	// Peering is the name of the peering of the operator. Default: as in the settings.
	Peering string
	// OperatorStopped confirms that the operator is stopped, if neither its lease nor its peering
	// shows it. A lease that is held, or an entry, counts nevertheless if it belongs to the operator
	// for certain.
	OperatorStopped bool
	// CommandLine is for the commands in the report.
	CommandLine inspect.CommandLine
	// Scanned is called after each page of objects that were looked at, before anything is written.
	// Default: nothing is called.
	Scanned func(resource string, done int)
	// Progress is called after each page of objects that were released. Default: nothing is called.
	Progress func(resource string, done, total int)
}

// Releaser releases the objects of a program in a cluster.
type Releaser struct {
	inspect.Program
	Options

	reading, writing dynamic.Interface
	served           discovery.Snapshot
	resources        []discovery.SelectedResource
	// confirmed are the signs of operators that can be others, as they were before the release.
	confirmed map[string]bool
	// places are sentences about the leases and the peering objects that exist.
	places []string
}

// New finds out what the cluster serves. It returns an error for options that are not safe.
func New(ctx context.Context, config *rest.Config, program inspect.Program, options Options) (*Releaser, error) {
	r := &Releaser{Program: program, Options: options}
	r.Settings = r.Settings.WithDefaults()
	r.useNames()
	if len(options.Prefixes) > 0 {
		if err := r.usePrefixes(); err != nil {
			return nil, err
		}
	}
	if options.Finalizer != "" {
		r.Settings.Persistence.Finalizer = options.Finalizer
	}
	reading := inspect.ReadOnly(config)
	client, err := rest.HTTPClientFor(reading)
	if err != nil {
		return nil, err
	}
	source, err := discovery.NewSource(reading, client)
	if err != nil {
		return nil, err
	}
	r.reading, err = dynamic.NewForConfigAndClient(reading, client)
	if err != nil {
		return nil, err
	}
	r.writing = r.reading
	if !options.DryRun {
		r.writing, err = dynamic.NewForConfig(config)
		if err != nil {
			return nil, err
		}
	}
	r.served, err = source.Resources(ctx)
	if err != nil {
		return nil, fmt.Errorf("the resources of the cluster cannot be discovered: %w", err)
	}
	if err := r.choose(); err != nil {
		return nil, err
	}
	return r, nil
}

// useNames applies the names of the lease and of the peering.
func (r *Releaser) useNames() {
	s := &r.Settings
	s.Replicas.LeaseName = cmp.Or(r.LeaseName, s.Replicas.LeaseName)
	r.LeaseNamespace = cmp.Or(r.LeaseNamespace, s.Replicas.LeaseNamespace)
	if r.Peering != "" {
		s.Peering.Name = r.Peering
		s.Peering.Standalone = false
	}
}

// usePrefixes replaces the storages of the settings.
func (r *Releaser) usePrefixes() error {
	var bases storage.MultiDiffBase
	var records storage.MultiProgress
	for _, prefix := range r.Prefixes {
		base := storage.AnnotationsDiffBase{Prefix: prefix}
		progress := storage.SmartProgress{Prefix: prefix}
		if err := errors.Join(base.Validate(), progress.Validate()); err != nil {
			return err
		}
		bases = append(bases, base)
		records = append(records, progress)
	}
	r.Settings.Persistence.DiffBase = bases
	r.Settings.Persistence.Progress = records
	return nil
}

// stores reports whether an operator stores something on the objects of a handler. The others can
// have the state of another operator.
func stores(d *handler.Declaration) bool {
	return d.Kind.IsChange() || d.Kind.IsBackground() || d.Kind.IsTriggered()
}

// choose chooses the resources.
func (r *Releaser) choose() error {
	resolved := discovery.Resolve(r.Handlers.Where(stores).Selectors(), r.served)
	var storing []discovery.SelectedResource
	for _, found := range resolved.Resources {
		if len(r.handlersOf(found)) > 0 { // and not only children of others
			storing = append(storing, found)
		}
	}
	if r.All {
		var unknown []error
		for _, warning := range resolved.Warnings {
			var incomplete *discovery.IncompleteError
			if errors.As(warning, &incomplete) {
				unknown = append(unknown, warning)
			}
		}
		if len(unknown) > 0 {
			return fmt.Errorf("it is not known which resources have objects to release: %w", errors.Join(unknown...))
		}
		r.resources = storing
		return nil
	}
	for _, kind := range r.Kinds {
		found, err := inspect.FindResource(kind, storing, r.served.Resources)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(r.resources, func(known discovery.SelectedResource) bool { return known.GVR() == found.GVR() }) {
			r.resources = append(r.resources, found)
		}
	}
	return nil
}

func (r *Releaser) handlersOf(found discovery.SelectedResource) []*handler.Declaration {
	return r.Handlers.Where(func(d *handler.Declaration) bool { return stores(d) && slices.Contains(found.Selectors, d.Selector) })
}

// finder returns the finder for a resource.
func (r *Releaser) finder(found discovery.SelectedResource) *finder {
	f := &finder{Persistence: r.Settings.Persistence, ids: slices.Clone(r.AlsoIDs)}
	for _, d := range r.handlersOf(found) {
		f.ids = append(f.ids, d.ID)
		f.ensures = f.ensures || d.Ensures != nil
	}
	return f
}

// api returns the objects of a resource in a namespace, or in all if it is empty.
func api(client dynamic.Interface, found selector.Resource, namespace string) dynamic.ResourceInterface {
	if found.Namespaced && namespace != "" {
		return client.Resource(found.GVR()).Namespace(namespace)
	}
	return client.Resource(found.GVR())
}

// each calls a function for each page of the objects of a resource in the scope.
func (r *Releaser) each(ctx context.Context, found discovery.SelectedResource, do func([]unstructured.Unstructured) error) error {
	isServed, err := inspect.Served(ctx, r.reading, r.Settings.Scope.Namespaces)
	if err != nil {
		return err
	}
	namespace := r.Namespace
	return inspect.EachPage(ctx, api(r.reading, found.Resource, namespace), metav1.ListOptions{}, func(items []unstructured.Unstructured) error {
		items = slices.DeleteFunc(items, func(obj unstructured.Unstructured) bool {
			return namespace == "" && found.Namespaced && !isServed(obj.GetNamespace())
		})
		for i := range items {
			if items[i].GetKind() == "" {
				items[i].SetGroupVersionKind(found.GVK())
			}
		}
		return do(items)
	})
}
