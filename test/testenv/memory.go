package testenv

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/kopf-go/kopf/pkg/kopftest"
)

// Server is the environment variable that chooses the API server of the tests: InMemory, or
// by default the real one.
const Server = "KOPF_TEST_SERVER"

// InMemory is the API server of the test kit. It listens on no port, so that processes cannot
// reach it: test/memory.txt has the tests that need more.
const InMemory = "memory"

// StartInMemory runs the API server of the test kit for one test, also in a bubble of virtual time. Nothing has to be
// stopped.
func StartInMemory(t testing.TB, options Options) *Cluster {
	t.Helper()
	cluster, err := openInMemory(options)
	if err != nil {
		t.Fatal("starting the API server in memory: ", err)
	}
	return cluster
}

// openInMemory starts the API server in memory.
func openInMemory(options Options) (*Cluster, error) {
	failed := &failure{}
	with := []kopftest.APIServerOption{kopftest.Webhooks(options.Webhooks)}
	if options.ShardedLists {
		with = append(with, kopftest.ShardedLists())
	}
	config := kopftest.NewAPIServer(failed, with...).Config()
	if failed.err != nil {
		return nil, failed.err
	}
	address, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	config.Transport = byHost{config.Transport, address.Host}
	cluster := &Cluster{config: config, shardedLists: options.ShardedLists}
	err = cluster.prepare(options.CRDs)
	return cluster, err
}

// failure is a test that keeps why it has failed: TestMain has no test.
type failure struct {
	testing.TB
	err error
}

// Helper does nothing.
func (f *failure) Helper() {}

// Fatal keeps the error. The caller must check it.
func (f *failure) Fatal(args ...any) { f.err = errors.New(fmt.Sprint(args...)) }

// byHost reaches the server in memory by its name, and others over the network.
type byHost struct {
	inMemory http.RoundTripper
	host     string
}

// RoundTrip sends a request.
func (b byHost) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host == b.host {
		return b.inMemory.RoundTrip(r)
	}
	return http.DefaultTransport.RoundTrip(r)
}
