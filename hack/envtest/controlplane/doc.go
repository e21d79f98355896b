// Package controlplane runs a real Kubernetes API server with its etcd, for
// tests and for `make run`.
//
// It is controller-runtime's envtest with three additions: the binaries come
// from package assets, both processes die with this one however it dies
// (package guard), and everything they write is in one directory that goes with
// them.
//
// There is no controller manager and no kubelet: namespaces are never finalized,
// owned objects are never collected, pods never run. All that concerns reading,
// watching and writing behaves as it does in any cluster, and no flag here may
// change that.
package controlplane
