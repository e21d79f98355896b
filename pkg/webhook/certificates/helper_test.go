package certificates

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/onsi/gomega"
)

// cluster records the bundles that a source publishes.
type cluster struct {
	mu      sync.Mutex
	bundles [][]byte
	reject  error
	log     []string
}

func (c *cluster) publish(_ context.Context, bundle []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reject != nil {
		return c.reject
	}
	c.bundles = append(c.bundles, bundle)
	return nil
}

func (c *cluster) published() [][]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([][]byte{}, c.bundles...)
}

func (c *cluster) rejectWith(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reject = err
}

func (c *cluster) logger() logr.Logger {
	return funcr.New(func(_, text string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.log = append(c.log, text)
	}, funcr.Options{})
}

func (c *cluster) logged() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string{}, c.log...)
}

// trusts returns an error if a client with the bundle does not trust the certificate of the source.
func trusts(source Source, bundle []byte, name string) error {
	served := leaf(source)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	_, err := served.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: time.Now()})
	return err
}

func leaf(source Source) *x509.Certificate {
	pair, err := source.GetCertificate(&tls.ClientHelloInfo{})
	if err != nil || pair == nil {
		return &x509.Certificate{}
	}
	return pair.Leaf
}

// openSource opens a source and returns its first bundle.
func openSource(t *testing.T, source Source) []byte {
	t.Helper()
	bundle, err := source.Open(t.Context())
	gomega.NewWithT(t).Expect(err).NotTo(gomega.HaveOccurred())
	return bundle
}

// runSource runs a source until the returned function is called.
func runSource(t *testing.T, source Source, publish Publish) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { source.Run(ctx, publish) })
	return func() { cancel(); running.Wait() }
}
