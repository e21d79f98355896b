package configurations

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/settings"
)

// Manager keeps the configurations. Every replica of an operator has one; that of
// the leader writes. Safe for concurrent use.
type Manager struct {
	client  client.Client
	options Options
	logger  logr.Logger

	mu         sync.Mutex
	hooks      []Hook
	hooksKnown bool              // the hooks
	idsByPath  map[string]string // see altered
	config     *admissionregistrationv1.WebhookClientConfig
	leading    bool
	// generation counts the changes, and written says up to which of them the cluster
	// knows. Whoever waits for it waits for the next value of changed.
	generation, writtenGeneration int
	stateChanged                  chan struct{}
	wake                          chan struct{}

	writeMu         sync.Mutex // one write at a time, and none after the cleanup
	cleanedUp       bool
	loggedManifest  string // the manifest in the log, where there is nothing to write
	writtenManifest string // the manifest in the file
	contention      contention
	// Whether something was written, and whether the log says what the cluster has.
	unreportedWrite, reported bool
}

// NewManager makes a manager. The client must read live, and know the types of
// admissionregistration.k8s.io/v1. It needs the permissions to get, create and patch
// both kinds of configurations.
func NewManager(c client.Client, options Options, logger logr.Logger) *Manager {
	return &Manager{client: c, options: options, logger: logger, stateChanged: make(chan struct{}), wake: make(chan struct{}, 1)}
}

// Endpoint completes what an admission server works with: its calls of Publish come
// here, and requests for handlers reach the given handler under their ids.
func (m *Manager) Endpoint(handler http.Handler, cluster settings.AdmissionEndpoint) settings.AdmissionEndpoint {
	cluster.Handler, cluster.Publish = m.Route(handler), m.Publish
	return cluster
}

// SetHooks replaces the hooks. It returns at once. Nothing is written before the first
// call: what an earlier process has left, persistent hooks among it, stays until then.
func (m *Manager) SetHooks(hooks []Hook) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hooks, m.idsByPath, m.hooksKnown = slices.Clone(hooks), idsByServicePath(hooks), true
	m.bumpGeneration()
}

// Publish tells where the server is. In the leader it returns when the cluster has
// accepted that, for which it tries again until the context is done; in the others
// at once, for they tell it when they become the leader.
func (m *Manager) Publish(ctx context.Context, config admissionregistrationv1.WebhookClientConfig) error {
	if config.URL != nil && !strings.HasPrefix(*config.URL, "https:") {
		m.logger.Info("The cluster is not told about the admission server: it calls webhooks by HTTPS only.", "url", *config.URL)
		return nil
	}
	m.mu.Lock()
	m.config = config.DeepCopy()
	m.bumpGeneration()
	mine := m.generation
	m.mu.Unlock()
	for {
		known, changed := m.isWritten(mine)
		if known {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// isWritten tells whether nobody needs to wait for the change any longer.
func (m *Manager) isWritten(change int) (bool, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.leading || m.writtenGeneration >= change, m.stateChanged
}

// bumpGeneration notes a change. The lock is held.
func (m *Manager) bumpGeneration() {
	m.generation++
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Cleanup takes all hooks but the persistent ones out of the configurations, and
// ends the writing for good. It is for the leader that exits in order, as long as
// its server still answers: an operator that has lost its lease must leave the
// configurations to the next leader.
//
// Specification: Admission control, the option "persistent" of the handlers.
func (m *Manager) Cleanup(ctx context.Context) error {
	hooks, config, _ := m.desired()
	m.writeMu.Lock()
	defer m.writeMu.Unlock()
	m.cleanedUp = true
	if config == nil || m.options.Name == "" {
		return nil // nothing was written
	}
	return m.apply(ctx, Persistent(hooks), *config)
}

// waitForChange waits for the given time, or for a change.
func (m *Manager) waitForChange(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
	}
}
