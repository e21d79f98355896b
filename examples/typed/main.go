// This example adds handlers of typed objects to a controller manager, as in a kubebuilder
// project. The manager has the connection, the scheme, the cache, and the leader election.
package main

import (
	"context"
	"flag"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	v1 "github.com/kopf-go/kopf/examples/typed/api/v1"
	"github.com/kopf-go/kopf/pkg/kopf"
)

func main() {
	namespace := flag.String("n", "default", "the namespace to watch")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := run(ctrl.SetupSignalHandler(), *namespace); err != nil {
		ctrl.Log.Error(err, "The operator has failed.")
		os.Exit(1)
	}
}

func run(ctx context.Context, namespace string) error {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	if err := v1.AddToScheme(scheme); err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme,
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		LeaderElection:                true,
		LeaderElectionID:              "typed.kopf.dev",
		LeaderElectionNamespace:       namespace,
		LeaderElectionReleaseOnCancel: true, // the next leader does not wait for the lease to expire
	})
	if err != nil {
		return err
	}
	settings := kopf.Settings{}
	settings.Scope.Namespaces = []string{namespace}
	if _, err := kopf.Add(mgr, kopf.Options{Registry: handlers(), Settings: settings}); err != nil {
		return err
	}
	return mgr.Start(ctx)
}
