// Package scaffold writes the project of a new operator: a program with handlers of one example kind, its definition,
// a sample, a test, and what builds and deploys it.
//
// # Templates
//
// A file of the project is a template in templates/: in all/ for each project, and in untyped/ or typed/ for those
// without and with Go types. Its path there is that in the project, with PLURAL and SINGULAR for the names of the
// kind. Sources pass through gofmt, because the length of a name moves what is aligned behind it.
//
// The examples of the projects are the same with and without types: an object has a message, and the operator keeps it
// in a ConfigMap. A beginner compares both, and replaces the handlers.
//
// This package carries no compatibility promise.
package scaffold
