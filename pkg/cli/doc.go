// Package cli is the command line of operators (Main) and of the command kopf (KopfMain).
// It has the flags of operators, the logger and the connection to the cluster that the
// flags ask for, and the exit codes. It does not know handlers: the caller passes the
// function to run.
//
// Every flag has an environment variable for deployments: KOPF_NAMESPACE for --namespace.
// The flag takes precedence.
//
// The help and the rules between flags are those of this package, not cobra's. cobra
// neither groups flags nor shows their variables, and its exclusive flags cannot tell a
// flag from a variable: a flag must silence the variables that exclude it.
//
// Specification: Command-line options.
package cli
