// Package logformat writes the log of an operator, for people (Full, Plain) or for log
// collectors (JSON). The engine, handlers, and libraries write to it.
//
// A line is a message with values. One of the values, Object, is the object of the line.
// It becomes the prefix of the message, or a reference for collectors.
//
// Messages and values can contain anything from a cluster. A line therefore stays one
// line, and control characters are escaped, so that nothing in it controls a terminal.
// Only the stack of a panic has several lines.
//
// Specification: Configuration, "Logging formats and levels".
//
// This package carries no compatibility promise.
package logformat
