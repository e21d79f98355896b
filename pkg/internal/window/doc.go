// Package window limits how many requests of an operator are in flight at the same time, with a
// limit that adapts to the API server.
//
// The window is the number of requests that may be in flight. It opens while requests wait for it
// and the API server answers in time: quickly at first, and by one for each round of answers later. It
// closes by half when the API server refuses a request (429), asks for a pause (Retry-After), or does
// not answer in time, and by a fifth when most answers of a round are late. The rule is a pure
// function of the answers (rule.go); what late means is judged by the resource and the verb
// (pace.go).
//
// Requests that find the window full wait in lines, one for each resource, which take turns: a burst
// of one resource does not hold the single write of another. A request that waits blocks the
// goroutine of its caller, and ends with its context (window.go). A transport does all this for every
// attempt, so that a client that pauses between two attempts has no seat (transport.go).
//
// # Invariants
//
//   - Watches, streams, leases, and the objects of peerings never wait: a replica that is busy must not
//     lose its leadership.
//   - A window never closes below one request, or below Patient requests because of late answers alone, but for a moment.
//   - Without requests, there is no goroutine, no timer, and no work.
//
// # Why not a library
//
// Adaptive limits of requests exist for Go, as ports of Netflix' concurrency-limits. None has what is
// needed here. In github.com/failsafe-go/failsafe-go, the limit follows the latency alone, with one
// baseline for all requests: a write through a slow admission webhook would look like an overload, and
// a refused request changes nothing. It refuses requests itself if too many wait.
// github.com/platinummonkey/go-concurrency-limits has a rule that heeds refusals, with which a small
// limit is exceeded all the time: one request in ten is refused at a limit of five. It brings clients of
// DataDog and gRPC into every operator. Neither lets the lines of several resources take turns.
//
// This package carries no compatibility promise.
package window
