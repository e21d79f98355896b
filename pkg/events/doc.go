// Package events posts Kubernetes events, which `kubectl describe` shows below an
// object. The engine posts the outcomes of handlers, and handlers can post their own
// events.
//
// Events inform people. They are not a record: the API server deletes them after about
// an hour, and they may get lost. The priorities follow from that:
//
//   - No caller waits for an event. Post puts it into a bounded queue and returns;
//     if the queue is full, the event is dropped. Drops and failures are counted,
//     and logged at most once a minute.
//   - The load on the API server is limited. Repeated events become one with a
//     count, similar ones are combined, and events of one object are rate limited.
//   - Failing to post an event has no other effect. Missing or terminating namespaces
//     are expected; missing permissions are logged.
//   - No events are posted about events: an operator that handles events, or all
//     resources, would trigger itself.
//   - The message is one line without control characters: see Post.
//
// The EventCorrelator of client-go counts, combines, and limits the events. The
// recorders of client-go and controller-runtime are not used because they reject the
// types Error and Debug, which handlers post.
//
// The package uses the core API for events, not events.k8s.io, because only the core
// API accepts types other than Normal and Warning.
//
// Specification: Events.
//
// This package carries no compatibility promise.
package events
