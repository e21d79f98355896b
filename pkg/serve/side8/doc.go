// Package side8 is the convention of Side8's operator, https://github.com/side8/k8s-operator, for kopf serve: a program
// gets the fields of an object as variables, and writes the status.
//
// This package carries no compatibility promise.
package side8
