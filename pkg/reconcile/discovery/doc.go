// Package discovery finds out which resources a cluster offers, and which of them an
// operator serves.
//
// A Source returns a Snapshot of all resources; Scan takes one by asking the API
// server. Resolve applies the selectors of the handlers to a Snapshot: it returns the
// resources to serve, the selectors that found each of them, and the reasons why other
// selectors found nothing. A Tracker compares the resolutions of a running operator
// over time, a ScanSchedule says when to scan next, and an Access asks for permissions.
//
// # Invariants
//
//   - An API group that is unavailable does not affect selectors that do not need it.
//     Selectors that need it wait: a resource that the group could override once it is
//     back (as the core group and preferred versions do) is not served before. A second
//     resource with the same name in the unavailable group is not expected.
//   - A resource without list and watch is never served.
//   - Every reason that keeps a resource from being served is reported by one warning
//     with a remedy. Only selectors of many resources skip single resources that
//     cannot be watched.
//
// # Caveats
//
// A Snapshot shows the moment when it was taken. A CustomResourceDefinition that is
// installed later appears in a later one.
//
// This package carries no compatibility promise.
//
// Specification: Resource specification.
package discovery
