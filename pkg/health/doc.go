// Package health tells the kubelet, over HTTP, how an operator does.
//
// The liveness endpoint shows the results of the probe handlers: whether the
// process should be killed and started again. The readiness endpoint shows every
// watch, the queue, and whether the operator handles objects at all: whether a
// person should look at it. docs/health.md has examples.
//
// # Invariants
//
//   - Answers have only words of ours and what probe handlers return: no errors of
//     handlers or of the API server, which may quote objects. Those are in the log.
//   - However many ask, the probe handlers are called once in a while.
//   - A replica that stands by and an operator that is paused are ready: they could
//     work at once.
//
// Specification: Health-checks.
package health
