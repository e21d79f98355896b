// Package binaries provides the programs of a control plane for tests: kube-apiserver and
// etcd.
//
// Prebuilt programs cannot be downloaded everywhere, but Go modules can. Therefore the package
// looks for the programs in KUBEBUILDER_ASSETS and in cache directories of the user. Otherwise,
// it builds them into the cache of this project, in a temporary module with the pinned versions
// of a release. The pins of the newest supported Kubernetes are part of this package, so that
// the build works for every module that imports the test kit. They are a copy of the module
// hack/tools/envtest, which tools for updates know; a test compares both.
//
// Invariants: a file with its final name in the cache is complete, because it is renamed
// after the build; concurrent runs build once, because they take a lock. On systems without
// locks they only lose time.
//
// The package imports little, because it must run before anything else in this repository is
// compiled. This package carries no compatibility promise.
package binaries
