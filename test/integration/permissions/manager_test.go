package permissions

import (
	"context"
	"errors"

	"github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// startOperator runs an operator with a connection of its own.
func (b *bench) startOperator(config *rest.Config, registry *kopf.Registry, s kopf.Settings) (stop func()) {
	return operators.Start(b.t, config, b.namespace, registry, func(o *kopf.Options) { o.Settings = s }).Stop
}

// startManager runs an operator in a manager, whose client reads from a cache.
func (b *bench) startManager(config *rest.Config, registry *kopf.Registry, s kopf.Settings) (stop func()) {
	b.t.Helper()
	observer := kopf.ObservePermissions(config)
	mgr, err := ctrl.NewManager(config, manager.Options{
		Metrics: server.Options{BindAddress: "0"}, Logger: testenv.Logger(), Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{b.namespace: {}}},
	})
	b.Expect(err).NotTo(gomega.HaveOccurred())
	s.Persistence.Finalizer = b.namespace + ".example.com/finalizer"
	o, err := kopf.Add(mgr, kopf.Options{Registry: registry, Settings: s, Permissions: observer})
	b.Expect(err).NotTo(gomega.HaveOccurred())
	_, err = kopf.Add(mgr, kopf.Options{Registry: kopf.NewRegistry(), Permissions: observer})
	b.Expect(err).To(gomega.MatchError(gomega.HavePrefix("another operator observes the permissions of this connection")))
	ctx, cancel := context.WithCancel(b.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	b.Eventually(o.Ready()).Should(gomega.BeClosed())
	return func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			b.t.Error(err)
		}
	}
}
