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

	"github.com/kopf-go/kopf/pkg/kopf"
)

// version is the version of the image; the linker sets it.
var version = "unknown"

func start(_ context.Context, s *kopf.Startup) error {
	s.Logger().Info("The manager starts.", "version", version)
	return nil
}

func main() {
	examples := kopf.Resource("kopf.dev", "v1", "kopfexamples")
	kopf.OnStartup(start)
	kopf.OnCreate(examples, publish)
	kopf.OnUpdate(examples, publish)
	kopf.OnDelete(examples, withdraw)
	kopf.Timer(examples, restore, kopf.Idle(10*time.Second), kopf.Interval(10*time.Second))
	admitted, err := admission(examples)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	kopf.Main(admitted)
}
