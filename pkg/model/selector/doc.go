// Package selector selects the resources of a cluster that a handler is for.
//
// You name a resource as with kubectl: "kopfexamples", or better with its group,
// "kopfexamples.kopf.dev". The meaning of a name depends on the cluster, so a Selector
// keeps it as it is, and is matched later against every Resource that the API server
// offers.
//
// To create a Selector, use New for the notations of kubectl, By for one particular name
// (the kind, a short name, a category), Exact for a known Go type, or Func for a callback.
// To use one, call Match to check one resource, Select to find all matching resources, or
// Resolve to find the resources to watch, with an error if there are none.
//
// # Invariants
//
//   - Selectors are immutable, safe for concurrent use, and comparable: equal
//     selectors select the same resources. They can be keys of maps.
//   - A selector keeps its mistake, which Err returns, so that declarations need no
//     error handling and all mistakes are reported together. A selector with a mistake
//     and the zero selector select nothing.
//   - A Specific selector names one resource; others select any number. Only specific
//     selectors select Kubernetes events: operators post events about their work, and
//     would trigger themselves.
//
// Specification: Resource specification.
package selector
