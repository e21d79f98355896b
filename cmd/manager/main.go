// Command manager is an example operator that is ready to be deployed: config/ has its
// manifests, and Dockerfile builds its image. Copy all three to start your own operator.
//
// It keeps a ConfigMap with the fields of the spec for every KopfExample. With
// config/webhook, it also checks and completes KopfExamples before they are stored.
package main

import (
	"context"
	"fmt"
	"os"

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
}

// name is the name of the operator in the cluster: the field manager of the ConfigMaps.
const name = "kopf-manager"

func main() {
	registry, examples := kopf.NewRegistry(), kopf.Resource("kopf.dev", "v1", "kopfexamples")
	declare(registry, examples)
	admitted, err := admission(registry, examples)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	kopf.Main(admitted, func(o *kopf.Options) { o.Registry, o.Settings.Name = registry, name })
}
