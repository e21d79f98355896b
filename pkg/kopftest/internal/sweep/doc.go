// Package sweep contains the parts of a sweep that need no operator: the faults of a write,
// and the comparison of what two runs leave on an API server.
package sweep
