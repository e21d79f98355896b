package configurations

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// writer writes the configurations to the cluster or, if they are not managed, to a
// manifest. It is safe for concurrent use.
type writer struct {
	client  client.Client
	options Options
	logger  logr.Logger

	mu              sync.Mutex // one write at a time
	cleanedUp       bool       // nothing is written anymore
	loggedManifest  string
	writtenManifest string // the content of the file
	contention      contention
	// unreportedWrite and reported say whether the log is up to date: see logApplied.
	unreportedWrite, reported bool
}

// write writes what the hooks need.
func (w *writer) write(ctx context.Context, hooks []Hook, config admissionregistrationv1.WebhookClientConfig) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.cleanedUp:
		return nil
	case w.options.Name == "":
		return w.printManifest(hooks, config)
	}
	return w.apply(ctx, hooks, config)
}

// cleanUp leaves only the persistent hooks in the configurations, and prevents further
// writes. config is nil if nothing was written.
func (w *writer) cleanUp(ctx context.Context, hooks []Hook, config *admissionregistrationv1.WebhookClientConfig) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cleanedUp = true
	if config == nil || w.options.Name == "" {
		return nil
	}
	return w.apply(ctx, Persistent(hooks), *config)
}

// resetContention forgets what this replica wrote when it led before: another replica
// has led since.
func (w *writer) resetContention() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.contention = contention{}
}

// checkInterval returns the time until the next comparison with the cluster.
func (w *writer) checkInterval() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.contention.interval()
}
