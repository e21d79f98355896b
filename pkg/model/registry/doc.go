// Package registry keeps the declared handlers of an operator, in the order of
// their declaration, and the mistakes in them until somebody asks: a program
// declares its handlers before it can report anything.
package registry
