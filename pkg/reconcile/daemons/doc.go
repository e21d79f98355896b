// Package daemons runs the handlers that accompany objects in the background:
// daemons, which run as long as they like, and timers, which are called again
// and again.
//
// A Supervisor has all of them. Every object has a Group in it, and every
// handler that has ever matched the object a worker in the group. A worker is
// either off, or waits for its time, or runs, or has ended for ever. Waiting
// costs a timer of the runtime and no goroutine; this is true also of a daemon
// before its first attempt and between two of them. A worker never runs twice at
// the same time, whatever happens to its object meanwhile.
//
// The engine tells a group at every pass over the object which handlers match
// now (Match), and when the object goes (Stop). A daemon that is to stop goes
// through the stages of its declaration:
//
//   - it is asked to stop: Task.Stopped is closed;
//   - after its cancellation backoff, its context is cancelled, if it has a
//     cancellation timeout;
//   - after the cancellation timeout, it is abandoned: nobody waits for it any
//     longer, but no other one starts in its place until it has returned;
//   - without a cancellation timeout it is waited for without end, and a warning
//     tells so from time to time.
//
// A timer has no such stages: it is just not called again. A call that is
// running then goes on, and nobody waits for its end.
//
// Nothing here talks to the API server; a Host does that for every object. One
// lock guards the states of all workers: it is held for some assignments at a
// time, and never while anything of a Host or of a handler is called.
//
// Specification: Daemons; Timers.
package daemons
