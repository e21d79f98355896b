package certificates

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

var hosts = []string{"host.example", "127.0.0.1"}

func TestGeneratedCertificateIsTrustedByItsBundle(t *testing.T) {
	g := gomega.NewWithT(t)
	source := NewGenerated(Options{Names: hosts})
	bundle := openSource(t, source)
	for _, name := range hosts {
		g.Expect(trusts(source, bundle, name)).To(gomega.Succeed(), name)
	}
	g.Expect(trusts(source, bundle, "another.example")).NotTo(gomega.Succeed())
	g.Expect(leaf(source).NotAfter).To(gomega.BeTemporally(">", time.Now().Add(2*DefaultRotation)))
	g.Expect(string(bundle)).NotTo(gomega.ContainSubstring("KEY"))
}

func TestGeneratedCertificateNeedsAName(t *testing.T) {
	_, err := NewGenerated(Options{}).Open(t.Context())
	gomega.NewWithT(t).Expect(err).To(gomega.MatchError(gomega.ContainSubstring("needs at least one host name")))
}

// An API server that gets every bundle one rotation late still trusts the served
// certificate, and so does one that is up to date.
func TestRotationsAreAnnouncedInAdvance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c := gomega.NewWithT(t), &cluster{}
		source := NewGenerated(Options{Names: hosts, Rotation: 24 * time.Hour, Logger: c.logger()})
		late := openSource(t, source)
		stop := runSource(t, source, c.publish)
		for rotation := 1; rotation <= 5; rotation++ {
			before := leaf(source)
			time.Sleep(24 * time.Hour)
			synctest.Wait()
			g.Expect(c.published()).To(gomega.HaveLen(rotation))
			newest := c.published()[rotation-1]
			g.Expect(leaf(source).Equal(before)).To(gomega.BeFalse())
			g.Expect(trusts(source, late, hosts[0])).To(gomega.Succeed(), "the previous bundle")
			g.Expect(trusts(source, newest, hosts[0])).To(gomega.Succeed(), "the current bundle")
			late = newest
		}
		stop()
	})
}

// The time of the announcement begins when the clients know the bundle, which can take long.
func TestACertificateIsAnnouncedForAWholeRotation(t *testing.T) {
	for name, store := range map[string]Store{"in memory": nil, "in a Secret": NewSecret(fake.NewClientBuilder().Build(), "ns", "certs")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, c := gomega.NewWithT(t), &cluster{}
				source := NewGenerated(Options{Names: hosts, Rotation: time.Hour, Store: store, Logger: c.logger()})
				openSource(t, source)
				var slow sync.Once
				t.Cleanup(runSource(t, source, func(ctx context.Context, bundle []byte) error {
					slow.Do(func() { time.Sleep(2 * time.Hour) })
					return c.publish(ctx, bundle)
				}))
				time.Sleep(3*time.Hour + time.Minute) // the first rotation has just ended
				synctest.Wait()
				g.Expect(c.published()).To(gomega.HaveLen(1))
				served := leaf(source)
				time.Sleep(50 * time.Minute)
				synctest.Wait()
				g.Expect(leaf(source).Equal(served)).To(gomega.BeTrue())
				time.Sleep(20 * time.Minute)
				synctest.Wait()
				g.Expect(leaf(source).Equal(served)).To(gomega.BeFalse())
			})
		})
	}
}

func TestCertificateIsServedOnlyAfterItsBundleIsPublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c := gomega.NewWithT(t), &cluster{reject: errors.New("no cluster")}
		source := NewGenerated(Options{Names: hosts, Rotation: 24 * time.Hour, Logger: c.logger()})
		openSource(t, source)
		before := leaf(source)
		stop := runSource(t, source, c.publish)
		time.Sleep(30 * time.Hour)
		synctest.Wait()
		g.Expect(leaf(source).Equal(before)).To(gomega.BeTrue())
		g.Expect(c.logged()).To(gomega.ContainElement(gomega.ContainSubstring("no cluster")))
		c.rejectWith(nil)
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		g.Expect(leaf(source).Equal(before)).To(gomega.BeFalse())
		stop()
	})
}
