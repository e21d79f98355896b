// Package cli is the command line: of operators (Main), with their flags, the logger
// that the flags ask for, the connection to the cluster, and the exit code; and of
// the command kopf (KopfMain), which runs packages of handlers, and pauses operators.
// It knows nothing of handlers; what is to be run is given to it.
//
// Every flag has a variable of the environment, for deployments: KOPF_NAMESPACE for
// --namespace. The flag wins.
//
// Specification: Command-line options.
package cli
