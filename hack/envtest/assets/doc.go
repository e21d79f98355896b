// Package assets provides the binaries of the control planes that the tests of this repository
// run on: exactly those of the newest supported Kubernetes, or of the oldest one, each pinned by
// a module in hack/tools/envtest. Package binaries finds and builds them.
package assets
