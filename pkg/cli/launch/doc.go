// Package launch builds operators from packages and runs them. It builds a package that
// is a program as it is, and wraps packages that declare handlers when they are imported
// in a program. It writes nothing into the user's module. It needs the go command.
//
// This package carries no compatibility promise.
package launch
