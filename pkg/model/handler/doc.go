// Package handler contains the types that users of the library write and read: the
// declarations of handlers with their options and filters, the arguments of handlers,
// and the errors that they return.
//
// The functions of the facade (kopf.OnCreate and its siblings) create a Declaration from
// a function, a selector, and options. It does not change afterwards. The options have
// types for the kinds of handlers, so that unsuitable options do not compile. Other
// mistakes are detected when the declaration is made, and reported with its location in
// the source.
//
// Change, Event, Task, Tick, and Indexed are the arguments, which the engine creates for
// every call. With a Stopper, the engine stops a daemon; with a Table, it fills an
// index.
//
// Specification: Handlers, Daemons, Timers, In-memory indexing, Arguments, Filtering,
// Error handling.
package handler
