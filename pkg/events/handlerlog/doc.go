// Package handlerlog makes the loggers of the engine and of the handlers. They encode
// their values only when a line is written, so that a logger that writes nothing
// costs next to nothing. From a level on, the log lines of handlers are also posted
// as events of the object.
//
// Only log lines of handlers become events. The engine posts its own events for the
// outcomes of handlers, and would report everything twice otherwise.
//
// Specification: Configuration, "Logging events".
//
// This package carries no compatibility promise.
package handlerlog
