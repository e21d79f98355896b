package certificates

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onsi/gomega"
)

// folder is a mounted Secret with a certificate, its key, and its CA.
type folder string

func (f folder) path(name string) string { return filepath.Join(string(f), name) }

// fill writes a new certificate into the files.
func (f folder) fill(t *testing.T) (ca []byte) {
	t.Helper()
	pair, err := Generate(hosts, minLifetime)
	if err != nil {
		t.Fatal(err)
	}
	ca, err = pair.caPEM()
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"tls.crt": pair.Chain, "tls.key": pair.Key, "ca.crt": ca} {
		if err := os.WriteFile(f.path(name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return ca
}

func (f folder) source(c *cluster) *Files {
	return &Files{Certificate: f.path("tls.crt"), Key: f.path("tls.key"), CA: f.path("ca.crt"), Logger: c.logger()}
}

func TestChangedFilesAreReloaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c, f := gomega.NewWithT(t), &cluster{}, folder(t.TempDir())
		old := f.fill(t)
		source := f.source(c)
		g.Expect(openSource(t, source)).To(gomega.Equal(old))
		t.Cleanup(runSource(t, source, c.publish))

		time.Sleep(time.Hour)
		synctest.Wait()
		g.Expect(c.published()).To(gomega.BeEmpty(), "nothing has changed")

		before := leaf(source)
		fresh := f.fill(t)
		time.Sleep(filePollInterval)
		synctest.Wait()
		g.Expect(c.published()).To(gomega.HaveExactElements(both(old, fresh)), "first both CAs are trusted")
		g.Expect(leaf(source).Equal(before)).To(gomega.BeTrue())
		time.Sleep(propagationDelay)
		synctest.Wait()
		g.Expect(trusts(source, fresh, hosts[0])).To(gomega.Succeed())
		g.Expect(c.published()).To(gomega.HaveLen(1))
		time.Sleep(propagationDelay)
		synctest.Wait()
		g.Expect(c.published()).To(gomega.HaveExactElements(both(old, fresh), gomega.Equal(fresh)), "then the old CA is not trusted anymore")
	})
}

func TestCertificateOfTheSameCAIsReplacedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c, f := gomega.NewWithT(t), &cluster{}, folder(t.TempDir())
		f.fill(t)
		source := &Files{Certificate: f.path("tls.crt"), Key: f.path("tls.key"), CAData: []byte("all CAs"), Logger: c.logger()}
		openSource(t, source)
		t.Cleanup(runSource(t, source, c.publish))
		before := leaf(source)
		f.fill(t)
		time.Sleep(filePollInterval)
		synctest.Wait()
		g.Expect(leaf(source).Equal(before)).To(gomega.BeFalse(), "it is served at once")
		g.Expect(c.published()).To(gomega.BeEmpty())
	})
}

func TestInvalidFilesAreRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c, f := gomega.NewWithT(t), &cluster{}, folder(t.TempDir())
		f.fill(t)
		source := f.source(c)
		openSource(t, source)
		t.Cleanup(runSource(t, source, c.publish))
		before := leaf(source)
		g.Expect(os.WriteFile(f.path("tls.key"), []byte("half a ke"), 0o600)).To(gomega.Succeed())
		time.Sleep(filePollInterval)
		synctest.Wait()
		g.Expect(leaf(source).Equal(before)).To(gomega.BeTrue())
		g.Expect(c.logged()).To(gomega.ContainElement(gomega.ContainSubstring("the old one is served")))
		f.fill(t)
		time.Sleep(filePollInterval + propagationDelay)
		synctest.Wait()
		g.Expect(leaf(source).Equal(before)).To(gomega.BeFalse())
	})
}

func TestMissingFilesAreErrors(t *testing.T) {
	_, err := folder("/no/such/folder").source(&cluster{}).Open(t.Context())
	gomega.NewWithT(t).Expect(err).To(gomega.MatchError(gomega.ContainSubstring("the certificate of the admission server: open /no/such/folder/")))
}

// both matches a bundle that contains two bundles.
func both(one, other []byte) any {
	return gomega.WithTransform(func(bundle []byte) bool {
		return bytes.Contains(bundle, one) && bytes.Contains(bundle, other)
	}, gomega.BeTrue())
}
