// Package cli is the command line of operators: their flags, the logger that
// the flags ask for, the connection to the cluster, and the exit code. It knows
// nothing of handlers; what is to be run is given to it.
//
// Specification: Command-line options.
package cli
