// Package olm tests the bundle for the Operator Lifecycle Manager in config/olm, which the command manifests writes for
// the example manager: the validators of the Operator Framework accept it.
package olm
