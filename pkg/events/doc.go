// Package events reports what happens to objects as Kubernetes events: what
// `kubectl describe` shows below an object. The engine posts the outcomes of
// handlers with it, and people post whatever they want to tell.
//
// Events are a help for people, not a record: the API server forgets them after
// an hour or so, and they may be lost on the way. Hence the priorities here:
//
//   - Nobody waits for an event. Post puts it into a bounded queue and returns;
//     with a full queue it is dropped. Drops and failures are counted, and
//     logged once a minute at most.
//   - The API server is spared. Repeated events become one with a count,
//     similar ones are combined, and one object can have a burst of them and
//     then one in a while (client-go's correlator, with its defaults).
//   - An event that cannot be posted disturbs nothing: a namespace that is gone
//     or being removed is expected; a missing permission is logged.
//   - Events are never posted about events: an operator that handles events, or
//     all resources, would feed itself.
//   - What is posted is one clean line: see Post.
//
// The events are of the core API, not of events.k8s.io, for only the first one
// takes types other than Normal and Warning.
//
// Specification: Events.
//
// This package carries no compatibility promise.
package events
