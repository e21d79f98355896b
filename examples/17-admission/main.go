// Admission handlers: objects are changed, and checked, before they are stored.
//
// The API server asks the operator, so it has to know where that is. Here the
// operator is a part of a manager, whose webhook server has its certificate in a
// directory, and webhooks.yaml tells the API server of it.
package main

import (
	"context"
	"flag"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/kopf-go/kopf/pkg/kopf"
)

func main() {
	namespace := flag.String("n", "default", "the namespace to watch")
	server := webhook.Options{Host: "127.0.0.1"}
	flag.IntVar(&server.Port, "port", 9443, "the port of the webhook server")
	flag.StringVar(&server.CertDir, "certificates", "certificates", "the directory with tls.crt and tls.key")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	declare()
	if err := run(ctrl.SetupSignalHandler(), *namespace, server); err != nil {
		ctrl.Log.Error(err, "The operator has failed.")
		os.Exit(1)
	}
}

// declare declares the handlers in the default registry.
func declare() {
	kex := kopf.Resource("kopfexamples")
	changes := kopf.Operations("CREATE", "UPDATE")
	kopf.OnMutate(kex, defaultNumbers, changes)
	kopf.OnMutate(kex, convertNumbers, changes)
	kopf.OnValidate(kex, checkNumbers, changes)
	kopf.OnValidate(kex, keepLocked, kopf.Operations("DELETE"), kopf.Labels(kopf.Filters{"locked": kopf.Present()}))
	kopf.OnValidate(kex, checkPhase, kopf.Operations("UPDATE"), kopf.Subresource("status"))
}

func run(ctx context.Context, namespace string, server webhook.Options) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Metrics:       metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(server),
	})
	if err != nil {
		return err
	}
	settings := kopf.Settings{}
	settings.Scope.Namespaces = []string{namespace}
	if err := kopf.Add(mgr, nil, settings); err != nil {
		return err
	}
	return mgr.Start(ctx)
}
