// Package rbac derives the permissions that an operator needs from what it declares: from its
// handlers, its settings, and the resources that a cluster serves at one moment. Every rule has
// a reason.
//
// # What is derived
//
// The operator's own requests are known: watching, storing its state, posting events, electing a
// leader, meeting peers, serving admission. What handlers do with a client is not: kopf.Needs
// declares it. The children of handlers of Ensure are not known before they are called, either.
//
// # What is observed
//
// A Journal is a transport that records the permissions that requests have used, and those that the
// API server has refused. What was used is a lower bound: handlers that were not called have asked
// for nothing.
//
// No rule has a wildcard. A selector that can select other resources tomorrow leads to rules for
// those of today, which say so.
//
// This package carries no compatibility promise.
package rbac
