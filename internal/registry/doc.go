// Package registry keeps the declared handlers of an operator in the order of their
// declaration. It also collects mistakes in the declarations, because a program declares
// its handlers before it can report anything.
package registry
