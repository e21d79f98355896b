// Package arch holds the rules of this repository that no compiler knows: which
// package may import which, and what no file may contain.
//
// Imports point downward only. The layers are listed from top to bottom in
// layers_test.go; a package that fits none of them is a violation too, so that
// a new one gets its place on purpose.
package arch
