// Package discovery finds out which resources a cluster has, and which of them
// an operator is to serve.
//
// A Source gives a Snapshot of all resources; Scan makes one by asking the API
// server. Resolve holds the selectors of the handlers against a Snapshot: it
// tells which resources to serve, by which selectors each was found, and why
// other selectors have found nothing. A Tracker holds the resolutions of a running
// operator against each other, a Pace says when to make the next one, and Names
// tells when something has happened.
//
// # Invariants
//
//   - An API group that is down does no harm to selectors that do not need it.
//     Those that do wait: what the group could override when it is back (as the
//     core group does, or a preferred version) is not served before. Only that
//     it has a namesake of what was found elsewhere is not expected.
//   - A resource without list and watch is never served.
//   - Nothing that keeps a resource from being served is silent: for each there
//     is one warning with a remedy. Only selectors of many resources pass over
//     single ones that cannot be watched.
//
// # Caveats
//
// A Snapshot is the moment when it was taken. A CustomResourceDefinition that is
// installed later is in a later one.
//
// Specification: Resource specification.
package discovery
