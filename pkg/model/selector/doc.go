// Package selector tells which resources of a cluster a handler is for.
//
// A developer names a resource as with kubectl: "kopfexamples", or better with
// its group, "kopfexamples.kopf.dev". What that means is known only in a
// cluster: a Selector keeps the words as they are, and is matched later against
// every Resource that the API server offers.
//
// There are four ways to make a Selector: New for the notations of kubectl, By
// for one particular name (the kind, a short name, a category), Exact for a
// known Go type, Func for a callback. There are three ways to use one: Match
// asks about one resource; Select finds all that are meant; Resolve does the
// same for serving, and explains why there is nothing to serve.
//
// # Invariants
//
//   - Selectors are immutable, safe for concurrent use, and comparable: equal
//     ones select the same. They can be keys of maps.
//   - What is wrong with a selector is kept in it and told by Err, so that a
//     program's declarations stay plain and all mistakes are reported together.
//     A selector with a mistake, and the zero one, select nothing.
//   - A Specific selector names one resource; others select any number. Kubernetes
//     events are selected by specific ones only: operators post events about what
//     they do, and would be woken by their own.
//
// Specification: Resource specification.
package selector
