// Package manifests reads objects in YAML and JSON, and the custom resource definitions in files
// and folders. The test kit, `kopf run --with-cluster`, and `make run` install the same
// definitions, because all of them read with it.
//
// This package carries no compatibility promise.
package manifests
