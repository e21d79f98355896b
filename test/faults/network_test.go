package faults

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/test/testenv"
)

// The errors of a broken network.
var (
	errDead = errors.New("the operator is dead")
	errLost = errors.New("the connection is broken")
)

// link is the connection between one operator and the API server.
type link struct {
	name    string
	cluster *testenv.Cluster
	dead    atomic.Bool
	watches *gate
	// travel is how long a request or a response is on its way; nil if a real network decides.
	travel func(sent *http.Request) time.Duration
}

func newLink(name string, cluster *testenv.Cluster) link {
	return link{name: name, cluster: cluster, watches: newGate()}
}

// config returns the configuration of a client whose requests all go through the route, unless
// the operator is dead.
func (l *link) config(route func(*http.Request, http.RoundTripper) (*http.Response, error)) *rest.Config {
	config := l.cluster.Config()
	config.WarningHandler = rest.NoWarnings{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return testenv.RoundTripper(func(sent *http.Request) (*http.Response, error) {
			if err := l.await(sent); err != nil {
				return nil, err
			}
			answer, err := route(sent, next)
			if arrived := l.await(sent); arrived != nil && err == nil {
				_ = answer.Body.Close()
				return nil, arrived
			}
			return answer, err
		})
	})
	return config
}

// await waits until a request or its response has arrived. It returns an error if the operator is dead.
func (l *link) await(sent *http.Request) error {
	if l.travel != nil {
		select {
		case <-time.After(l.travel(sent)):
		case <-sent.Context().Done():
			return sent.Context().Err()
		}
	}
	if l.dead.Load() {
		return errDead
	}
	return nil
}

// write is one attempt to write to the object.
type write struct {
	operator *operator // nil in a storm
	next     http.RoundTripper
	request  *http.Request
	number   int
}

// send sends the write to the API server, and returns the response with its content.
func (w *write) send() (*http.Response, []byte, error) {
	answer, err := w.next.RoundTrip(w.request)
	if err != nil {
		return nil, nil, err
	}
	content, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil {
		return nil, nil, err
	}
	answer.Body = io.NopCloser(bytes.NewReader(content))
	return answer, content, nil
}

// commit sends the write to the API server, and records the response in the history.
func (w *write) commit() (*http.Response, error) {
	answer, content, err := w.send()
	if err != nil {
		return nil, err
	}
	if !w.dry() {
		w.operator.run.history.answered(w, answer.StatusCode, content)
	}
	return answer, nil
}

// later returns the same write, to be sent after the operator has given up on it.
func (w *write) later() *write {
	copied := *w
	copied.request = w.request.Clone(context.Background())
	copied.request.Body = io.NopCloser(bytes.NewReader(w.body()))
	return &copied
}

func (w *write) body() []byte {
	reader, err := w.request.GetBody()
	if err != nil {
		return nil
	}
	content, _ := io.ReadAll(reader)
	return content
}

// dry reports whether the write is a dry run.
func (w *write) dry() bool { return w.request.URL.Query().Has("dryRun") }

func (w *write) target() string {
	target := "main"
	if strings.HasSuffix(w.request.URL.Path, "/status") {
		target = "status"
	}
	if w.dry() {
		target += ", to try"
	}
	return target
}
