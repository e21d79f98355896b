// Package function describes functions: their names, their identity, and the place that
// declares them. Go compares functions only with nil, and names them only for stack traces.
package function
