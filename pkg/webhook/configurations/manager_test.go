package configurations

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/settings"
)

var managed = Options{Name: "auto.kopf.dev"}

func (c *cluster) validating(g gomega.Gomega) *admissionregistrationv1.ValidatingWebhookConfiguration {
	found := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	g.Expect(c.Get(context.Background(), types.NamespacedName{Name: managed.Name}, found)).To(gomega.Succeed())
	return found
}

func TestNothingIsWrittenWithoutAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c := gomega.NewWithT(t), newCluster()
		m := NewManager(c, managed, c.logger())
		lead(t, m)
		m.SetHooks([]Hook{hook("a"), hook("b", func(h *Hook) { h.Validating = false })})
		synctest.Wait()
		g.Expect(c.written()).To(gomega.BeZero(), "the server is not ready")
		g.Expect(m.Publish(t.Context(), at("https://h/"))).To(gomega.Succeed())
		g.Expect(c.written()).To(gomega.Equal(2))
		g.Expect(m.Publish(t.Context(), at("https://h/"))).To(gomega.Succeed())
		m.SetHooks([]Hook{hook("a"), hook("b", func(h *Hook) { h.Validating = false })})
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		g.Expect(c.written()).To(gomega.Equal(2))
		g.Expect(m.Publish(t.Context(), at("https://other/"))).To(gomega.Succeed())
		g.Expect(c.written()).To(gomega.Equal(4))
	})
}

// The server can be ready before the resources of the cluster are known. What an earlier
// process has left for the time in between must not be removed then.
func TestNothingIsWrittenBeforeTheHooksAreKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c := gomega.NewWithT(t), newCluster()
		earlier := NewManager(c, managed, c.logger())
		stop := lead(t, earlier)
		earlier.SetHooks([]Hook{hook("a", func(h *Hook) { h.Persistent = true })})
		g.Expect(earlier.Publish(t.Context(), at("https://h/"))).To(gomega.Succeed())
		stop()
		g.Expect(earlier.Cleanup(t.Context())).To(gomega.Succeed())

		m, written := NewManager(c, managed, c.logger()), c.written()
		lead(t, m)
		published := make(chan error, 1)
		go func() { published <- m.Publish(t.Context(), at("https://h/")) }()
		time.Sleep(time.Hour)
		g.Expect(c.validating(g).Webhooks).To(gomega.HaveLen(1))
		g.Expect(c.written()).To(gomega.Equal(written))
		g.Expect(published).NotTo(gomega.Receive())
		m.SetHooks(nil)
		g.Expect(<-published).To(gomega.Succeed())
		g.Expect(c.validating(g).Webhooks).To(gomega.BeEmpty())
	})
}

func TestDeletedConfigurationIsCreatedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c := gomega.NewWithT(t), newCluster()
		m := NewManager(c, managed, c.logger())
		lead(t, m)
		m.SetHooks([]Hook{hook("a")})
		g.Expect(m.Publish(t.Context(), at("https://h/"))).To(gomega.Succeed())
		g.Expect(c.Delete(t.Context(), c.validating(g))).To(gomega.Succeed())
		time.Sleep(checkInterval + time.Second)
		synctest.Wait()
		g.Expect(c.validating(g).Webhooks).To(gomega.HaveLen(1))
	})
}

func TestPublishWaitsForTheClusterInTheLeaderOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c := gomega.NewWithT(t), newCluster()
		m := NewManager(c, managed, c.logger())
		m.SetHooks([]Hook{hook("a")})
		g.Expect(m.Publish(t.Context(), at("https://h/"))).To(gomega.Succeed())
		g.Expect(c.written()).To(gomega.BeZero(), "only the leader writes")

		c.rejectWith(errors.New("no cluster"))
		stop := lead(t, m)
		synctest.Wait()
		var published atomic.Bool
		go func() { published.Store(m.Publish(t.Context(), at("https://other/")) == nil) }()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		g.Expect(published.Load()).To(gomega.BeFalse())
		g.Expect(c.logged()).To(gomega.HaveExactElements(gomega.ContainSubstring("does not know the address of the admission handlers yet")), "it is logged once")
		c.rejectWith(nil)
		time.Sleep(maxRetryDelay)
		synctest.Wait()
		g.Expect(published.Load()).To(gomega.BeTrue())

		c.rejectWith(errors.New("no cluster"))
		go func() { published.Store(m.Publish(t.Context(), at("https://third/")) != nil) }()
		synctest.Wait()
		g.Expect(c.countLogged("does not know the address of the admission handlers yet")).To(gomega.Equal(2), "the second outage is logged again")
		stop()
		synctest.Wait()
		g.Expect(published.Load()).To(gomega.BeFalse(), "a replica that does not lead anymore does not wait")
	})
}

// A server asks before it replaces a certificate that replicas share.
func TestTheEndpointKnowsTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c := gomega.NewWithT(t), newCluster()
		m := NewManager(c, managed, c.logger())
		endpoint := m.Endpoint(http.NotFoundHandler(), settings.AdmissionEndpoint{})
		g.Expect(endpoint.IsLeader()).To(gomega.BeFalse())
		stop := lead(t, m)
		g.Expect(endpoint.IsLeader()).To(gomega.BeTrue())
		stop()
		g.Expect(endpoint.IsLeader()).To(gomega.BeFalse())
	})
}

func TestCleanup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c := gomega.NewWithT(t), newCluster()
		m := NewManager(c, managed, c.logger())
		lead(t, m)
		m.SetHooks([]Hook{hook("a"), hook("b", func(h *Hook) { h.Persistent = true })})
		g.Expect(m.Publish(t.Context(), at("https://h/"))).To(gomega.Succeed())
		g.Expect(m.Cleanup(t.Context())).To(gomega.Succeed())
		g.Expect(c.validating(g).Webhooks).To(gomega.HaveExactElements(gomega.HaveField("Name", "b.auto.kopf.dev")))
		m.SetHooks([]Hook{hook("c")})
		g.Expect(m.Publish(t.Context(), at("https://other/"))).To(gomega.Succeed())
		g.Expect(c.validating(g).Webhooks).To(gomega.HaveLen(1), "nothing is written after the cleanup")
	})
}

// What stays in the cluster refuses requests of others.
func TestCleanupIsTriedAgain(t *testing.T) {
	hooks := schema.GroupResource{Resource: "validatingwebhookconfigurations"}
	for name, test := range map[string]struct {
		fails error
		again bool
	}{
		"the API server is busy":          {apierrors.NewTimeoutError("etcd does not answer", 1), true},
		"another client writes meanwhile": {apierrors.NewConflict(hooks, managed.Name, errors.New("modified")), true},
		"it is not allowed":               {apierrors.NewForbidden(hooks, managed.Name, errors.New("no role")), false},
		"there is no API server anymore":  {errors.New("connection refused"), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, c := gomega.NewWithT(t), newCluster()
				m := NewManager(c, managed, c.logger())
				lead(t, m)
				m.SetHooks([]Hook{hook("a")})
				g.Expect(m.Publish(t.Context(), at("https://h/"))).To(gomega.Succeed())
				c.rejectWith(test.fails)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				time.AfterFunc(time.Second, func() { c.rejectWith(nil) })
				err := m.Cleanup(ctx)
				g.Expect(err == nil).To(gomega.Equal(test.again), fmt.Sprint(err))
				g.Expect(len(c.validating(g).Webhooks) == 0).To(gomega.Equal(test.again))
			})
		})
	}
}

func TestCleanupWritesNothingIfNothingWasWritten(t *testing.T) {
	g, c := gomega.NewWithT(t), newCluster()
	m := NewManager(c, managed, c.logger())
	m.SetHooks([]Hook{hook("a")})
	g.Expect(m.Cleanup(t.Context())).To(gomega.Succeed())
	g.Expect(c.written()).To(gomega.BeZero())
}

func TestCABundlesOfCertManagerAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c := gomega.NewWithT(t), newCluster(&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: managed.Name, Annotations: map[string]string{"cert-manager.io/inject-ca-from": "ns/name"}},
			Webhooks:   []admissionregistrationv1.ValidatingWebhook{{Name: "old", ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: []byte("injected")}}},
		})
		m := NewManager(c, managed, c.logger())
		lead(t, m)
		m.SetHooks([]Hook{hook("a")})
		for range 2 {
			g.Expect(m.Publish(t.Context(), at("https://h/"))).To(gomega.Succeed())
			g.Expect(c.validating(g).Webhooks).To(gomega.HaveExactElements(
				gomega.HaveField("ClientConfig.CABundle", gomega.Equal([]byte("injected"))),
			))
			g.Expect(c.written()).To(gomega.Equal(1))
		}
	})
}

func TestUnmanagedConfigurationsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c := gomega.NewWithT(t), newCluster()
		m := NewManager(c, Options{}, c.logger())
		lead(t, m)
		m.SetHooks([]Hook{hook("a")})
		for range 2 {
			g.Expect(m.Publish(t.Context(), at("https://h/"))).To(gomega.Succeed())
		}
		g.Expect(c.written()).To(gomega.BeZero())
		g.Expect(c.logged()).To(gomega.HaveExactElements(gomega.ContainSubstring("kind: ValidatingWebhookConfiguration")))
	})
}

func TestInsecureServerIsNotPublished(t *testing.T) {
	g, c := gomega.NewWithT(t), newCluster()
	m := NewManager(c, managed, c.logger())
	m.SetHooks([]Hook{hook("a")})
	g.Expect(m.Publish(t.Context(), at("http://h/"))).To(gomega.Succeed())
	g.Expect(c.logged()).To(gomega.HaveExactElements(gomega.ContainSubstring("with HTTPS only")))
	g.Expect(m.Cleanup(t.Context())).To(gomega.Succeed())
	g.Expect(c.written()).To(gomega.BeZero())
}
