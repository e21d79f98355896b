package webhook

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

const (
	// DefaultMaxBody has room for two objects, the old one and the new one, of what
	// kube-apiserver takes as a request at most, 3 MiB each, and for what is around.
	DefaultMaxBody = 7 << 20
	// MaxTimeout is the longest that Kubernetes waits for a webhook.
	MaxTimeout = 30 * time.Second
)

// Options are what the reviews are answered with. Only the handlers and the
// resources are necessary.
type Options struct {
	// Handlers are those of the operator; only the admission handlers matter.
	Handlers registry.Handlers
	// Resources tells what the cluster serves under a name; false: nothing. It must
	// be quick.
	Resources func(schema.GroupVersionResource) (selector.Resource, bool)
	Logger    logr.Logger
	// Client is for the handlers.
	Client client.Client
	// Context puts what handlers may ask the context for into it. Default: nothing.
	Context func(ctx context.Context, about About) context.Context
	// Memo finds what is kept in memory of an object. The uid is empty for an object
	// that is being created: nothing is to be kept of it then. Default: none.
	Memo func(resource selector.Resource, name types.NamespacedName, uid types.UID) *memo.Values
	// CheckReady is asked before each review. Its error says why the operator cannot answer
	// yet; it must not wait. Default: it always can.
	CheckReady func(ctx context.Context) error
	// MaxBody is the largest body of a review, in bytes. Default: DefaultMaxBody.
	MaxBody int64
}

// About is what the context of a handler's call is about.
type About struct {
	Body     func() *object.Body
	Resource selector.Resource
	Logger   logr.Logger
}

// webhook is the http.Handler.
type webhook struct {
	Options
	paths map[string]registry.Handlers
}

// New makes the http.Handler. It is safe for concurrent use, and holds nothing that
// would have to be closed.
func New(options Options) http.Handler {
	options.MaxBody = cmp.Or(options.MaxBody, DefaultMaxBody)
	if options.Context == nil {
		options.Context = func(ctx context.Context, _ About) context.Context { return ctx }
	}
	if options.CheckReady == nil {
		options.CheckReady = func(context.Context) error { return nil }
	}
	return &webhook{Options: options, paths: handlersByPath(options.Handlers.Admission())}
}
