// Package protocol has the messages between kopf serve and the programs, workers, and services that handle
// objects: docs/protocol.md documents them, and a test executes its examples.
//
// A Call and its Answer are the same for all of them. A program reads the call from its standard input and
// writes the answer to its standard output; a service gets the call as the body of a POST; a worker gets
// both, and a few more, in Messages, one per line.
//
// Answers are decoded strictly: an unknown word is an error, which names the nearest known one, because a
// mistyped "permanent" must not become a retry.
//
// The protocol is promised.
//
// This package carries no compatibility promise.
package protocol
