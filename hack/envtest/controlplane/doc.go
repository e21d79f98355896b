// Package controlplane runs a real Kubernetes API server with its etcd, for
// tests and for `make run`.
//
// It is controller-runtime's envtest with three additions: the binaries come from
// package assets; both processes stop when this one dies, for whatever reason (package
// guard); and all their files are in one directory that is removed with them.
//
// There is no controller manager and no kubelet: namespaces are never finalized, owned
// objects are never collected, and pods never run. Reading, watching, and writing
// behave as in any cluster, and no flag here may change that.
package controlplane
