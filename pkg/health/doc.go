// Package health serves the liveness and readiness endpoints of an operator.
//
// The liveness endpoint returns the results of the probe handlers: they decide
// whether the kubelet restarts the process. The readiness endpoint reports every
// watch, the queue, and whether the operator handles objects: it shows whether the
// operator needs attention. See docs/health.md for examples.
//
// Readiness does not use controller-runtime's healthz handler, because that handler
// withholds the reason of a failed check: here the reason is the point. Responses
// can be public nevertheless, because this package writes the reasons itself.
//
// # Invariants
//
//   - Responses contain only text of this package and the results of probe handlers.
//     They never contain errors of handlers or of the API server, which may quote
//     objects; these errors are logged.
//   - The probe handlers run at most once per TTL, however many requests arrive.
//   - A standby replica and a paused operator are ready: they can start to work at
//     any moment.
//
// This package carries no compatibility promise.
//
// Specification: Health-checks.
package health
