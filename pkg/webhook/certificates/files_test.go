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

// folder is a mounted Secret: a certificate, its key, and its CA.
type folder string

func (f folder) path(name string) string { return filepath.Join(string(f), name) }

// fill puts a new certificate into the files.
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

func TestFilesAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c, f := gomega.NewWithT(t), &cluster{}, folder(t.TempDir())
		old := f.fill(t)
		source := f.source(c)
		g.Expect(opened(t, source)).To(gomega.Equal(old))
		t.Cleanup(kept(t, source, c.publish))

		time.Sleep(time.Hour)
		synctest.Wait()
		g.Expect(c.told()).To(gomega.BeEmpty(), "nothing has changed")

		before := leaf(source)
		fresh := f.fill(t)
		time.Sleep(filePollInterval)
		synctest.Wait()
		g.Expect(c.told()).To(gomega.HaveExactElements(both(old, fresh)), "first the trust in both")
		g.Expect(leaf(source).Equal(before)).To(gomega.BeTrue())
		time.Sleep(propagationDelay)
		synctest.Wait()
		g.Expect(trusts(source, fresh, hosts[0])).To(gomega.Succeed())
		g.Expect(c.told()).To(gomega.HaveLen(1))
		time.Sleep(propagationDelay)
		synctest.Wait()
		g.Expect(c.told()).To(gomega.HaveExactElements(both(old, fresh), gomega.Equal(fresh)), "then no trust in the old one")
	})
}

func TestAnotherCertificateOfTheSameCA(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c, f := gomega.NewWithT(t), &cluster{}, folder(t.TempDir())
		f.fill(t)
		source := &Files{Certificate: f.path("tls.crt"), Key: f.path("tls.key"), CAData: []byte("all of them"), Logger: c.logger()}
		opened(t, source)
		t.Cleanup(kept(t, source, c.publish))
		before := leaf(source)
		f.fill(t)
		time.Sleep(filePollInterval)
		synctest.Wait()
		g.Expect(leaf(source).Equal(before)).To(gomega.BeFalse(), "it is served at once")
		g.Expect(c.told()).To(gomega.BeEmpty())
	})
}

func TestFilesThatAreBrokenForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c, f := gomega.NewWithT(t), &cluster{}, folder(t.TempDir())
		f.fill(t)
		source := f.source(c)
		opened(t, source)
		t.Cleanup(kept(t, source, c.publish))
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

func TestFilesThatAreNotThere(t *testing.T) {
	_, err := folder("/no/such/folder").source(&cluster{}).Open(t.Context())
	gomega.NewWithT(t).Expect(err).To(gomega.MatchError(gomega.ContainSubstring("the certificate of the admission server: open /no/such/folder/")))
}

// both matches a bundle of two.
func both(one, other []byte) any {
	return gomega.WithTransform(func(bundle []byte) bool {
		return bytes.Contains(bundle, one) && bytes.Contains(bundle, other)
	}, gomega.BeTrue())
}
