package configurations

import (
	"context"
	"errors"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// apply writes both configurations if they differ from what the hooks need.
func (w *writer) apply(ctx context.Context, hooks []Hook, config admissionregistrationv1.WebhookClientConfig) error {
	forValidating, forMutating := Build(hooks, config, w.options)
	err := errors.Join(
		w.applyKind(ctx, newValidating, forValidating),
		w.applyKind(ctx, newMutating, forMutating),
	)
	w.contention.endComparison(time.Now())
	if err == nil {
		w.logApplied(len(forValidating), len(forMutating), config)
	}
	return err
}

func (w *writer) applyKind(ctx context.Context, kind func(string) configuration, webhooks []admissionregistrationv1.ValidatingWebhook) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
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
		return w.writeIfChanged(ctx, present, absent, webhooks)
	})
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("the operator is not allowed to manage its admission configuration %q: allow its service account to get, create and patch "+
			"validatingwebhookconfigurations and mutatingwebhookconfigurations, or leave Settings.Admission.Managed empty: %w", w.options.Name, err)
	}
	if err != nil {
		return fmt.Errorf("the admission configuration %q: %w", w.options.Name, err)
	}
	return nil
}

// writeIfChanged writes the configuration if it differs from the webhooks.
func (w *writer) writeIfChanged(ctx context.Context, present configuration, absent bool, webhooks []admissionregistrationv1.ValidatingWebhook) error {
	if isInjectedByCertManager(present.object().GetAnnotations()) {
		keepCABundles(webhooks, present.webhooks())
	}
	want := withDefaults(webhooks)
	if !absent && isEqual(want, withDefaults(present.webhooks())) {
		w.contention.recordApplied(present, want)
		return nil
	}
	restores := w.contention.isChangedByOthers(present.kind(), want)
	if restores && !w.mayRestore(present, absent) {
		return nil
	}
	write := w.update
	if absent {
		write = w.create
	}
	if err := write(ctx, present, webhooks); err != nil {
		return err
	}
	w.contention.recordApplied(present, want)
	if restores {
		w.contention.restored = true
	} else {
		w.unreportedWrite = true
		w.reported = false
	}
	return nil
}

// create creates the configuration. If it exists already, the caller reads it again.
func (w *writer) create(ctx context.Context, absent configuration, webhooks []admissionregistrationv1.ValidatingWebhook) error {
	absent.setWebhooks(webhooks)
	err := w.client.Create(ctx, absent.object())
	if apierrors.IsAlreadyExists(err) {
		return apierrors.NewConflict(admissionregistrationv1.Resource("webhookconfigurations"), w.options.Name, err)
	}
	return err
}

func (w *writer) update(ctx context.Context, present configuration, webhooks []admissionregistrationv1.ValidatingWebhook) error {
	before, ok := present.object().DeepCopyObject().(client.Object)
	if !ok {
		return errors.New("the copy of the configuration is not an object")
	}
	present.setWebhooks(webhooks)
	return w.client.Patch(ctx, present.object(), client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
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
	if forValidating+forMutating == 0 {
		log.Info("The cluster does not call the admission handlers anymore: the configurations have no webhooks.")
		return
	}
	log.Info("The cluster calls the admission handlers.", clientConfigLogValues(config)...)
}

func clientConfigLogValues(config admissionregistrationv1.WebhookClientConfig) []any {
	if config.Service == nil {
		return []any{"url", ptr.Deref(config.URL, "")}
	}
	return []any{"service", config.Service.Namespace + "/" + config.Service.Name, "path", ptr.Deref(config.Service.Path, "")}
}
