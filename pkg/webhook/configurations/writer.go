package configurations

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/internal/conversion"
)

// writer writes the configurations to the cluster or, if they are not managed, to a
// manifest. It is safe for concurrent use.
type writer struct {
	client  client.Client
	options Options
	logger  logr.Logger
	// switched is called when a definition has got a conversion, and had none.
	switched func(definition string)

	mu              sync.Mutex // one write at a time
	cleanedUp       bool       // nothing is written anymore
	loggedManifest  string
	writtenManifest string // the content of the file
	rivals          rivals
	// unreportedWrite and reported say whether the log is up to date: see logApplied.
	unreportedWrite, reported bool
	definitions               map[string]*definitionState // by their names
}

// write writes what the hooks and the conversions need.
func (w *writer) write(ctx context.Context, hooks []Hook, conversions []*conversion.Graph, config admissionregistrationv1.WebhookClientConfig) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.cleanedUp:
		return nil
	case w.options.Name == "":
		return w.printManifest(hooks, conversions, config)
	}
	errs := []error{w.apply(ctx, hooks, config)}
	for _, graph := range conversions {
		errs = append(errs, w.applyConversion(ctx, graph, config))
	}
	return errors.Join(errs...)
}

// cleanUp leaves only the persistent hooks in the configurations, and the conversions that objects need, and
// prevents further writes. config is nil if nothing was written.
func (w *writer) cleanUp(ctx context.Context, hooks []Hook, conversions []*conversion.Graph, config *admissionregistrationv1.WebhookClientConfig) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cleanedUp = true
	if config == nil || w.options.Name == "" {
		return nil
	}
	errs := []error{w.apply(ctx, Persistent(hooks), *config)}
	for _, graph := range conversions {
		errs = append(errs, w.removeConversion(ctx, graph.Name))
	}
	return errors.Join(errs...)
}

// forgetRivals forgets what this replica wrote when it led before: another replica
// has led since.
func (w *writer) forgetRivals() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rivals = rivals{}
	for _, state := range w.definitions {
		state.rivals = rivals{}
	}
}

// untilNextCheck returns the time until the next comparison with the cluster.
func (w *writer) untilNextCheck() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.definitions) > 0 { // each has its own pauses
		return checkInterval
	}
	return max(checkInterval, w.rivals.changes.Left(rivalRule, time.Now()))
}

// apply writes both configurations if they differ from what the hooks need.
func (w *writer) apply(ctx context.Context, hooks []Hook, config admissionregistrationv1.WebhookClientConfig) error {
	forValidating, forMutating := Build(hooks, config, w.options)
	err := errors.Join(
		w.applyKind(ctx, newValidating, forValidating),
		w.applyKind(ctx, newMutating, forMutating),
	)
	if w.rivals.restored {
		w.rivals.restored = false
		w.rivals.changes = w.rivals.changes.Next(rivalRule, time.Now())
	}
	if err == nil {
		w.logApplied(len(forValidating), len(forMutating), config)
	}
	return err
}

func (w *writer) applyKind(ctx context.Context, kind func(string) configuration, webhooks []admissionregistrationv1.ValidatingWebhook) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error { return w.applyOnce(ctx, kind, webhooks) })
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("the operator is not allowed to manage its admission configuration %q: allow its service account to get, create and patch "+
			"validatingwebhookconfigurations and mutatingwebhookconfigurations, or leave Settings.Admission.Managed empty: %w", w.options.Name, err)
	}
	if err != nil {
		return fmt.Errorf("the admission configuration %q: %w", w.options.Name, err)
	}
	return nil
}

// applyOnce reads a configuration, and writes it if it differs from the webhooks. It fails with a
// conflict if it must be read again.
func (w *writer) applyOnce(ctx context.Context, kind func(string) configuration, webhooks []admissionregistrationv1.ValidatingWebhook) error {
	present := kind(w.options.Name)
	err := w.client.Get(ctx, client.ObjectKeyFromObject(present.object()), present.object())
	absent := apierrors.IsNotFound(err)
	switch {
	case absent && len(webhooks) == 0:
		return nil
	case absent:
		present = kind(w.options.Name)
	case err != nil:
		return err
	}
	keepInjectedCAs(webhooks, present)
	want := withDefaults(webhooks)
	if !absent && isEqual(want, withDefaults(present.webhooks())) {
		w.rivals.recordApplied(present.kind(), present.object(), want)
		return nil
	}

	// If the operator wants the same as before, another client has made the difference.
	restores := w.rivals.isApplied(present.kind(), want)
	if restores && !w.mayRestore(present, absent) {
		return nil
	}

	if absent {
		present.setWebhooks(webhooks)
		err = w.client.Create(ctx, present.object())
		if apierrors.IsAlreadyExists(err) {
			return apierrors.NewConflict(admissionregistrationv1.Resource("webhookconfigurations"), w.options.Name, err)
		}
	} else {
		read, ok := present.object().DeepCopyObject().(client.Object)
		if !ok {
			return errors.New("the copy of the configuration is not an object")
		}
		present.setWebhooks(webhooks)
		err = w.client.Patch(ctx, present.object(), client.MergeFromWithOptions(read, client.MergeFromWithOptimisticLock{}))
	}
	if err != nil {
		return err
	}
	w.rivals.recordApplied(present.kind(), present.object(), want)
	if restores {
		w.rivals.restored = true
	} else {
		w.unreportedWrite = true
		w.reported = false
	}
	return nil
}

// logApplied logs the numbers of webhooks that the cluster has and the address that it
// calls, if they have changed.
func (w *writer) logApplied(forValidating, forMutating int, config admissionregistrationv1.WebhookClientConfig) {
	if w.reported || forValidating+forMutating == 0 && !w.unreportedWrite {
		return
	}
	w.reported = true
	w.unreportedWrite = false
	log := w.logger.WithValues("configuration", w.options.Name, "validating", forValidating, "mutating", forMutating)
	switch {
	case forValidating+forMutating == 0:
		log.Info("The cluster does not call the admission handlers anymore: the configurations have no webhooks.")
	case config.Service == nil:
		log.Info("The cluster calls the admission handlers.", "url", ptr.Deref(config.URL, ""))
	default:
		log.Info("The cluster calls the admission handlers.",
			"service", config.Service.Namespace+"/"+config.Service.Name, "path", ptr.Deref(config.Service.Path, ""))
	}
}

// keepInjectedCAs sets the CA bundle that is present if cert-manager injects it. All bundles of
// cert-manager are the same, so a new webhook gets that of any other.
func keepInjectedCAs(webhooks []admissionregistrationv1.ValidatingWebhook, present configuration) {
	if !injectsCA(present.object()) {
		return
	}
	var bundle []byte
	for _, webhook := range present.webhooks() {
		if len(webhook.ClientConfig.CABundle) > 0 {
			bundle = webhook.ClientConfig.CABundle
			break
		}
	}
	for i := range webhooks {
		webhooks[i].ClientConfig.CABundle = bundle
	}
}

func isEqual(a, b any) bool { return apiequality.Semantic.DeepEqual(a, b) }

// httpsPort is the default port of a service.
const httpsPort = 443

// withDefaults returns the webhooks with the defaults of the API server, as far as Build
// does not always set the fields.
func withDefaults(webhooks []admissionregistrationv1.ValidatingWebhook) []admissionregistrationv1.ValidatingWebhook {
	all := slices.Clone(webhooks)
	for i := range all {
		all[i] = *all[i].DeepCopy()
		if all[i].NamespaceSelector == nil {
			all[i].NamespaceSelector = &metav1.LabelSelector{}
		}
		if all[i].ObjectSelector == nil {
			all[i].ObjectSelector = &metav1.LabelSelector{}
		}
		if service := all[i].ClientConfig.Service; service != nil && service.Port == nil {
			service.Port = new(int32(httpsPort))
		}
	}
	return all
}
