// Command manager is an example operator that is ready to be deployed: config/ has its
// manifests, which its command manifests writes, and Dockerfile builds its image. Copy it and
// the Dockerfile to start your own operator.
//
// It keeps a ConfigMap with the fields of the spec for every KopfExample. With
// config/webhook, it also checks and completes KopfExamples before they are stored.
package main

//go:generate go run . manifests --crds ../../config/crd/kopf.dev,../../config/crd/example --namespace kopf-system --image registry.example.com/kopf-manager:latest --kustomize ../../config

import (
	"context"
	"fmt"
	"os"
	_ "time/tzdata" // for images without time zones

	"github.com/kopf-go/kopf/pkg/kopf"
)

// version is the version of the image; the linker sets it.
var version = "unknown"

func start(_ context.Context, s *kopf.Startup) error {
	s.Logger().Info("The manager starts.", "version", version)
	return nil
}

// declare declares all handlers except for those of admission.
func declare(registry *kopf.Registry, examples kopf.Selector) {
	registry.OnStartup(start)
	registry.Ensure(examples, publish)
	registry.Needs(kopf.Resource("v1", "configmaps"), "get", "list", "watch", "create", "patch", "delete")
}

// name is the name of the operator in the cluster: the field manager of the ConfigMaps.
const name = "kopf-manager"

func main() {
	kopf.Main(func(o *kopf.Options) {
		examples := kopf.Resource("kopf.dev", "v1", "kopfexamples")
		o.Registry = kopf.NewRegistry()
		o.Settings.Name = name
		declare(o.Registry, examples)
		if err := admission(o, examples); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	})
}
