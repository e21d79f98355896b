package discovery

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/model/selector"
)

// Snapshot is what an API server offers at one moment.
type Snapshot struct {
	// Resources are all resources in all served versions, ordered by group,
	// name and version; also those that cannot be watched.
	Resources []selector.Resource
	// Failed are the versions of API groups whose resources are not known now,
	// with the reasons. Most often the server behind an APIService is down.
	Failed map[schema.GroupVersion]error
}

// Source yields the resources of a cluster as they are now. It is safe for
// concurrent use.
type Source interface {
	// Resources fails only when nothing at all is known; what is known in part
	// is in the Snapshot.
	Resources(ctx context.Context) (Snapshot, error)
}

// SourceFunc is a function as a Source.
type SourceFunc func(ctx context.Context) (Snapshot, error)

// Resources calls the function.
func (f SourceFunc) Resources(ctx context.Context) (Snapshot, error) { return f(ctx) }

// NewSource makes a Source that scans the API server each time it is asked.
func NewSource(config *rest.Config, client *http.Client) (Source, error) {
	api, err := discovery.NewDiscoveryClientForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("the API server cannot be asked for its resources: %w", err)
	}
	return SourceFunc(func(ctx context.Context) (Snapshot, error) { return Scan(ctx, api) }), nil
}

// unseen are those failed group versions in which the selector could find
// something, in order.
func (s Snapshot) unavailableFor(sel selector.Selector) []schema.GroupVersion {
	all := slices.SortedFunc(maps.Keys(s.Failed), func(a, b schema.GroupVersion) int {
		return strings.Compare(a.String(), b.String())
	})
	return slices.DeleteFunc(all, func(gv schema.GroupVersion) bool { return !sel.Covers(gv) })
}
