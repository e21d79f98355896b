// Package faults breaks the operator at every one of its writes, in every way
// that we could think of, and looks at what becomes of the object.
package faults
