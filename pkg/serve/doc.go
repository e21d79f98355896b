// Package serve runs operators whose handlers are programs, workers, and HTTP services: the command kopf serve.
//
// Load reads files, and asks their workers for the handlers that they declare. Declare declares all handlers
// in a registry of package kopf, whose functions make the calls. Everything else is an operator like any
// other: this package uses package kopf as users do.
//
// The parts: document reads the files; protocol has the messages; process executes a program for each call;
// worker talks to long-lived processes; service posts to HTTP services.
//
// The form of the files and the protocol are promised to their users; the Go API is not.
//
// This package carries no compatibility promise.
package serve
