package leaks

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestRemaining(t *testing.T) {
	release, begun := make(chan struct{}), make(chan struct{})
	leaking := Go(func() { go waitsFor(begun, release) })
	<-begun
	got := leaking.Remaining(0)
	for ; len(got) > 1; got = leaking.Remaining(time.Millisecond) { // the parent ends soon
	}
	if len(got) != 1 || !strings.Contains(got[0], "waitsFor") {
		t.Errorf("got %q", got)
	}
	close(release)
	if got := leaking.Remaining(time.Minute); len(got) != 0 {
		t.Errorf("got %q", got)
	}
}

func waitsFor(begun chan<- struct{}, release <-chan struct{}) {
	close(begun)
	<-release
}

// Connections are kept for the next request, and are no leaks.
func TestIdleConnections(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	ended := make(chan struct{})
	family := Go(func() {
		defer close(ended)
		if response, err := server.Client().Get(server.URL); err == nil {
			_ = response.Body.Close()
		}
	})
	<-ended
	if got := family.Remaining(time.Second); len(got) != 0 {
		t.Errorf("got %q", got)
	}
}
