// Package permissions observes the requests of a running operator: it logs the rules that are
// missing in its roles, and learns what the handlers do with a client.
//
// This package carries no compatibility promise.
package permissions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/internal/conversion"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/internal/sleep"
	"github.com/kopf-go/kopf/pkg/rbac"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/settings"
)

// interval is how often what was learned is written.
const interval = 30 * time.Second

// Observer observes the requests of one operator. A nil observer observes nothing.
type Observer struct {
	handlers    registry.Handlers
	conversions conversion.Set
	needs       []registry.Need
	logger      logr.Logger

	requests *Requests
	file     string
	settings settings.Settings
	snapshot atomic.Pointer[discovery.Snapshot]
	written  string
}

// Requests are the requests of the clients of a connection. They have one observer.
type Requests struct {
	journal  rbac.Journal
	observer atomic.Pointer[Observer]

	mu      sync.Mutex
	missing []string // the rules that refused requests need
}

// NewRequests returns requests without a connection and without an observer.
func NewRequests() *Requests {
	r := &Requests{}
	r.journal.Refused = func(p rbac.Permission) {
		r.mu.Lock()
		r.missing = append(r.missing, describe(p))
		r.mu.Unlock()
		o := r.observer.Load()
		if o == nil {
			return
		}
		where := "a ClusterRole"
		if p.Namespace != "" {
			where = fmt.Sprintf("a Role in the namespace %s, or a ClusterRole", p.Namespace)
		}
		// As an error: without the rule, the operator does not do its work.
		o.logger.Error(nil, "The API server refuses a request, because the operator lacks a permission. Add the rule to its role: "+where+".",
			"rule", rbac.Missing(p).Line(), "name", p.Name, "namespace", p.Namespace)
	}
	return r
}

// describe returns the rule that a refused request needs, for a person.
func describe(p rbac.Permission) string {
	text := rbac.Missing(p).Line()
	if p.Namespace != "" {
		text += " in the namespace " + p.Namespace
	}
	return text
}

// Missing returns the rules that the requests need that were refused since the operator has started. A rule stays when it was
// added to a role meanwhile.
func (o *Observer) Missing() []string {
	if o == nil {
		return nil
	}
	o.requests.mu.Lock()
	defer o.requests.mu.Unlock()
	return slices.Clone(o.requests.missing)
}

// Wrap adds the requests of all clients that are made with the configuration from now on.
func (r *Requests) Wrap(config *rest.Config) { config.Wrap(r.journal.Wrap) }

// New returns the observer of the requests of an operator with the handlers and the conversions, and with what
// the handlers do with a client. It returns an error if the requests have an observer already.
func New(requests *Requests, handlers registry.Handlers, conversions conversion.Set, needs []registry.Need, logger logr.Logger) (*Observer, error) {
	o := &Observer{requests: requests, handlers: handlers, conversions: conversions, needs: needs, logger: logger.WithName("permissions")}
	if !requests.observer.CompareAndSwap(nil, o) {
		return nil, errors.New("another operator observes the permissions of this connection: give Options.Permissions to one of them only")
	}
	return o, nil
}

// Observe adds the requests of all clients that are made with the configuration from now on, and
// begins. The settings must be final.
func (o *Observer) Observe(config *rest.Config, s settings.Settings) {
	if o != nil {
		o.requests.Wrap(config)
		o.Begin(s)
	}
}

// Begin begins to learn, if the settings have a file for that. The settings must be final.
func (o *Observer) Begin(s settings.Settings) {
	if o == nil {
		return
	}
	o.settings = s
	o.file = s.Permissions.LearnFile
	if o.file != "" {
		o.requests.journal.Learn()
	}
}

// Discovered records the resources that the cluster serves.
func (o *Observer) Discovered(present discovery.Snapshot) {
	if o != nil {
		o.snapshot.Store(&present)
	}
}

// Run writes the file of the settings, if there is one, until the context is done, and once more
// at the end.
func (o *Observer) Run(ctx context.Context) {
	if o == nil || o.file == "" {
		return
	}
	o.logger.Info("The operator learns which permissions it uses.", "file", o.file)
	for sleep.For(ctx, interval) {
		o.write()
	}
	o.write()
}

// write writes the roles if they have changed: derived from the declarations, with what was used
// besides.
func (o *Observer) write() {
	in := rbac.Input{Handlers: o.handlers, Conversions: o.conversions, Needs: o.needs, Settings: o.settings}
	if present := o.snapshot.Load(); present != nil {
		in.Snapshot = *present
	}
	derived, _ := rbac.Derive(in)
	roles := rbac.Add(derived, o.requests.journal.Used(), learned)
	text := "# A LOWER BOUND: what the declarations of the operator need, and what its requests have used so\n" +
		"# far. Handlers that were not called, or took another way, have asked for nothing.\n" +
		rbac.YAML(cmp.Or(o.settings.Name, "operator"), roles, rbac.Account{})
	if text == o.written {
		return
	}
	if err := replace(o.file, text); err != nil {
		o.logger.Error(err, "The permissions that the operator uses cannot be written.", "file", o.file)
		return
	}
	o.written = text
}

// learned is the reason of the rules that were observed.
const learned = "Used by handlers with a client, or for the children of Ensure, while the operator was learning. " +
	"Declare it with kopf.Needs to have it derived."

// replace writes a file so that readers see the old or the new content.
func replace(path, text string) error {
	file, err := os.CreateTemp(filepath.Dir(path), "."+strings.TrimPrefix(filepath.Base(path), ".")+"-*")
	if err != nil {
		return fmt.Errorf("the file cannot be written: %w", err)
	}
	_, err = file.WriteString(text)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return fmt.Errorf("the file cannot be written: %w", err)
	}
	return nil
}
