// Package configurations tells a cluster about admission handlers: it keeps a
// validating and a mutating webhook configuration up to date.
//
// A Manager is given the Hooks, which change as resources come and go, and the
// client configuration, which an admission server publishes and which changes with
// its address and its CA. From both it builds the webhooks, one for each handler,
// and writes them when they differ from what the cluster has.
//
// # Invariants
//
//   - Only the two configurations of the given name are written, of them only the
//     webhooks, and only on top of the version that was read. All other
//     configurations, and labels and annotations of these two, are other people's.
//   - What differs from the cluster only by the API server's defaults is not written.
//   - A configuration is created when there is a webhook for it, and never deleted:
//     without webhooks it does no harm, and its annotations may be somebody's.
//   - Where cert-manager injects the CA bundle, its bundle stays.
//   - Webhooks do not match the operator's own lease and, by default, namespace.
//     These configurations themselves Kubernetes asks no webhook about.
//
// Specification: Admission control, "Webhook management".
package configurations
