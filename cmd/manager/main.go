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
	"time"

	corev1 "k8s.io/api/core/v1"

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
	published := kopf.NewIndexOf(kopf.For[*corev1.ConfigMap](registry), byOwner)
	registry.OnStartup(start)
	registry.OnCreate(examples, publish)
	registry.OnUpdate(examples, publish)
	registry.OnDelete(examples, withdraw)
	registry.Timer(examples, restore(published), kopf.ID("restore"), kopf.Idle(interval), kopf.Interval(interval))
}

// interval is the longest time until a ConfigMap is restored.
const interval = 10 * time.Second

func main() {
	registry, examples := kopf.NewRegistry(), kopf.Resource("kopf.dev", "v1", "kopfexamples")
	declare(registry, examples)
	admitted, err := admission(registry, examples)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	kopf.Main(admitted, func(o *kopf.Options) { o.Registry = registry })
}
