// Package daemons runs the handlers that accompany objects in the background:
// daemons, which run for as long as they like, and timers, which are called
// repeatedly.
//
// A Supervisor runs all of them. Every object has a Group in it, and every handler
// that has ever matched the object has a worker in the group. A worker is off, waits
// for its time, runs, or has ended for good. A waiting worker costs a runtime timer
// and no goroutine; this includes a daemon before its first attempt and between two
// attempts. A worker never runs twice at the same time, whatever happens to its
// object: an object that leaves what the operator watches and returns gets its Group back.
//
// In every pass over the object, the engine tells the group which handlers match now
// (Sync), and when the object is deleted (Stop). A daemon that must stop goes through
// the stages that its declaration defines:
//
//   - The daemon is asked to stop: Task.Stopped is closed.
//   - After the cancellation backoff, its context is canceled, if it has a
//     cancellation timeout.
//   - After the cancellation timeout, the daemon is abandoned: it is no longer waited
//     for, but it does not start again until it has returned.
//   - Without a cancellation timeout, the daemon is waited for without a limit, and a
//     warning is logged from time to time.
//
// A timer has no such stages: it is not called again, and a call that is running is asked
// to stop (Tick.Stopped), but is not waited for. If the object is deleted or does not match
// anymore, the context of the call is canceled at once.
//
// A timer with a schedule has runs: times of the clock. The end of each run is written with the result
// of the timer (Host.PutRun). When the timer starts, the run that follows the last one is looked up
// (Host.LastRun), which can be one that was missed. What follows a call is decided after it, by
// code of users where it can depend on the object. The runs of a schedule that has replaced another one begin when
// that is seen: by the worker, or after a start, because the schedule of the last run is stored.
//
// A daemon can say what it looks at. Its run then follows that (Host.Follow) from before the call until after it, and
// its channel has a value when something has changed: at most one, however often that was. A daemon can also write
// before it returns (Host.Write). A run has an attention only for these (attention.go), because all others must not
// pay for it.
//
// This package does not talk to the API server; a Host does that for every object.
// One lock guards the state of all workers. It is held for a few assignments only,
// and never while a method of a Host or a handler is called.
//
// This package carries no compatibility promise.
//
// Specification: Daemons; Timers.
package daemons
