// Package patch collects what handlers want to change on their object, and turns
// it into the smallest possible write.
//
// A handler does not write to its object itself: it would race with the operator's
// own bookkeeping, and each handler would cost a request. It fills a Patch
// instead, in one of two ways:
//
//   - Values (Set, Remove, Merge and the like) say what a field is to be,
//     whatever it is now.
//   - Transformations (Apply) compute the new state from the present one, as it
//     takes to append to a list or to increment a counter.
//
// A Patch stays a wish until Resolve holds it against a version of the object.
// The result is a merge patch (RFC 7386) of the fields that differ, and of no
// other ones: a patch that would change nothing is not sent at all. When the API
// server refuses it because the object has moved on, the same Patch is resolved
// again against the fresh object, so that transformations never work on stale
// values. Hence they must be repeatable.
//
// The functions of this package are the arithmetic of merge patches. They change
// none of their arguments, and their results share lists with them: results are
// to be read, not written to. As everywhere in Kubernetes, a null in a mapping is
// the absence of its key.
//
// Specification: Arguments, "Patching"; Admission control, "Mutation handlers".
package patch
