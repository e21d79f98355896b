package health

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

func TestProbesRunOnRequest(t *testing.T) {
	t.Parallel()
	g, registry, address, namespace := gomega.NewWithT(t), kopf.NewRegistry(), testenv.FreeAddress(t), cluster.Namespace(t)
	var calls atomic.Int32
	var failing atomic.Bool
	registry.OnCreate(examples, succeed, kopf.ID("create_fn"))
	registry.OnProbe(func(context.Context, *kopf.Activity) (any, error) { return calls.Add(1), nil }, kopf.ID("calls"))
	registry.OnProbe(func(context.Context, *kopf.Activity) (any, error) {
		if failing.Load() {
			return nil, kopf.Permanent(errors.New("the password is " + canary))
		}
		return []string{"healthy"}, nil
	}, kopf.ID("database"))
	operators.Start(t, cluster.Config(), namespace, registry, func(o *kopf.Options) {
		o.Settings.Health.Address, o.Settings.Health.ProbeCacheTTL = address, time.Second
		o.Settings.Name = t.Name()
	})
	g.Expect(calls.Load()).To(gomega.BeZero(), "there was no request yet")
	g.Eventually(asking(address, "/healthz")).Should(gomega.Equal(answer{http.StatusOK, `{"calls":1,"database":["healthy"]}` + "\n"}))
	for range 10 {
		asking(address, "/healthz")()
	}
	g.Expect(calls.Load()).To(gomega.BeNumerically("<", 10), "responses are cached")
	failing.Store(true)
	g.Eventually(asking(address, "/healthz")).Should(says(http.StatusInternalServerError, `"database":{"error":"the probe failed; see the log for the reason"}`))
	g.Expect(asking(address, "/healthz")().Body).NotTo(gomega.ContainSubstring(canary))
	g.Expect(asking(address, "/readyz")()).To(says(http.StatusOK), "probes do not affect readiness")
}
