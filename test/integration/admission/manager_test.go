package admission

import (
	"context"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/webhook/servers"
	"github.com/kopf-go/kopf/test/testenv"
)

// managerDelay is how long an operator in a manager goes on answering reviews. A request must fit into it on a
// busy machine.
const managerDelay = 4 * time.Second

// The operator does not know whether the manager of another program has other replicas. So its webhooks stay when
// the manager stops, and it answers reviews for the delay, unless the settings say otherwise. The server is that
// of the manager, or a separate one.
func TestWebhooksOfAManager(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		mounted, removed bool
	}{
		"stay, on the server of the manager":        {mounted: true},
		"stay, on a separate server":                {},
		"are removed, on the server of the manager": {mounted: true, removed: true},
		"are removed, on a separate server":         {removed: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, r, namespace := gomega.NewWithT(t), kopf.NewRegistry(), cluster.Namespace(t)
			r.OnValidate(examples, no, kopf.ID("check"))
			mgr, serving := newManagerWith(t, ctrl.Options{
				LeaderElection: true, LeaderElectionID: namespace, LeaderElectionNamespace: namespace, LeaderElectionReleaseOnCancel: true,
			})
			options := kopf.Options{Registry: r}
			managed(t, namespace)(&options)
			options.Settings.Admission.RemoveOnExit, options.Settings.Admission.ShutdownDelay = test.removed, managerDelay
			if test.mounted {
				url := "https://" + net.JoinHostPort(serving.LocalServingHost, strconv.Itoa(serving.LocalServingPort))
				options.Settings.Admission.Server = servers.Mounted{
					Server:       mgr.GetWebhookServer(),
					ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: serving.LocalServingCAData},
				}
			}
			o, err := kopf.Add(mgr, options)
			g.Expect(err).NotTo(gomega.HaveOccurred())
			stop, done := startManager(t, mgr)
			g.Eventually(o.Ready()).Should(gomega.BeClosed())
			create := dryRun(t, testenv.NewObject("KopfExample", namespace, "one", nil))
			g.Eventually(create).Should(haveCode(418, "no one"))

			began := time.Now()
			stop()
			if !test.removed {
				g.Expect(create()).To(haveCode(418, "no one"), "the reviews end before the delay")
			}
			g.Eventually(done).Should(gomega.Receive(gomega.Succeed()))
			if test.removed {
				g.Expect(webhooks(t, namespace)()).To(gomega.BeZero())
				g.Eventually(create).Should(gomega.Succeed())
				return
			}
			g.Expect(time.Since(began)).To(gomega.BeNumerically(">=", managerDelay))
			g.Expect(webhooks(t, namespace)()).To(gomega.Equal(1))
			g.Expect(create()).To(gomega.MatchError(gomega.ContainSubstring("failed calling webhook")))
		})
	}
}

// A manager that waits for less than the delay ends before it. Its webhooks stay nevertheless.
func TestManagerCutsTheDelayShort(t *testing.T) {
	t.Parallel()
	g, r, namespace := gomega.NewWithT(t), kopf.NewRegistry(), cluster.Namespace(t)
	r.OnValidate(examples, no, kopf.ID("check"))
	mgr, _ := newManagerWith(t, ctrl.Options{GracefulShutdownTimeout: new(100 * time.Millisecond)})
	options := kopf.Options{Registry: r}
	managed(t, namespace)(&options)
	options.Settings.Admission.ShutdownDelay = managerDelay
	o, err := kopf.Add(mgr, options)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	stop, done := startManager(t, mgr)
	g.Eventually(o.Ready()).Should(gomega.BeClosed())
	stop()
	g.Eventually(done).Should(gomega.Receive(gomega.MatchError(gomega.ContainSubstring("failed waiting for all runnables to end within grace period"))))
	g.Expect(webhooks(t, namespace)()).To(gomega.Equal(1))
	g.Eventually(o.State).Should(gomega.Equal(kopf.OperatorState{}), "the operator has not stopped after the delay")
}

// startManager starts a manager until stop is called, or until the end of the test.
func startManager(t *testing.T, mgr manager.Manager) (stop func(), done chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	done = make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	return cancel, done
}
