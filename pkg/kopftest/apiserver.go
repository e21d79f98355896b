package kopftest

import (
	"net/http"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/kopftest/internal/apiserver"
	"github.com/kopf-go/kopf/pkg/kopftest/internal/inprocess"
)

// APIServer is an API server of Kubernetes in memory. New starts one for an operator in
// virtual time; NewAPIServer starts one alone, which also works in real time, and thereby
// with frameworks that have no *testing.T.
//
// It has the semantics of the real one for everything that operators depend on: versions,
// watches, all kinds of patches, finalizers, field owners, and discovery. That includes custom
// resource definitions with their schemas, selectable fields and conversion webhooks, and admission webhooks with
// their match conditions. It has no controllers, no garbage collection (except in
// Harness.CollectGarbage), and no scale subresource of custom
// resources. It has no reinvocation of webhooks, no admission policies, no authentication, and
// neither defaults nor validation for built-in resources. It listens on no port: use its
// Config.
//
// It is safe for concurrent use.
type APIServer struct {
	server *apiserver.Server
}

// APIServerOption is an option of NewAPIServer.
type APIServerOption interface{ applyToServer(o *apiserver.Options) }

type webhooksOption struct{ through http.RoundTripper }

func (w webhooksOption) applyToServer(o *apiserver.Options) { o.Webhooks = w.through }

// Webhooks makes the API server call webhooks through a transport, at the URLs of their configurations; the
// host of a service is "name.namespace.svc". Default: they cannot be reached, and their failure policies apply.
//
// In virtual time, a transport must not use the network.
func Webhooks(through http.RoundTripper) APIServerOption { return webhooksOption{through} }

type shardedListsOption struct{}

func (shardedListsOption) applyToServer(o *apiserver.Options) { o.ShardedLists = true }

// ShardedLists makes the API server filter lists and watches by their parameter shardSelector, as the one of Kubernetes
// does with the feature gate ShardedListAndWatch. Default: the parameter is ignored.
func ShardedLists() APIServerOption { return shardedListsOption{} }

// NewAPIServer returns a new, empty API server.
func NewAPIServer(t testing.TB, options ...APIServerOption) *APIServer {
	t.Helper()
	all := apiserver.Options{WatchesEnd: true}
	for _, option := range options {
		option.applyToServer(&all)
	}
	server, err := apiserver.New(all)
	if err != nil {
		t.Fatal(err)
	}
	return &APIServer{server: server}
}

// Config connects clients with the server.
func (s *APIServer) Config() *rest.Config {
	return &rest.Config{
		Host: "http://kopftest", Transport: inprocess.Transport{Handler: s.server}, QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: "application/json"},
	}
}

// Compact forgets old versions, as etcd does after some minutes: watches and lists that
// need them are answered with 410.
func (s *APIServer) Compact() { s.server.Compact() }

// EndWatches ends all watches, as a server does that shuts down.
func (s *APIServer) EndWatches() { s.server.EndWatches() }

// SendBookmarks sends a bookmark to all watches that accept bookmarks. The real server does
// that every minute.
func (s *APIServer) SendBookmarks() { s.server.SendBookmarks() }
