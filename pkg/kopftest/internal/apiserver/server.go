package apiserver

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/kopftest/internal/apiserver/resource"
	"github.com/kopf-go/kopf/pkg/kopftest/internal/apiserver/store"
	"github.com/kopf-go/kopf/pkg/kopftest/internal/apiserver/webhook"
)

// Options configures a server.
type Options struct {
	// Webhooks reaches admission webhooks. Default: they cannot be reached, and their
	// failure policies apply.
	Webhooks http.RoundTripper
	// Allowed answers access reviews. It does not restrict requests. Default: everything
	// is allowed.
	Allowed func(verb string, of schema.GroupResource, namespace string) bool
	// WatchesEnd makes the server end watches after the timeouts that clients ask for.
	// Default: watches last as long as clients read them, because every reconnection is
	// a step of virtual time.
	WatchesEnd bool
	// ShardedLists is the feature gate ShardedListAndWatch: lists and watches contain only the objects of
	// the parameter shardSelector. Default: the parameter is ignored.
	ShardedLists bool
}

// Server is an API server. It is safe for concurrent use.
type Server struct {
	options Options
	store   *store.Store
	catalog *catalog
	writer  *writer
	streams streams
}

// The resources that the server itself depends on.
var (
	namespaces  = schema.GroupResource{Resource: "namespaces"}
	definitions = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
)

// New returns a server with the built-in resources and the namespaces that every cluster has.
func New(options Options) (*Server, error) {
	builtin, err := resource.Builtin()
	if err != nil {
		return nil, fmt.Errorf("the API server cannot start: %w", err)
	}
	objects := store.New()
	known := &catalog{store: objects, builtin: builtin, definitions: map[string][]*resource.Resource{}}
	s := &Server{
		options: options, store: objects, catalog: known,
		writer: &writer{store: objects, catalog: known, hooks: webhook.New(objects, options.Webhooks)},
	}
	for _, name := range []string{"default", "kube-node-lease", "kube-public", "kube-system"} {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
		}}
		initialize(object)
		known.find(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).PrepareCreate(object)
		if _, err := objects.Commit(namespaces, types.NamespacedName{Name: name}, nil, object); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Compact forgets the history: older versions are answered with 410.
func (s *Server) Compact() {
	s.store.Compact()
	s.streams.issue(func(*orders) {}) // wakes the watches
}

// EndWatches closes all watches, as a server does when it shuts down.
func (s *Server) EndWatches() { s.streams.issue(func(o *orders) { o.ends++ }) }

// SendBookmarks sends a bookmark to every watch that wants bookmarks.
func (s *Server) SendBookmarks() { s.streams.issue(func(o *orders) { o.bookmarks++ }) }

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	err := s.serve(w, r)
	if err == nil {
		return
	}
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		known = apierrors.NewInternalError(err)
	}
	status := known.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	_ = respond(w, int(status.Code), status) // the client has gone
}
