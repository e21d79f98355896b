package inspect

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/internal/conversion"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/rbac"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/reconcile/inspection"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/webhook/configurations"
)

// Program describes an operator, which need not run.
type Program struct {
	Handlers registry.Handlers
	// Startup are the startup handlers, which are not called: what they change is unknown.
	Startup registry.Handlers
	// Needs are the declared uses of a client by handlers.
	Needs []registry.Need
	// Conversions are those of objects between versions.
	Conversions conversion.Set
	Settings    settings.Settings
	// Scheme has the Go types of the operator. It can be nil.
	Scheme *runtime.Scheme
	// StartUp calls the startup handlers with a connection to the cluster, and returns the
	// settings that they leave. Commands that only look do not call it.
	StartUp func(context.Context, *rest.Config) (settings.Settings, error)
	// IsRunning is set if the operator runs in this process: filters can read its indices, and its settings are final.
	IsRunning bool
}

// Cluster is a program and the cluster to look at.
type Cluster struct {
	Program

	// Progress is called after each page of the objects of a plan, unless it is nil.
	Progress func(resource string, done int)
	// MaxExamples is how many objects a plan names, for each resource.
	MaxExamples int
	// CommandLine is for the commands in answers.
	CommandLine CommandLine

	config    *rest.Config
	objects   dynamic.Interface
	source    discovery.Source
	inspector *inspection.Inspector
	served    discovery.Snapshot
	resolved  discovery.Resolution
	labels    map[string]map[string]string // of all namespaces, if they decide
	// isServed reports whether the operator serves a namespace.
	isServed func(namespace string) bool
}

// New returns a cluster without a request to it: nothing is known before Discover.
func New(config *rest.Config, program Program) (*Cluster, error) {
	config = ReadOnly(config)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	source, err := discovery.NewSource(config, client)
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	if !program.IsRunning {
		inspection.WithoutIndices(program.Handlers)
	}
	return &Cluster{
		Program: program, MaxExamples: DefaultExamples, config: config, objects: objects, source: source,
		inspector: inspection.New(program.Handlers, program.Settings), isServed: func(string) bool { return false },
	}, nil
}

// Connect returns a cluster, and finds out what it serves.
func Connect(ctx context.Context, config *rest.Config, program Program) (*Cluster, error) {
	c, err := New(config, program)
	if err != nil {
		return nil, err
	}
	return c.Discover(ctx)
}

// Discover returns the cluster with the resources and the namespaces that it has now.
func (c *Cluster) Discover(ctx context.Context) (*Cluster, error) {
	served, err := c.source.Resources(ctx)
	if err != nil {
		return nil, fmt.Errorf("the resources of the cluster cannot be discovered: %w", err)
	}
	scope := selector.Namespaces(c.Settings.Scope.Namespaces)
	var labels map[string]map[string]string
	if scope.NeedsLabels() || c.IsRunning && len(scope.Patterns()) > 0 {
		labels, err = namespaceLabels(ctx, c.objects, scope)
	}
	if err != nil {
		return nil, err
	}
	now := *c
	now.served = served
	now.resolved = discovery.Resolve(c.Handlers.Watching().Selectors(), served)
	now.labels = labels
	now.isServed = func(namespace string) bool { return scope.Match(namespace, labels[namespace]) }
	// It knows the handlers of resources as they were.
	now.inspector = inspection.New(c.Handlers, c.Settings)
	return &now, nil
}

// IsDiscovered reports whether it is known what the cluster serves.
func (c *Cluster) IsDiscovered() bool { return !c.served.Asked.IsZero() }

// Namespaces returns the names of those whose objects a running operator watches, in order. It is nil if it watches all.
func (c *Cluster) Namespaces() []string {
	scope := selector.Namespaces(c.Settings.Scope.Namespaces)
	if len(scope) == 0 {
		return nil
	}
	names := scope.Names()
	for name := range c.labels {
		if c.isServed(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// ServesSameNamespaces reports whether an operator serves the same namespaces as at another time.
func (c *Cluster) ServesSameNamespaces(before *Cluster) bool {
	return maps.EqualFunc(c.labels, before.labels, maps.Equal[map[string]string, map[string]string])
}

// Served returns a function that reports whether an operator with the scope serves a namespace. If labels decide, it lists
// the namespaces.
func Served(ctx context.Context, objects dynamic.Interface, scope selector.Namespaces) (func(namespace string) bool, error) {
	var labels map[string]map[string]string
	var err error
	if scope.NeedsLabels() {
		labels, err = namespaceLabels(ctx, objects, scope)
	}
	return func(namespace string) bool { return scope.Match(namespace, labels[namespace]) }, err
}

// namespaceLabels returns the labels of all namespaces, which decide which ones an operator serves.
func namespaceLabels(ctx context.Context, objects dynamic.Interface, scope selector.Namespaces) (map[string]map[string]string, error) {
	labels := map[string]map[string]string{}
	all := objects.Resource(corev1.SchemeGroupVersion.WithResource("namespaces"))
	err := each(ctx, all, metav1.ListOptions{}, func(u *unstructured.Unstructured) { labels[u.GetName()] = u.GetLabels() })
	if err != nil {
		return nil, fmt.Errorf("the namespaces cannot be listed, and their labels decide which of them the operator serves (%s): %w", strings.Join(scope, "; "), err)
	}
	return labels, nil
}

// NoHandlersError means that the program declares no handlers for a resource.
type NoHandlersError struct {
	Resource string
	Declared []string
	// Unresolved says which selectors select nothing in the cluster, and why.
	Unresolved []string

	found selector.Resource
}

func (e *NoHandlersError) Error() string {
	switch {
	case len(e.Declared) == 0 && len(e.Unresolved) > 0:
		return fmt.Sprintf("this program declares no handlers for %s: %s", e.Resource, strings.Join(e.Unresolved, "; "))
	case len(e.Declared) == 0:
		return fmt.Sprintf("this program declares no handlers for %s, and none for any resource that the cluster serves: is its custom resource definition installed?", e.Resource)
	}
	return strings.Join(append([]string{fmt.Sprintf("this program declares no handlers for %s; it has handlers for %s", e.Resource, strings.Join(e.Declared, ", "))}, e.Unresolved...), "; ")
}

// resource returns the resource with handlers that a person has named, as for kubectl.
func (c *Cluster) resource(name string) (discovery.SelectedResource, error) {
	handled, err := FindResource(name, c.resolved.Resources, c.served.Resources)
	var none *NoHandlersError
	if !errors.As(err, &none) {
		return handled, err
	}
	if found := none.found; len(c.admissionOf(found)) > 0 {
		return discovery.SelectedResource{Resource: found}, nil
	}
	none.Declared = nil
	for _, r := range c.handled() {
		if declared := nameOf(r); !slices.Contains(none.Declared, declared) { // without its versions
			none.Declared = append(none.Declared, declared)
		}
	}
	for _, warning := range c.resolved.Warnings {
		none.Unresolved = append(none.Unresolved, warning.Error())
	}
	return handled, none
}

// handled returns the resources with handlers, of passes or of requests.
func (c *Cluster) handled() []selector.Resource {
	all := []selector.Resource{}
	for _, r := range c.served.Resources {
		isWatched := slices.ContainsFunc(c.resolved.Resources, func(s discovery.SelectedResource) bool { return s.GVR() == r.GVR() })
		if isWatched || len(c.admissionOf(r)) > 0 {
			all = append(all, r)
		}
	}
	return all
}

// nameOf returns the name of a resource as for kubectl.
func nameOf(r selector.Resource) string {
	if r.Group == "" {
		return r.Plural
	}
	return r.Plural + "." + r.Group
}

// Target names an object: KIND/NAME in a namespace.
type Target struct{ Kind, Namespace, Name string }

// ParseTarget parses the arguments that name an object: KIND/NAME, or KIND NAME. It returns the
// arguments that follow.
func ParseTarget(arguments []string) (t Target, rest []string, err error) {
	if len(arguments) == 0 {
		return t, nil, errors.New("no object is given: use KIND/NAME, such as kopfexample/my-object")
	}
	kind, name, both := strings.Cut(arguments[0], "/")
	rest = arguments[1:]
	if !both && len(rest) > 0 {
		name = rest[0]
		rest = rest[1:]
	}
	if kind == "" || name == "" || strings.Contains(name, "/") {
		return t, nil, fmt.Errorf("%q names no object: use KIND/NAME, such as kopfexample/my-object", arguments[0])
	}
	return Target{Kind: kind, Name: name}, rest, nil
}

// get reads an object.
func (c *Cluster) get(ctx context.Context, t Target) (discovery.SelectedResource, *unstructured.Unstructured, error) {
	found, err := c.resource(t.Kind)
	if err != nil {
		return found, nil, err
	}
	api := c.objects.Resource(found.GVR())
	var of dynamic.ResourceInterface = api
	if found.Namespaced {
		of = api.Namespace(t.Namespace)
	}
	obj, err := of.Get(ctx, t.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && found.Namespaced:
		return found, nil, fmt.Errorf("there is no object %s/%s in the namespace %q: set --namespace (-n) if it is in another one", nameOf(found.Resource), t.Name, t.Namespace)
	case apierrors.IsNotFound(err):
		return found, nil, fmt.Errorf("there is no object %s/%s", nameOf(found.Resource), t.Name)
	case err != nil:
		return found, nil, fmt.Errorf("the object %s/%s cannot be read: %w", nameOf(found.Resource), t.Name, err)
	}
	return found, obj, nil
}

// startupNote says what is unknown because startup handlers are not called.
func (p Program) startupNote() string {
	if len(p.Startup) == 0 {
		return ""
	}
	return fmt.Sprintf("The startup handler %s (%s) was not called: settings that it makes, and variables that it sets for filters, are unknown here.", p.Startup[0].ID, p.Startup[0].DeclaredAt)
}

// addInvalidSettings says why no operator of the program starts. Startup handlers and the options of an operator
// can make other settings.
func (c *Cluster) addInvalidSettings(e *Explanation) {
	for _, problem := range []error{c.Settings.Validate(), c.Handlers.CheckName(c.Settings.Name), c.Settings.CheckShardName()} {
		if problem != nil {
			e.mayRefuse = append(e.mayRefuse, fmt.Sprintf("An operator with the settings that are known here does not start: %v.", problem))
		}
	}
}

// addMissingFields says why an operator of the program does not start: a definition does not have the fields of
// conditions. An operator that may not read the definition does not know that.
func (c *Cluster) addMissingFields(ctx context.Context, e *Explanation) {
	for _, found := range c.resolved.Resources {
		if !c.inspector.HasConditions(found) {
			continue
		}
		if problem := c.inspector.CheckConditions(found, nil, false); problem != nil {
			e.refuses = append(e.refuses, fmt.Sprintf("The operator does not start: %v.", problem))
			continue
		}
		name := found.Plural + "." + found.Group
		definition, err := c.objects.Resource(discovery.CustomResourceDefinitions).Get(ctx, name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			e.Notes = append(e.Notes, fmt.Sprintf("Whether an operator starts is not decidable here, because kopf.Conditions needs fields in the schema of %s, which cannot be read: %v. See the log of the operator, or ask a person who may: %s",
				name, err, c.CommandLine.Kubectl("get customresourcedefinitions "+name+" -o yaml")))
			continue
		}
		var content map[string]any
		if err == nil {
			content = definition.Object
		}
		if problem := c.inspector.CheckConditions(found, content, true); problem != nil {
			e.mayRefuse = append(e.mayRefuse, fmt.Sprintf("An operator that may get the definition %s does not start: %v. One that may not get it starts, and its conditions are lost. To add the fields: %s",
				name, problem, c.CommandLine.Kubectl("edit customresourcedefinitions "+name)))
		}
	}
}

// unknownFields says which handlers of a resource are for fields that its objects do not have. It says nothing if the
// definition cannot be read.
func (c *Cluster) unknownFields(ctx context.Context, found discovery.SelectedResource) (notes []string) {
	if !c.inspector.HasFields(found) {
		return nil
	}
	var definition map[string]any
	read, err := c.objects.Resource(discovery.CustomResourceDefinitions).Get(ctx, found.Plural+"."+found.Group, metav1.GetOptions{})
	if err == nil {
		definition = read.Object
	}
	for _, problem := range c.inspector.UnknownFields(found, definition, c.Scheme) {
		notes = append(notes, fmt.Sprintf("A handler is for a field that does not exist: %v", problem))
	}
	return notes
}

// conversions says how the objects of a resource are converted between versions, if the program declares that.
func (c *Cluster) conversions(ctx context.Context, found discovery.SelectedResource) (notes []string) {
	if len(c.Conversions) == 0 {
		return nil
	}
	name := found.Plural + "." + found.Group
	graphs, problems := c.Conversions.Resolve(c.served.Resources)
	graph := graphs[name]
	if graph == nil {
		return nil
	}
	for _, problem := range problems {
		notes = append(notes, problem.Error()+".")
	}
	look := c.CommandLine.Kubectl("get customresourcedefinitions " + name + " -o yaml")
	definition, err := c.objects.Resource(discovery.CustomResourceDefinitions).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return []string{fmt.Sprintf("The operator converts its objects between the versions %s. Whether the API server lets it is unknown: %v. Ask a person who may see it: %s", strings.Join(graph.Versions(), ", "), err, look)}
	}
	if configurations.IsConverted(definition) {
		notes = append(notes, fmt.Sprintf("The operator converts its objects between the versions %s.", strings.Join(graph.Versions(), ", ")))
	} else {
		notes = append(notes, fmt.Sprintf("The API server does not let the operator convert its objects between the versions %s: it drops the fields that other versions do not have. "+
			"The operator writes spec.conversion of the definition with Settings.Admission.Managed. See what it is: %s", strings.Join(graph.Versions(), ", "), look))
	}
	usage, err := configurations.UsageOf(definition)
	if err == nil {
		err = graph.Missing(usage)
	}
	if err != nil {
		notes = append(notes, fmt.Sprintf("Some of its objects cannot be converted: %v.", err))
	}
	return notes
}

// Served returns what the cluster serves.
func (c *Cluster) Served() discovery.Snapshot { return c.served }

// Roles are the permissions that an operator needs: a list of objects for kubectl apply.
type Roles struct {
	APIVersion string           `json:"apiVersion"`
	Kind       string           `json:"kind"`
	Items      []runtime.Object `json:"items"`

	// Problems say what could not be derived.
	Problems []error `json:"-"`

	text string
}

// Roles derives the roles of the program from what the cluster serves now. The operator runs in
// the namespace, and as the account if that has a name.
func (c *Cluster) Roles(namespace string, account rbac.Account) *Roles {
	in := rbac.Input{Handlers: c.Handlers, Conversions: c.Conversions, Needs: c.Needs, Settings: c.Settings, Snapshot: c.served, Namespace: namespace}
	objects, problems := rbac.Objects(in, account)
	return &Roles{APIVersion: "v1", Kind: "List", Items: objects, Problems: problems, text: rbac.Text(in, account, time.Now())}
}

// Text returns the roles as manifests, with the reason of every rule and what could not be derived
// as comments.
func (r *Roles) Text(Style) string { return r.text }

// ReadOnly returns a configuration for commands that only look: it refuses every request but
// those that read, and reviews of the permissions of the user.
func ReadOnly(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return readOnly{next} })
	return config
}

type readOnly struct{ next http.RoundTripper }

// RoundTrip sends a request that reads.
func (r readOnly) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet && !isSelfReview(request) {
		return nil, fmt.Errorf("this command only reads: the request %s %s is refused", request.Method, request.URL.Path)
	}
	return r.next.RoundTrip(request)
}

// isSelfReview reports whether a request asks what the user may do, which creates nothing.
func isSelfReview(request *http.Request) bool {
	isReview := strings.HasPrefix(request.URL.Path, "/apis/authorization.k8s.io/") || strings.HasPrefix(request.URL.Path, "/apis/authentication.k8s.io/")
	return request.Method == http.MethodPost && isReview && strings.HasPrefix(path.Base(request.URL.Path), "selfsubject")
}
