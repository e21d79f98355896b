package webhook

import (
	"context"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/internal/conversion"
	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/tracing"
)

const (
	// MaxBody is the maximum size of a review in bytes, on every server. It has room
	// for an old and a new object of the maximum size that kube-apiserver accepts in a
	// request, 3 MiB each, and for the rest of the review.
	MaxBody = 7 << 20
	// MaxConversion is the maximum size of a conversion review in bytes. It has all objects of a list,
	// which a client can ask for without a limit.
	MaxConversion = 512 << 20
	// MaxTimeout is the longest time that Kubernetes waits for a webhook.
	MaxTimeout = 30 * time.Second
)

// Options configure a webhook. Only Handlers and Resources are required.
type Options struct {
	// Handlers are the handlers of the operator. Only the admission handlers matter.
	Handlers registry.Handlers
	// Resources returns the resource that the cluster serves under a name, and whether
	// there is one. It must return quickly.
	Resources func(schema.GroupVersionResource) (selector.Resource, bool)
	Logger    logr.Logger
	// Client is the client that handlers get.
	Client client.Client
	// Context returns the context for the call of a handler. Default: the context of
	// the request.
	Context func(ctx context.Context, call handler.CallContext) context.Context
	// Memo returns the memo of an object. The uid is empty for an object that is being
	// created: nothing of it may be kept. Default: no memos.
	Memo func(resource selector.Resource, name types.NamespacedName, uid types.UID) *memo.Values
	// CheckReady is called before each review. It returns an error that says why the
	// operator is not ready, and must not wait. Default: always ready.
	CheckReady func(ctx context.Context) error
	// Measure is called with the outcome of each call of a handler: its error, which can be a
	// rejection. Refused is called with the status code of each request that gets no review.
	// Both can be nil.
	Measure func(d *handler.Declaration, err error, took time.Duration)
	Refused func(code int)
	// Tracer makes spans. Nil disables them.
	Tracer tracing.Tracer

	// Conversions returns the conversions of a resource by the name of its definition, or nil if
	// there are none. Default: there are none.
	Conversions func(definition string) *conversion.Graph
	// Converted is called with the outcome of each conversion of an object. It can be nil.
	Converted func(definition, from, to string, err error, took time.Duration)
}

// webhook is the http.Handler.
type webhook struct {
	Options
	paths    map[string]registry.Handlers // the handlers that are called at each path
	failures failureLog                   // of conversions
}

// New returns an http.Handler that answers reviews. It is safe for concurrent use and
// holds nothing that must be closed.
func New(options Options) http.Handler {
	if options.Context == nil {
		options.Context = func(ctx context.Context, _ handler.CallContext) context.Context { return ctx }
	}
	if options.CheckReady == nil {
		options.CheckReady = func(context.Context) error { return nil }
	}
	if options.Measure == nil {
		options.Measure = func(*handler.Declaration, error, time.Duration) {}
	}
	if options.Conversions == nil {
		options.Conversions = func(string) *conversion.Graph { return nil }
	}
	if options.Converted == nil {
		options.Converted = func(string, string, string, error, time.Duration) {}
	}
	if options.Refused == nil {
		options.Refused = func(int) {}
	}
	handlers := options.Handlers.Admission()
	paths := map[string]registry.Handlers{
		"":                    handlers,
		handler.AllValidating: handlers.OfKind(handler.OnValidate),
		handler.AllMutating:   handlers.OfKind(handler.OnMutate),
	}
	for _, d := range handlers {
		paths[d.ID] = append(paths[d.ID], d)
	}
	return &webhook{Options: options, paths: paths}
}
