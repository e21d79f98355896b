package certificates

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestReplicasShareTheirCertificates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, api := gomega.NewWithT(t), fake.NewClientBuilder().Build()
		var sources []*Generated
		var clusters []*cluster
		for range 3 {
			c := &cluster{}
			source := NewGenerated(Options{Names: hosts, Rotation: time.Hour, Store: NewSecret(api, "ns", "certs"), Logger: c.logger()})
			sources, clusters = append(sources, source), append(clusters, c)
			c.bundles = [][]byte{openSource(t, source)}
			t.Cleanup(runSource(t, source, c.publish))
		}
		for range 3 {
			before := leaf(sources[0])
			time.Sleep(time.Hour + 2*storePollInterval)
			synctest.Wait()
			g.Expect(leaf(sources[0]).Equal(before)).To(gomega.BeFalse())
			for i, source := range sources {
				g.Expect(leaf(source).Equal(leaf(sources[0]))).To(gomega.BeTrue(), "replica %d", i)
				bundles := clusters[i].published()
				g.Expect(trusts(source, bundles[len(bundles)-1], hosts[0])).To(gomega.Succeed())
			}
		}
	})
}

// What a standby publishes reaches no API server. If it rotated the certificates while there is no
// leader, their clients would not trust the second one.
func TestOnlyALeaderRotatesTheCertificatesOfTheSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, api, leads := gomega.NewWithT(t), fake.NewClientBuilder().Build(), [2]atomic.Bool{}
		leads[0].Store(true)
		leader, standby := &cluster{}, &cluster{}
		var sources []*Generated
		for i, c := range []*cluster{leader, standby} {
			source := NewGenerated(Options{Names: hosts, Rotation: time.Hour, Store: NewSecret(api, "ns", "certs"), IsLeader: leads[i].Load, Logger: c.logger()})
			sources = append(sources, source)
			c.bundles = [][]byte{openSource(t, source)}
			t.Cleanup(runSource(t, source, c.publish))
		}
		rotates := func() bool {
			before := leaf(sources[0])
			time.Sleep(50 * time.Minute)
			synctest.Wait()
			g.Expect(leaf(sources[1]).Equal(leaf(sources[0]))).To(gomega.BeTrue())
			return !leaf(sources[0]).Equal(before)
		}
		g.Expect(rotates()).To(gomega.BeFalse())
		g.Expect(rotates()).To(gomega.BeTrue())
		announced := leader.published()[1]
		leads[0].Store(false)
		for range 3 {
			g.Expect(rotates()).To(gomega.BeFalse())
			g.Expect(trusts(sources[0], announced, hosts[0])).To(gomega.Succeed())
		}
		leads[1].Store(true)
		g.Expect(rotates()).To(gomega.BeTrue())
		g.Expect(trusts(sources[0], announced, hosts[0])).To(gomega.Succeed())
		g.Expect(append(leader.logged(), standby.logged()...)).To(gomega.BeEmpty())
	})
}

// A leader that loses its lease while it publishes does not know whether the bundle was written.
func TestALostLeaseEndsARotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c, leads := gomega.NewWithT(t), &cluster{}, atomic.Bool{}
		leads.Store(true)
		store := NewSecret(fake.NewClientBuilder().Build(), "ns", "certs")
		source := NewGenerated(Options{Names: hosts, Rotation: time.Hour, Store: store, IsLeader: leads.Load, Logger: c.logger()})
		openSource(t, source)
		before := leaf(source)
		t.Cleanup(runSource(t, source, func(ctx context.Context, bundle []byte) error {
			leads.Store(false)
			return c.publish(ctx, bundle)
		}))
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		g.Expect(c.published()).To(gomega.HaveLen(1))
		g.Expect(leaf(source).Equal(before)).To(gomega.BeTrue())
	})
}

func TestRestartKeepsTheCertificatesOfTheSecret(t *testing.T) {
	g, api := gomega.NewWithT(t), fake.NewClientBuilder().Build()
	first := NewGenerated(Options{Names: hosts, Store: NewSecret(api, "ns", "certs")})
	bundle := openSource(t, first)
	second := NewGenerated(Options{Names: hosts, Store: NewSecret(api, "ns", "certs")})
	g.Expect(openSource(t, second)).To(gomega.Equal(bundle))
	g.Expect(leaf(second).Equal(leaf(first))).To(gomega.BeTrue())

	// A new name needs a new certificate; the old CA stays in the bundle.
	third := NewGenerated(Options{Names: append(hosts, "new.example"), Store: NewSecret(api, "ns", "certs")})
	renewed := openSource(t, third)
	g.Expect(trusts(third, renewed, "new.example")).To(gomega.Succeed())
	g.Expect(trusts(first, renewed, hosts[0])).To(gomega.Succeed())
}

func TestSecretThatIsDeletedOrInvalidIsReplaced(t *testing.T) {
	tests := map[string]func(g gomega.Gomega, api client.Client, secret *corev1.Secret){
		"deleted": func(g gomega.Gomega, api client.Client, secret *corev1.Secret) {
			g.Expect(api.Delete(context.Background(), secret)).To(gomega.Succeed())
		},
		"invalid": func(g gomega.Gomega, api client.Client, secret *corev1.Secret) {
			secret.Data[keyNextKey] = []byte("no key")
			g.Expect(api.Update(context.Background(), secret)).To(gomega.Succeed())
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, c, api := gomega.NewWithT(t), &cluster{}, fake.NewClientBuilder().Build()
				source := NewGenerated(Options{Names: hosts, Store: NewSecret(api, "ns", "certs"), Logger: c.logger()})
				openSource(t, source)
				t.Cleanup(runSource(t, source, c.publish))
				secret := &corev1.Secret{}
				g.Expect(api.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "certs"}, secret)).To(gomega.Succeed())
				change(g, api, secret)
				time.Sleep(2 * storePollInterval)
				synctest.Wait()
				g.Expect(c.published()).To(gomega.HaveLen(1), "%v", c.logged())
				g.Expect(trusts(source, c.published()[0], hosts[0])).To(gomega.Succeed())
			})
		})
	}
}

func TestMissingPermissionIsExplained(t *testing.T) {
	g := gomega.NewWithT(t)
	api := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return apierrors.NewForbidden(corev1.Resource("secrets"), "certs", nil)
		},
	}).Build()
	_, err := NewGenerated(Options{Names: hosts, Store: NewSecret(api, "ns", "certs")}).Open(t.Context())
	g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("in the Secret ns/certs, but this replica is not allowed to read it. Allow the service account to get, create and update it")))
}
