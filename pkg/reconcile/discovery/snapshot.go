package discovery

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/model/selector"
)

// Snapshot contains the resources that an API server offers at one moment.
type Snapshot struct {
	// Resources are all resources in all served versions, including those that cannot
	// be watched, ordered by group, name, and version.
	Resources []selector.Resource
	// Failed are the versions of API groups whose resources are unknown now, with the
	// reasons. Most often the server behind an APIService is unavailable.
	Failed map[schema.GroupVersion]error
	// Asked is when the API server was asked. What is absent was absent after that.
	Asked time.Time
}

// Source returns the resources of a cluster as they are now. It is safe for concurrent
// use.
type Source interface {
	// Resources fails only if nothing at all is known. The Snapshot holds what is
	// known in part.
	Resources(ctx context.Context) (Snapshot, error)
}

// SourceFunc makes a function a Source.
type SourceFunc func(ctx context.Context) (Snapshot, error)

// Resources calls the function.
func (f SourceFunc) Resources(ctx context.Context) (Snapshot, error) { return f(ctx) }

// NewSource returns a Source that scans the API server on every call.
func NewSource(config *rest.Config, client *http.Client) (Source, error) {
	api, err := discovery.NewDiscoveryClientForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("cannot ask the API server for its resources: %w", err)
	}
	return SourceFunc(func(ctx context.Context) (Snapshot, error) { return Scan(ctx, api) }), nil
}

// unavailableFor returns the failed group versions in which the selector could find
// something, in order.
func (s Snapshot) unavailableFor(sel selector.Selector) []schema.GroupVersion {
	all := slices.SortedFunc(maps.Keys(s.Failed), func(a, b schema.GroupVersion) int {
		return strings.Compare(a.String(), b.String())
	})
	return slices.DeleteFunc(all, func(gv schema.GroupVersion) bool { return !sel.Covers(gv) })
}
