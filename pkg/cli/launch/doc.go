// Package launch makes operators of packages, and runs them: a package that is a
// program is built as it is; packages of handlers, which declare them when they are
// imported, get a program around them. Nothing is written into the user's module.
//
// It needs the go command, and talks to it as a person would.
//
// This package carries no compatibility promise.
package launch
