package certificates

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onsi/gomega"
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
