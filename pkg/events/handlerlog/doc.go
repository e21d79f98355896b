// Package handlerlog creates the loggers of the engine and of the handlers. They encode
// their values only when they write a line, so that unused loggers are cheap. Log lines
// of handlers from a configured level on are also posted as events of the object.
//
// Only log lines of handlers become events. The engine posts its own events about the
// outcomes of handlers, so its log lines would repeat them.
//
// Specification: Configuration, "Logging events".
//
// This package carries no compatibility promise.
package handlerlog
