// Package handlerlog makes the loggers of the engine and of the handlers. They keep
// their values until a line is written, so that those who write nothing cost next
// to nothing; and what a handler writes is also an event of its object, from a
// level on.
//
// Only handlers write events by logging. The engine has words of its own for what
// has come of a handler, and would tell everything twice otherwise.
//
// Specification: Configuration, "Logging events".
//
// This package carries no compatibility promise.
package handlerlog
