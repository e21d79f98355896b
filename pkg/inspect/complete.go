package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
)

// Completer completes the arguments that name an object and a handler. It only reads.
type Completer struct {
	config   *rest.Config
	served   discovery.Snapshot
	declared []selector.Resource // nil for all resources
	cluster  *Cluster            // nil if the program is unknown
}

// NewCompleter returns a Completer for any program.
func NewCompleter(ctx context.Context, config *rest.Config) (*Completer, error) {
	config = ReadOnly(config)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	source, err := discovery.NewSource(config, client)
	if err != nil {
		return nil, err
	}
	served, err := source.Resources(ctx)
	return &Completer{config: config, served: served}, err
}

// Completer returns a Completer that knows the handlers.
func (c *Cluster) Completer() *Completer {
	return &Completer{config: c.config, served: c.served, declared: c.handled(), cluster: c}
}

// Complete returns what the last word can be, after the others: KIND/NAME, or KIND NAME, and the id
// of a handler if the command needs one. Kinds end in a slash.
func (c *Completer) Complete(ctx context.Context, namespace string, before []string, word string, needsHandler bool) ([]string, error) {
	kind, _, isWhole := strings.Cut(word, "/")
	switch {
	case len(before) == 0 && isWhole:
		return c.names(ctx, kind, namespace, kind+"/", word)
	case len(before) == 0:
		return c.Kinds(word, "/"), nil
	}
	kind, _, isWhole = strings.Cut(before[0], "/")
	switch {
	case len(before) == 1 && !isWhole:
		return c.names(ctx, kind, namespace, "", word)
	case needsHandler && (len(before) == 1 || len(before) == 2 && !isWhole):
		return c.handlers(kind, word), nil
	default:
		return nil, nil
	}
}

// Kinds returns the resources as for kubectl, with an ending.
func (c *Completer) Kinds(word, ending string) []string {
	resources := c.declared
	if resources == nil {
		resources = c.served.Resources
	}
	var found []string
	for _, r := range resources {
		name := nameOf(r)
		isObject := slices.Contains(r.Verbs, "get") && slices.Contains(r.Verbs, "list")
		if isObject && strings.HasPrefix(name, word) && !slices.Contains(found, name+ending) {
			found = append(found, name+ending)
		}
	}
	return found
}

// names returns the names of the objects of a kind, without reading the objects.
func (c *Completer) names(ctx context.Context, kind, namespace, prefix, word string) ([]string, error) {
	named := selector.New(kind)
	resources, err := named.Resolve(c.served.Resources)
	switch {
	case err != nil:
		return nil, err
	case len(resources) == 0:
		return nil, fmt.Errorf("the cluster does not serve a resource %q", kind)
	}
	r := resources[0]
	client, err := metadata.NewForConfig(c.config)
	if err != nil {
		return nil, err
	}
	var from metadata.ResourceInterface = client.Resource(r.GVR())
	if r.Namespaced {
		from = client.Resource(r.GVR()).Namespace(namespace)
	}
	list, err := from.List(ctx, metav1.ListOptions{Limit: maxCompletions})
	if err != nil {
		return nil, err
	}
	var found []string
	for _, item := range list.Items {
		if name := prefix + item.Name; strings.HasPrefix(name, word) {
			found = append(found, name)
		}
	}
	return found, nil
}

// maxCompletions limits the number of objects that are read for one completion.
const maxCompletions = 500

// handlers returns the ids of the handlers that requests can be about.
func (c *Completer) handlers(kind, word string) []string {
	if c.cluster == nil {
		return nil
	}
	found, err := c.cluster.resource(kind)
	if err != nil {
		return nil
	}
	var ids []string
	for _, d := range c.cluster.Handlers {
		isOf := slices.Contains(found.Selectors, d.Selector) && d.Kind.IsChange()
		if isOf && strings.HasPrefix(d.ID, word) && !slices.Contains(ids, d.ID) {
			ids = append(ids, d.ID)
		}
	}
	return ids
}
