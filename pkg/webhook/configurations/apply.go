package configurations

import (
	"context"
	"errors"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// apply brings both configurations to what the hooks need.
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
		return fmt.Errorf("the operator may not manage its admission configuration %q: permit its service account to get, create and patch "+
			"validatingwebhookconfigurations and mutatingwebhookconfigurations, or leave settings.Admission.Managed empty: %w", m.options.Name, err)
	}
	if err != nil {
		return fmt.Errorf("the admission configuration %q: %w", m.options.Name, err)
	}
	return nil
}

// writeIfChanged writes the configuration if it differs from what is needed.
func (m *Manager) writeIfChanged(ctx context.Context, present configuration, absent bool, webhooks []admissionregistrationv1.ValidatingWebhook) error {
	if isInjectedByCertManager(present.object().GetAnnotations()) {
		keepCABundles(webhooks, present.webhooks())
	}
	wish := withDefaults(webhooks)
	if !absent && isEqual(wish, withDefaults(present.webhooks())) {
		m.contention.recordApplied(present, wish)
		return nil
	}
	others := m.contention.isChangedByOthers(present.kind(), wish)
	if others && !m.mayRestore(present, absent) {
		return nil
	}
	write := m.update
	if absent {
		write = m.create
	}
	if err := write(ctx, present, webhooks); err != nil {
		return err
	}
	m.contention.recordApplied(present, wish)
	if others {
		m.contention.restored = true
	} else {
		m.unreportedWrite, m.reported = true, false
	}
	return nil
}

// create makes the configuration. If somebody was faster, it is read again.
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
		return errors.New("a copy of the configuration is none")
	}
	present.setWebhooks(webhooks)
	return m.client.Patch(ctx, present.object(), client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}
