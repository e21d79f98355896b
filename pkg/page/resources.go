package page

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/inspect"
)

// discoveryInterval is how often the resources and namespaces of the cluster are discovered again, while the page is open.
const discoveryInterval = 10 * time.Second

// resources are those with handlers that the cluster serves, with the tables of their objects.
type resources struct {
	namespace string // restricts the objects; empty for all namespaces
	changed   func(resource string, object types.NamespacedName, isOther bool)

	mu      sync.RWMutex
	cluster *inspect.Cluster // as it was discovered last
	tables  []*table         // by the names of resources and of namespaces
	asked   time.Time        // when it was discovered; zero for never
	tried   chan struct{}    // closed with the first discovery or error
	err     error            // why the resources are unknown, or not current
}

// newResources returns the resources of a cluster, which is discovered already, or will be when the page is opened.
func newResources(cluster *inspect.Cluster, namespace string, changed func(string, types.NamespacedName, bool)) *resources {
	r := &resources{namespace: namespace, changed: changed, cluster: cluster, tried: make(chan struct{})}
	if cluster.IsDiscovered() {
		r.adopt(cluster)
	}
	return r
}

// current returns the cluster and the tables of its resources.
func (r *resources) current() (*inspect.Cluster, []*table) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.cluster, r.tables
}

// problem returns why the resources are unknown or not current, for a person.
func (r *resources) problem() string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.err == nil {
		return ""
	}
	return "What the cluster serves is not current: " + r.err.Error()
}

// watch keeps the tables of all resources until the context is done.
func (r *resources) watch(ctx context.Context) {
	running := map[*table]func(){}
	defer func() {
		for _, stop := range running {
			stop()
		}
	}()
	for ctx.Err() == nil {
		r.mu.RLock()
		isOld := time.Since(r.asked) >= discoveryInterval
		r.mu.RUnlock()
		if isOld {
			r.discover(ctx)
		}
		_, tables := r.current()
		for t, stop := range running {
			if !slices.Contains(tables, t) {
				stop()
				delete(running, t)
			}
		}
		for _, t := range tables {
			if running[t] == nil {
				running[t] = t.start(ctx)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(discoveryInterval):
		}
	}
}

// discover finds out which resources and namespaces the cluster has now.
func (r *resources) discover(ctx context.Context) {
	before, _ := r.current()
	now, err := before.Discover(ctx)
	if ctx.Err() != nil {
		return
	}
	r.mu.Lock()
	isOther := err != nil || r.err != nil
	r.err = err
	if err == nil {
		isOther = r.adopt(now) || isOther
	} else if !isClosed(r.tried) {
		close(r.tried)
	}
	r.mu.Unlock()
	if isOther {
		r.changed("", types.NamespacedName{}, true)
	}
}

// adopt takes over what was discovered, and reports whether there are other tables. The tables of resources that have not
// changed stay. It is called with the lock.
func (r *resources) adopt(now *inspect.Cluster) (isOther bool) {
	namespaces := now.Namespaces()
	isSame := now.ServesSameNamespaces(r.cluster)
	var tables []*table
	for _, of := range now.Watched() {
		watched := []string{r.namespace}
		if of.Namespaced && r.namespace == "" && now.IsRunning && namespaces != nil {
			watched = namespaces // an operator may look at no others
		}
		for _, namespace := range watched {
			i := slices.IndexFunc(r.tables, func(t *table) bool {
				return isSame && t.namespace == namespace && t.of.GVR() == of.GVR() && slices.Equal(t.of.Selectors, of.Selectors)
			})
			if i >= 0 {
				tables = append(tables, r.tables[i])
			} else {
				tables = append(tables, newTable(now, of, namespace, r.changed))
			}
		}
	}
	slices.SortFunc(tables, func(a, b *table) int {
		return cmp.Or(strings.Compare(a.of.Name, b.of.Name), strings.Compare(a.namespace, b.namespace))
	})
	isOther = !slices.Equal(tables, r.tables)
	r.cluster = now
	r.tables = tables
	r.asked = time.Now()
	if !isClosed(r.tried) {
		close(r.tried)
	}
	return isOther
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
