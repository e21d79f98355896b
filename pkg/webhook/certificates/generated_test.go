package certificates

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onsi/gomega"
)

var hosts = []string{"host.example", "127.0.0.1"}

func TestAGeneratedCertificateIsTrustedByItsBundle(t *testing.T) {
	g := gomega.NewWithT(t)
	source := NewGenerated(Options{Names: hosts})
	bundle := opened(t, source)
	for _, name := range hosts {
		g.Expect(trusts(source, bundle, name)).To(gomega.Succeed(), name)
	}
	g.Expect(trusts(source, bundle, "another.example")).NotTo(gomega.Succeed())
	g.Expect(leaf(source).NotAfter).To(gomega.BeTemporally(">", time.Now().Add(2*DefaultRotation)))
	g.Expect(string(bundle)).NotTo(gomega.ContainSubstring("KEY"))
}

func TestACertificateWithoutAName(t *testing.T) {
	_, err := NewGenerated(Options{}).Open(t.Context())
	gomega.NewWithT(t).Expect(err).To(gomega.MatchError(gomega.ContainSubstring("needs a host name")))
}

// An API server that hears of every bundle one rotation late refuses nothing, and
// neither does one that is up to date.
func TestRotationsAreAnnouncedOneAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c := gomega.NewWithT(t), &cluster{}
		source := NewGenerated(Options{Names: hosts, Rotation: 24 * time.Hour, Logger: c.logger()})
		late := opened(t, source)
		stop := kept(t, source, c.publish)
		for rotation := 1; rotation <= 5; rotation++ {
			before := leaf(source)
			time.Sleep(24 * time.Hour)
			synctest.Wait()
			g.Expect(c.told()).To(gomega.HaveLen(rotation))
			newest := c.told()[rotation-1]
			g.Expect(leaf(source).Equal(before)).To(gomega.BeFalse())
			g.Expect(trusts(source, late, hosts[0])).To(gomega.Succeed(), "the bundle of before")
			g.Expect(trusts(source, newest, hosts[0])).To(gomega.Succeed(), "the bundle of now")
			late = newest
		}
		stop()
	})
}

func TestACertificateIsServedOnlyAfterItsBundleWasAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c := gomega.NewWithT(t), &cluster{refuse: errors.New("no cluster")}
		source := NewGenerated(Options{Names: hosts, Rotation: 24 * time.Hour, Logger: c.logger()})
		opened(t, source)
		before := leaf(source)
		stop := kept(t, source, c.publish)
		time.Sleep(30 * time.Hour)
		synctest.Wait()
		g.Expect(leaf(source).Equal(before)).To(gomega.BeTrue())
		g.Expect(c.logged()).To(gomega.ContainElement(gomega.ContainSubstring("no cluster")))
		c.refuses(nil)
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		g.Expect(leaf(source).Equal(before)).To(gomega.BeFalse())
		stop()
	})
}
