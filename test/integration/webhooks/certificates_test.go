package webhooks

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"golang.org/x/time/rate"

	"github.com/kopf-go/kopf/pkg/webhook/certificates"
	"github.com/kopf-go/kopf/pkg/webhook/configurations"
	"github.com/kopf-go/kopf/pkg/webhook/servers"
	"github.com/kopf-go/kopf/test/testenv"
)

func bundleOf(t *testing.T) []byte {
	t.Helper()
	pair, err := certificates.Generate([]string{"localhost"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return pair.Chain
}

// The load during rotations.
const (
	callsASecond = 200
	duration     = 20 * time.Second
	rotation     = 2 * time.Second
	callers      = 20
)

func TestNoCallFailsDuringRotations(t *testing.T) {
	g, namespace := gomega.NewWithT(t), cluster.Namespace(t)
	server := local(t)
	server.Rotation = rotation
	o := run(t, cluster.Config(), server, managed("rotating.kopf.dev"), configurations.Hook{ID: "a", Validating: true, Resource: configMaps})
	g.Eventually(func() error { return try(t.Context(), namespace, "denied") }).ShouldNot(gomega.Succeed())

	ctx, stop := context.WithTimeout(t.Context(), duration)
	defer stop()
	served := handshakes(ctx, t, *locate(t, "rotating.kopf.dev").URL)
	before := o.reviews.Load()
	calls, failures := load(ctx, t, namespace)
	t.Logf("%d calls, %d reviews, %d certificates", calls, o.reviews.Load()-before, served())
	g.Expect(failures).To(gomega.BeEmpty())
	g.Expect(o.reviews.Load()-before).To(gomega.BeNumerically(">=", calls), "calls were admitted without a review")
	g.Expect(served()).To(gomega.BeNumerically(">=", int(duration/rotation)-2), "certificates")
	g.Expect(o.logged()).NotTo(gomega.ContainElement(gomega.ContainSubstring("not renewed")))
}

// load calls the API server at the rate until the context is done.
func load(ctx context.Context, t *testing.T, namespace string) (int64, []error) {
	t.Helper()
	limiter := rate.NewLimiter(callsASecond, callers)
	var calls atomic.Int64
	var mu sync.Mutex
	var failures []error
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for limiter.Wait(ctx) == nil {
				err := try(t.Context(), namespace, "fine")
				calls.Add(1)
				if err != nil {
					mu.Lock()
					failures = append(failures, err)
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	return calls.Load(), failures
}

// handshakes connects to the server again and again, with the current bundle of the
// cluster, as an API server does that has just started. It counts the certificates.
func handshakes(ctx context.Context, t *testing.T, address string) (count func() int) {
	t.Helper()
	seen := map[string]bool{}
	limiter := rate.NewLimiter(10, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for limiter.Wait(ctx) == nil {
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(locate(t, "rotating.kopf.dev").CABundle)
			connection, err := tls.Dial("tcp", hostOf(address), &tls.Config{RootCAs: roots})
			if err != nil {
				t.Error("a new connection: ", err)
				continue
			}
			seen[string(connection.ConnectionState().PeerCertificates[0].Raw)] = true
			_ = connection.Close()
		}
	}()
	return func() int { <-done; return len(seen) }
}

func TestReplicasShareOneCertificateInASecret(t *testing.T) {
	g, namespace := gomega.NewWithT(t), cluster.Namespace(t)
	first, second := local(t), local(t)
	first.Secret, second.Secret = namespace+"/certs", namespace+"/certs"
	run(t, cluster.Config(), first, managed("shared.kopf.dev"), configurations.Hook{ID: "a", Validating: true, Resource: configMaps, IgnoreFailures: true})
	g.Eventually(names(t, "shared.kopf.dev")).Should(gomega.HaveLen(1))
	run(t, cluster.Config(), second, configurations.Options{Name: "standby.kopf.dev"})
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(locate(t, "shared.kopf.dev").CABundle)
	for _, server := range []servers.Server{first, second} {
		g.Eventually(func() error {
			connection, err := tls.Dial("tcp", addressOf(server), &tls.Config{RootCAs: roots, ServerName: "localhost"})
			if err == nil {
				_ = connection.Close()
			}
			return err
		}).Should(gomega.Succeed())
	}
}

// A restarted operator with a certificate in files finds what it has written.
func TestRestartWithTheSameCertificateWritesNothing(t *testing.T) {
	g, config, dir := gomega.NewWithT(t), cluster.Config(), t.TempDir()
	requests := testenv.Count(config)
	pair, err := certificates.Generate([]string{"localhost"}, time.Hour)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	server := local(t)
	server.CertFile, server.KeyFile, server.CAFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), filepath.Join(dir, "tls.crt")
	g.Expect(os.WriteFile(server.CertFile, pair.Chain, 0o600)).To(gomega.Succeed())
	g.Expect(os.WriteFile(server.KeyFile, pair.Key, 0o600)).To(gomega.Succeed())
	hooks := []configurations.Hook{{ID: "a", Validating: true, Resource: configMaps}, {ID: "b", Resource: configMaps}}
	o := run(t, config, server, managed("same.kopf.dev"), hooks...)
	g.Eventually(names(t, "same.kopf.dev")).Should(gomega.HaveLen(2))
	o.kill()
	requests.Reset()
	run(t, config, server, managed("same.kopf.dev"), hooks...)
	g.Eventually(func() int { return reads(requests.Snapshot()) }).Should(gomega.Equal(2))
	g.Consistently(func() int { return creations(requests.Snapshot()) + changes(requests.Snapshot()) }).Should(gomega.BeZero(), "%s", requests)
}
