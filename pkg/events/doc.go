// Package events posts Kubernetes events, which `kubectl describe` shows below an
// object. The engine posts the outcomes of handlers, and handlers post events of
// their own.
//
// Events inform people and are not a record: the API server deletes them after an
// hour or so, and they may be lost on the way. The priorities follow from that:
//
//   - No caller waits for an event. Post puts it into a bounded queue and returns;
//     if the queue is full, the event is dropped. Drops and failures are counted,
//     and logged at most once a minute.
//   - The load on the API server is limited. Repeated events become one with a
//     count, similar ones are combined, and events of one object are rate limited.
//   - An event that cannot be posted has no other effect: a namespace that is gone
//     or being removed is expected; a missing permission is logged.
//   - No events are posted about events: an operator that handles events, or all
//     resources, would trigger itself.
//   - The message is one line without control characters: see Post.
//
// Counting, combining and limiting are done by client-go's EventCorrelator. The
// recorders of client-go and controller-runtime are not used: they refuse the types
// Error and Debug, which handlers post; the correlator alone sets the same limits.
//
// The events are of the core API, not of events.k8s.io, because only the
// former takes types other than Normal and Warning.
//
// Specification: Events.
//
// This package carries no compatibility promise.
package events
