// Package kubebuilder is an external plugin of kubebuilder: projects get handlers in place of reconcilers.
//
// Kubebuilder executes the plugin for each command, with a request on its standard input, and reads the answer from its
// standard output. A request has the files of the project, and an answer those that change:
//
//	kubebuilder init --plugins go/v4,kopf/v1   cmd/main.go calls kopf.Add; internal/handlers has a registry
//	kubebuilder create api --controller=false  internal/handlers has the handlers of the kind, with the markers of
//	                                           their role, and a test
//
// The other plugins of the project do everything else. The form of requests and answers is that of
// https://book.kubebuilder.io/plugins/extending/external-plugins.
//
// This package carries no compatibility promise.
package kubebuilder
