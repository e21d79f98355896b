// Package logformat writes the log of an operator: for people (Full, Plain) or for
// collectors of logs (JSON). It is where the lines of all loggers end: of the
// engine, of handlers, of the libraries.
//
// A line is a message and values. The object that a line is about is one of the
// values, Object; it becomes the prefix of the message, or the reference that
// collectors look for.
//
// Whatever comes from a cluster can be in a message or in a value. So a line stays
// one line, and nothing in it controls a terminal: such characters are escaped. The
// stack of a panic alone has lines of its own.
//
// Specification: Configuration, "Logging formats and levels".
//
// This package carries no compatibility promise.
package logformat
