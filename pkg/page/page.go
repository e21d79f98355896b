package page

import (
	"context"
	"embed"
	"errors"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/inspect"
)

// Options say what a page shows, and to whom.
type Options struct {
	// Name is that of the operator, for the titles of windows. It can be empty.
	Name string
	// Cluster is discovered when the page is opened, unless it is already.
	Cluster *inspect.Cluster
	// Token is the secret of the people who may look at a page on their machine: see NewToken.
	Token string
	// Access decides who may look at a page in a cluster, instead of the Token.
	Access Access
	// Namespace restricts the objects. Empty: all namespaces.
	Namespace string
	// LeaseName and LeaseNamespace are those of the operator's leases. The name can be empty for that in the settings, and
	// without a namespace, the leases are not shown.
	LeaseName, LeaseNamespace string
	// Running is the running operator, which knows what no object shows. Nil: it is not asked.
	Running inspect.Running
	// Writing sends requests of people to the operator. Nil: the page only shows, and has no way to write.
	Writing *rest.Config
}

// Page serves the page. It is safe for concurrent use.
type Page struct {
	options   Options
	guard     guard
	mux       *http.ServeMux
	resources *resources
	audience  *audience
	facts     facts
}

//go:embed static
var static embed.FS

// New returns a page. Close ends it.
func New(o Options) *Page {
	p := &Page{options: o, mux: http.NewServeMux(), guard: tokenGuard(o.Token)}
	if o.Access != nil {
		p.guard = clusterGuard{o.Access, http.NewCrossOriginProtection()}
	}
	p.audience = newAudience(func(ctx context.Context) { p.resources.watch(ctx) })
	p.resources = newResources(o.Cluster, o.Namespace, p.audience.tell)
	p.mux.HandleFunc("GET /{$}", p.showOverview)
	p.mux.HandleFunc("GET /objects", p.showObjects)
	p.mux.HandleFunc("GET /object", p.showObject)
	p.mux.HandleFunc("GET /operator", p.showOperator)
	p.mux.HandleFunc("GET /changes", p.streamChanges)
	for name, kind := range map[string]string{"page.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"} {
		p.mux.HandleFunc("GET /static/"+name, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind+"; charset=utf-8") // the tables of the machine can say something else
			http.ServeFileFS(w, r, static, "static/"+name)
		})
	}
	if o.Writing != nil {
		p.mux.HandleFunc("GET /request", p.confirmRequest)
		p.mux.HandleFunc("POST /request", p.sendRequest)
	}
	return p
}

// Close ends the watches and the streams of changes.
func (p *Page) Close() { p.audience.close() }

// The limits of connections.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	answerTimeout = time.Minute // not for streams of changes
	maxHeader     = 1 << 16
	maxBody       = 1 << 16
)

// Serve serves the page until the context is done.
func (p *Page) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{Handler: p, ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader}
	stopped := make(chan struct{})
	defer context.AfterFunc(ctx, func() {
		defer close(stopped)
		p.Close()
		_ = server.Close() // what it answers now, nobody waits for
	})()
	err := server.Serve(listener)
	if errors.Is(err, http.ErrServerClosed) {
		<-stopped
		return nil
	}
	p.Close()
	return err
}
