package configurations

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/internal/conversion"
	"github.com/kopf-go/kopf/pkg/internal/sleep"
	"github.com/kopf-go/kopf/pkg/settings"
)

// Manager manages the configurations. Every replica of an operator has one; only that
// of the leader writes. It is safe for concurrent use.
type Manager struct {
	writer writer
	logger logr.Logger

	mu          sync.Mutex
	hooks       []Hook
	conversions []*conversion.Graph
	hooksKnown  bool              // SetHooks was called
	idsByPath   map[string]string // the ids of the hooks whose paths in services are sanitized
	config      *admissionregistrationv1.WebhookClientConfig
	leading     bool
	// generation counts the changes; writtenGeneration is the last generation that the
	// cluster has. stateChanged is closed and replaced when either of them changes.
	generation, writtenGeneration int
	stateChanged                  chan struct{}
	wake                          chan struct{}
}

// NewManager returns a manager. The client must not read from a cache, and must know the
// types of admissionregistration.k8s.io/v1. It needs the permissions to get, create and
// patch both kinds of configurations, and to get and patch the definitions of the conversions.
func NewManager(c client.Client, options Options, logger logr.Logger) *Manager {
	return &Manager{
		writer: writer{client: c, options: options, logger: logger, switched: func(string) {}}, logger: logger,
		stateChanged: make(chan struct{}), wake: make(chan struct{}, 1),
	}
}

// OnSwitch sets the function that is called with the name of a definition when this manager has written a conversion where
// there was none: until then, the API server has shown objects that were not converted. Call it before RunLeader.
func (m *Manager) OnSwitch(call func(definition string)) { m.writer.switched = call }

// AwaitWritten waits until the leader has written everything for the first time. It reports false if the context is
// done first. It does not wait for a server whose address is not published.
func (m *Manager) AwaitWritten(ctx context.Context) bool {
	for {
		m.mu.Lock()
		done := m.writtenGeneration > 0 || m.config == nil
		changed := m.stateChanged
		m.mu.Unlock()
		if done {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// conversionPolling is the interval of looking whether another replica has written a conversion.
const conversionPolling = time.Second

// AwaitConverted waits until a definition has a conversion by a webhook, which another replica writes, or does not exist. It
// reports whether there was one from the beginning, and false as its second result if the context is done first.
func (m *Manager) AwaitConverted(ctx context.Context, name string) (before, ok bool) {
	for before = true; ; before = false {
		definition := NewDefinition(name)
		err := m.writer.client.Get(ctx, client.ObjectKeyFromObject(definition), definition)
		if apierrors.IsNotFound(err) {
			return before, true
		}
		if err == nil {
			present, err := ConversionOf(definition)
			if err == nil && present.Strategy == apiextensionsv1.WebhookConverter {
				return before, true
			}
		}
		if !sleep.For(ctx, conversionPolling) {
			return false, false
		}
	}
}

// Endpoint completes the endpoint for an admission server: Publish publishes to this
// manager, and requests reach the handler at the ids of the admission handlers.
func (m *Manager) Endpoint(handler http.Handler, cluster settings.AdmissionEndpoint) settings.AdmissionEndpoint {
	cluster.Handler = m.Route(handler)
	cluster.Publish = m.Publish
	cluster.IsLeader = m.isLeading
	return cluster
}

// Route returns a handler that restores the ids of the hooks in the paths of requests:
// a sanitized path of a service becomes the id again.
func (m *Manager) Route(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		id, found := m.idsByPath[r.URL.Path]
		m.mu.Unlock()
		if found {
			r = r.Clone(r.Context())
			r.URL.Path = "/" + id
			r.URL.RawPath = ""
		}
		handler.ServeHTTP(w, r)
	})
}

// SetHooks replaces the hooks, and the conversions of resources. It returns at once. Before the first call nothing is
// written: what an earlier process has left stays until then, persistent hooks included.
func (m *Manager) SetHooks(hooks []Hook, conversions ...*conversion.Graph) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hooks = slices.Clone(hooks)
	m.conversions = slices.Clone(conversions)
	m.idsByPath = map[string]string{}
	for _, hook := range hooks {
		if path := servicePath(hook.ID); path != hook.ID {
			m.idsByPath["/"+path] = hook.ID
		}
	}
	m.hooksKnown = true
	m.bumpGeneration()
}

// Publish sets the address and the CAs of the server. In the leader it returns after the
// cluster has accepted them, and retries until the context is done. In other replicas it
// returns at once: they write when they become the leader.
func (m *Manager) Publish(ctx context.Context, config admissionregistrationv1.WebhookClientConfig) error {
	if config.URL != nil && !strings.HasPrefix(*config.URL, "https:") {
		m.logger.Info("The address of the admission server is not published to the cluster, which calls webhooks with HTTPS only.", "url", *config.URL)
		return nil
	}
	m.mu.Lock()
	m.config = config.DeepCopy()
	m.bumpGeneration()
	generation := m.generation
	m.mu.Unlock()
	for {
		written, changed := m.isWritten(generation)
		if written {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// isLeading reports whether this replica writes the configurations.
func (m *Manager) isLeading() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.leading
}

// isWritten reports whether Publish need not wait for the generation anymore.
func (m *Manager) isWritten(generation int) (bool, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.leading || m.writtenGeneration >= generation, m.stateChanged
}

// bumpGeneration records a change and wakes the leader. The caller must hold mu.
func (m *Manager) bumpGeneration() {
	m.generation++
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Cleanup removes all hooks except the persistent ones from the configurations, and the conversions that no object
// needs from the definitions, and prevents further writes. Call it in a leader that exits in order, while its server
// still answers. A replica that has lost its lease must leave the configurations to the
// next leader.
//
// What stays by mistake refuses requests of others, so if the API server answers with an error, Cleanup tries again
// until the context is done, unless the operator is not allowed to write.
//
// Specification: Admission control, the option "persistent" of the handlers.
func (m *Manager) Cleanup(ctx context.Context) error {
	hooks, conversions, config, _ := m.desired()
	for {
		err := m.writer.cleanUp(ctx, hooks, conversions, config)
		var answer apierrors.APIStatus
		if !errors.As(err, &answer) || apierrors.IsForbidden(err) || !sleep.For(ctx, cleanupDelay) {
			return err
		}
	}
}

// cleanupDelay is the delay before a failed cleanup is tried again.
const cleanupDelay = 200 * time.Millisecond
