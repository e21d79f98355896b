// Package worker talks to long-lived processes that handle many calls, for kopf serve.
//
// A worker is started when it is first needed, and again after it has died, with growing pauses. Its open
// calls fail then, and are tried again; new calls wait until it is back. It must declare the same handlers
// after each start, because the operator asks once.
//
// What a worker keeps in its memory ends with its process. Begin can make the first calls of each process, before all
// others, and Gone tells a worker that keeps something for each object which of them are gone.
//
// A worker that breaks the protocol is killed: one that writes what is no message, that does not say hello in
// time, or that does not answer a canceled call. After a broken line, it is unknown where the next message
// begins; and a call that does not end would overlap with the next attempt.
//
// This package carries no compatibility promise.
package worker
