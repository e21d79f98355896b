package testenv

import (
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
)

// Address is an address behind which one cluster can take the place of another one. Its clients keep
// their connections until they are cut.
type Address struct{ current atomic.Pointer[place] }

// place is a cluster as an Address reaches it.
type place struct {
	base *url.URL
	next http.RoundTripper
}

// Behind returns an address with a cluster behind it, and the configuration of its clients.
func Behind(t testing.TB, cluster *Cluster) (*Address, *rest.Config) {
	t.Helper()
	a := &Address{}
	a.Switch(t, cluster)
	return a, &rest.Config{Host: "http://address.example.com", Transport: a, QPS: -1}
}

// Switch puts another cluster behind the address. Its first request opens new connections.
func (a *Address) Switch(t testing.TB, to *Cluster) {
	t.Helper()
	config := to.Config()
	base, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	next, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	a.current.Store(&place{base, next})
}

// RoundTrip sends a request to the cluster behind the address.
func (a *Address) RoundTrip(sent *http.Request) (*http.Response, error) {
	at := a.current.Load()
	sent = sent.Clone(sent.Context())
	sent.URL.Scheme, sent.URL.Host, sent.Host = at.base.Scheme, at.base.Host, at.base.Host
	return at.next.RoundTrip(sent)
}
