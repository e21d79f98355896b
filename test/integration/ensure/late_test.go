package ensure

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// lateWatches holds back the events of children until the gate opens.
type lateWatches struct {
	http.RoundTripper
	gate *gate
}

func (l lateWatches) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := l.RoundTripper.RoundTrip(request)
	if err == nil && request.URL.Query().Has("watch") && !strings.HasSuffix(request.URL.Path, "/kopfexamples") {
		answer.Body = &heldBody{ReadCloser: answer.Body, gate: l.gate, done: request.Context().Done()}
	}
	return answer, err
}

// gate is open until it is closed for a while.
type gate struct{ passable chan chan struct{} }

func newGate() *gate {
	g := &gate{passable: make(chan chan struct{}, 1)}
	open := make(chan struct{})
	close(open)
	g.passable <- open
	return g
}

// shut holds everything back from now on, until the function is called.
func (g *gate) shut() (open func()) {
	<-g.passable
	closed := make(chan struct{})
	g.passable <- closed
	return func() { close(closed) }
}

// heldBody delivers its content when the gate is open.
type heldBody struct {
	io.ReadCloser
	gate *gate
	done <-chan struct{}
}

func (b *heldBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	passable := <-b.gate.passable
	b.gate.passable <- passable
	select {
	case <-passable:
	case <-b.done:
	}
	return n, err
}

// As long as the watches show the children as they were before the operator has applied them,
// they count neither as changed by others nor as up to date. When its own changes are shown at
// last, nothing is called.
func TestWatchesThatAreLateDoNotCount(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Ensure(shops, b.counted(children), kopf.ID("children"))
	held := newGate()
	b.config.Wrap(func(next http.RoundTripper) http.RoundTripper { return lateWatches{next, held} })
	b.start()
	shop := b.expectHandled(b.shop("one", map[string]any{"replicas": int64(1)}))
	b.requests.Reset()

	open := held.shut()
	b.patch(shop, `{"spec":{"replicas":2}}`)
	b.expectChild(b.of(deployments, "one"), testenv.HavePath("spec.replicas", int64(2)))
	b.expectWrites(1, 2)
	b.patch(shop, `{"spec":{"replicas":1}}`) // as in what the watches show
	b.expectChild(b.of(deployments, "one"), testenv.HavePath("spec.replicas", int64(1)))
	b.expectWrites(1, 2)
	b.patch(shop, `{"spec":{"paused":true}}`) // which the children do not depend on
	b.Eventually(b.calls.Load).Should(gomega.BeEquivalentTo(4))
	b.expectWrites(1, 0)

	open()
	b.expectWrites(0, 0)
	b.Consistently(b.calls.Load, "300ms").Should(gomega.BeEquivalentTo(4))
}
