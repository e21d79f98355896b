// Package scaffold writes the project of a new operator: a program with handlers of one example kind, its definition,
// a sample, a test, and what builds and deploys it.
//
// # Templates
//
// A file of the project is a template in templates/. Projects in Go have those of all/, and those of untyped/ or
// typed/, without and with Go types. Projects in other languages have those of language/all/, and those of the folder of
// the language. The path there is that in the project, with PLURAL and SINGULAR for the names of the kind. Sources in Go
// pass through gofmt, because the length of a name moves what is aligned behind it. A file without .tmpl is copied: the
// adapter for Python, which is that of the examples.
//
// The examples of the projects are the same with and without types: an object has a message, and the operator keeps it
// in a ConfigMap. A beginner compares both, and replaces the handlers.
//
// This package carries no compatibility promise.
package scaffold
