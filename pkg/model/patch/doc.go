// Package patch collects the changes that handlers request for their object, and
// converts them to the smallest possible write.
//
// Handlers do not write to their object themselves: they would race with the operator's
// own writes, and each handler would cost a request. Instead, they fill a Patch in one
// of two ways:
//
//   - Values (Set, Remove, Merge, and similar methods) define the new value of a field,
//     regardless of its current value.
//   - Transformations (Apply) compute the new state from the current one, for example to
//     append to a list or to increment a counter.
//
// Resolve applies a Patch to a version of the object. The result is a merge patch
// (RFC 7386) that contains only the fields that differ; if nothing differs, no request
// is sent. When the API server rejects the patch because the object has changed, the
// same Patch is resolved again with the fresh object, so that transformations never use
// stale values. Transformations must therefore be repeatable.
//
// The functions of this package compute merge patches. They do not modify their
// arguments, and their results share lists with them, so treat the results as
// read-only. As everywhere in Kubernetes, a null in a mapping means that the key is
// absent.
//
// Specification: Arguments, "Patching"; Admission control, "Mutation handlers".
package patch
