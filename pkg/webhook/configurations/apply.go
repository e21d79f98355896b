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
func (m *Manager) apply(ctx context.Context, hooks []Hook, config admissionregistrationv1.WebhookClientConfig) error {
	forValidating, forMutating := Build(hooks, config, m.options)
	err := errors.Join(
		m.applyKind(ctx, newValidating, forValidating),
		m.applyKind(ctx, newMutating, forMutating),
	)
	m.contention.endComparison(time.Now())
	if err == nil {
		m.logApplied(len(forValidating), len(forMutating), config)
	}
	return err
}

func (m *Manager) applyKind(ctx context.Context, kind func(string) configuration, webhooks []admissionregistrationv1.ValidatingWebhook) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		present := kind(m.options.Name)
		err := m.client.Get(ctx, client.ObjectKeyFromObject(present.object()), present.object())
		absent := apierrors.IsNotFound(err)
		switch {
		case absent && len(webhooks) == 0:
			return nil
		case absent:
			present = kind(m.options.Name)
		case err != nil:
			return err
		}
		return m.writeIfChanged(ctx, present, absent, webhooks)
	})
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("the operator is not allowed to manage its admission configuration %q: allow its service account to get, create and patch "+
			"validatingwebhookconfigurations and mutatingwebhookconfigurations, or leave Settings.Admission.Managed empty: %w", m.options.Name, err)
	}
	if err != nil {
		return fmt.Errorf("the admission configuration %q: %w", m.options.Name, err)
	}
	return nil
}

// writeIfChanged writes the configuration if it differs from the webhooks.
func (m *Manager) writeIfChanged(ctx context.Context, present configuration, absent bool, webhooks []admissionregistrationv1.ValidatingWebhook) error {
	if isInjectedByCertManager(present.object().GetAnnotations()) {
		keepCABundles(webhooks, present.webhooks())
	}
	want := withDefaults(webhooks)
	if !absent && isEqual(want, withDefaults(present.webhooks())) {
		m.contention.recordApplied(present, want)
		return nil
	}
	restores := m.contention.isChangedByOthers(present.kind(), want)
	if restores && !m.mayRestore(present, absent) {
		return nil
	}
	write := m.update
	if absent {
		write = m.create
	}
	if err := write(ctx, present, webhooks); err != nil {
		return err
	}
	m.contention.recordApplied(present, want)
	if restores {
		m.contention.restored = true
	} else {
		m.unreportedWrite, m.reported = true, false
	}
	return nil
}

// create creates the configuration. If it exists already, the caller reads it again.
func (m *Manager) create(ctx context.Context, absent configuration, webhooks []admissionregistrationv1.ValidatingWebhook) error {
	absent.setWebhooks(webhooks)
	err := m.client.Create(ctx, absent.object())
	if apierrors.IsAlreadyExists(err) {
		return apierrors.NewConflict(admissionregistrationv1.Resource("webhookconfigurations"), m.options.Name, err)
	}
	return err
}

func (m *Manager) update(ctx context.Context, present configuration, webhooks []admissionregistrationv1.ValidatingWebhook) error {
	before, ok := present.object().DeepCopyObject().(client.Object)
	if !ok {
		return errors.New("the copy of the configuration is not an object")
	}
	present.setWebhooks(webhooks)
	return m.client.Patch(ctx, present.object(), client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// logApplied logs the numbers of webhooks that the cluster has and the address that it
// calls, if they have changed.
func (m *Manager) logApplied(forValidating, forMutating int, config admissionregistrationv1.WebhookClientConfig) {
	if m.reported || forValidating+forMutating == 0 && !m.unreportedWrite {
		return
	}
	m.reported, m.unreportedWrite = true, false
	log := m.logger.WithValues("configuration", m.options.Name, "validating", forValidating, "mutating", forMutating)
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
