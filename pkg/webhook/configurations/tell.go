package configurations

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"
)

// logApplied says in the log what the cluster has learned; nothing, if that is
// nothing new.
func (m *Manager) logApplied(forValidating, forMutating int, config admissionregistrationv1.WebhookClientConfig) {
	if m.reported || forValidating+forMutating == 0 && !m.unreportedWrite {
		return
	}
	m.reported, m.unreportedWrite = true, false
	log := m.logger.WithValues("configuration", m.options.Name, "validating", forValidating, "mutating", forMutating)
	if forValidating+forMutating == 0 {
		log.Info("The cluster does not ask for admissions any longer: the configurations have no webhooks.")
		return
	}
	log.Info("The cluster asks the admission handlers.", clientConfigLogValues(config)...)
}

// clientConfigLogValues is what the cluster calls, for the log.
func clientConfigLogValues(config admissionregistrationv1.WebhookClientConfig) []any {
	if config.Service == nil {
		return []any{"url", ptr.Deref(config.URL, "")}
	}
	return []any{"service", config.Service.Namespace + "/" + config.Service.Name, "path", ptr.Deref(config.Service.Path, "")}
}
