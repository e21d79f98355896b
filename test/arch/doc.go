// Package arch checks the rules of this repository that the compiler does not know:
// which packages may import which, which types the promised API may mention, and what
// no file may contain.
//
// Imports point downward only. layers_test.go lists the layers from top to bottom. A
// package without a layer is a violation, so that a new package gets its place on
// purpose.
package arch
