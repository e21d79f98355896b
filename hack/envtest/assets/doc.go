// Package assets provides the binaries of a test control plane: kube-apiserver
// and etcd.
//
// Prebuilt binaries cannot be downloaded everywhere, but Go modules can. Therefore the
// package looks for the binaries in KUBEBUILDER_ASSETS and in a cache directory of the
// user, and otherwise builds them into that cache from the module of the release, whose
// go.mod alone determines their versions: hack/tools/envtest for the newest supported
// Kubernetes, and its subfolder for the oldest.
//
// Invariants: a file with its final name in the cache is complete, because it is
// renamed after the build; concurrent runs build once, because they take a lock. On
// systems without locks they only lose time.
//
// The package uses only the standard library, because it must run before anything else
// in this repository is compiled.
package assets
