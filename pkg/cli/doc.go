// Package cli implements the command line of operators (Main) and of the command kopf
// (KopfMain): the flags, the logger and the connection to the cluster that they configure,
// and the exit codes. It does not know handlers: the caller passes the function to run.
//
// Every flag has an environment variable for deployments: KOPF_NAMESPACE for --namespace.
// The flag takes precedence.
//
// This package does not use cobra's help and rules for exclusive flags. cobra neither
// groups flags nor shows their variables, and does not distinguish flags from variables: a
// flag must disable the variables that it excludes.
//
// Specification: Command-line options.
//
// This package carries no compatibility promise.
package cli
