// Package assets provides the binaries of a test control plane: kube-apiserver
// and etcd.
//
// No prebuilt binary can be downloaded from everywhere, but the Go modules can.
// So the binaries are looked for in KUBEBUILDER_ASSETS, then in a cache
// directory of the user, and otherwise built into that cache from the module
// hack/tools/envtest, whose go.mod is the only place that names their versions.
//
// Invariants: a file in the cache under its final name is complete, because it
// gets there by a rename; runs at the same time build once, because they take a
// lock, and where locks do not exist they only lose time.
//
// The package uses nothing but the standard library: it has to run before
// anything else of this repository is compiled.
package assets
