// Package controlplane runs a real Kubernetes API server with its etcd, for tests, for
// `make run`, and for `kopf run --with-cluster`.
//
// It is controller-runtime's envtest with two additions: both processes stop when this one
// dies, for whatever reason (package guard); and all their files are in one directory that
// is removed with them.
//
// There is no controller manager and no kubelet: namespaces are never finalized, owned
// objects are never collected, and pods never run. Reading, watching, and writing
// behave as in any cluster, and no flag here may change that.
package controlplane
