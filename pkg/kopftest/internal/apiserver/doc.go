// Package apiserver is an API server of Kubernetes in memory: an HTTP handler with real
// semantics of versions, watches, patches, finalizers, field owners, custom resources,
// discovery, and admission webhooks.
//
// It exists for tests in virtual time (testing/synctest), hence: no listener, no goroutine
// besides those of the requests, no timer that the requests do not ask for. Tests run every
// promise on this server and on the one of Kubernetes.
//
// Not there: authentication, conversion webhooks, admission plugins except the life cycle
// of namespaces, controllers (nothing creates pods, and nothing collects garbage), defaults
// and validation of built-in resources, tables, and protocol buffers.
package apiserver
