// Package handler holds what an operator's developer writes and reads: the
// declaration of a handler with its options and filters, the arguments that a
// handler gets, and the errors that it returns.
//
// A Declaration is made by the functions of the facade (kopf.OnCreate and its
// siblings) out of a function, a selector and options, and does not change
// afterwards. Options are typed by the kind of handler, so that one which makes
// no sense for a kind does not compile. What the compiler cannot see is checked
// when the declaration is made, and reported with its place in the source.
//
// Change, Event, Task, Tick and Indexed are the arguments; the engine makes them for
// every call. A Stopper is its side of a daemon's stop, and a Table its side of an
// index.
//
// Specification: Handlers, Daemons, Timers, In-memory indexing, Arguments, Filtering,
// Error handling.
package handler
