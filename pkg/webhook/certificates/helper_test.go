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

// cluster is who is told about bundles, and holds a source to what it was told.
type cluster struct {
	mu      sync.Mutex
	bundles [][]byte
	refuse  error
	log     []string
}

func (c *cluster) publish(_ context.Context, bundle []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refuse != nil {
		return c.refuse
	}
	c.bundles = append(c.bundles, bundle)
	return nil
}

func (c *cluster) told() [][]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([][]byte{}, c.bundles...)
}

func (c *cluster) refuses(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refuse = err
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

// trusts tells why a client with the bundle refuses what the source serves.
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

// opened is a source with its first bundle.
func opened(t *testing.T, source Source) []byte {
	t.Helper()
	bundle, err := source.Open(t.Context())
	gomega.NewWithT(t).Expect(err).NotTo(gomega.HaveOccurred())
	return bundle
}

// kept lets a source work until the function that is returned.
func kept(t *testing.T, source Source, publish Publish) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var working sync.WaitGroup
	working.Go(func() { source.Run(ctx, publish) })
	return func() { cancel(); working.Wait() }
}
