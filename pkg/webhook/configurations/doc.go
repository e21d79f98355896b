// Package configurations tells a cluster about admission handlers: it keeps a validating
// and a mutating webhook configuration up to date.
//
// A Manager gets the Hooks, which change as resources appear and disappear, and the
// client configuration, which an admission server publishes and which changes with its
// address and its CAs. From both it builds the webhooks, one for each handler, and
// writes them when they differ from those of the cluster.
//
// The configurations are not written with server-side apply, because it removes only webhooks
// that the same field manager has applied. Webhooks of Kopf or of an older version of the
// operator would survive and block requests. Instead, a patch with the resource version that
// was read replaces the whole list.
//
// This package carries no compatibility promise.
//
// # Invariants
//
//   - Only the two configurations of the given name are written, only their webhooks,
//     and only on top of the version that was read. All other configurations, and the
//     labels and annotations of these two, are left alone.
//   - A difference that consists only of defaults of the API server is not written.
//   - A configuration is created when there is a webhook for it, and never deleted:
//     without webhooks it has no effect, and its annotations may belong to others.
//   - Where cert-manager injects the CA bundle, its bundle stays.
//   - Of the definitions whose objects the operator converts, only spec.conversion is written.
//     It stays as long as objects are stored or served in several versions: without it, the API
//     server would drop fields.
//   - Webhooks do not match the operator's own lease and, by default, its namespace.
//     Kubernetes calls no webhooks for webhook configurations.
//
// Specification: Admission control, "Webhook management".
package configurations
