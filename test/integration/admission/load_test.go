package admission

import (
	"context"
	"flag"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/test/testenv"
)

var frequency = flag.Int("frequency", 50, "the number of reviewed requests per second while replicas come and go")

// load sends requests until it is stopped: of good objects, which must be mutated, and in turn of bad
// ones, which must be rejected.
type load struct {
	t         *testing.T
	good, bad *unstructuredObject
	cancel    context.CancelFunc
	running   sync.WaitGroup

	mu   sync.Mutex
	sent int
	open map[int]bool // the requests without an answer, by their numbers
	// unchecked contains the requests that were answered without the handlers. failed contains
	// those that the API server has refused, because it could not call them.
	unchecked, failed []string
}

func newLoad(t *testing.T, namespace string) *load {
	return &load{t: t, open: map[int]bool{}, good: testenv.NewObject("KopfExample", namespace, "good", nil), bad: testenv.NewObject("KopfExample", namespace, "bad", nil)}
}

// rejects returns the answer to a request for the bad object.
func (l *load) rejects() error {
	return cluster.Client().Create(l.t.Context(), l.bad.DeepCopy(), client.DryRunAll)
}

// mutates reports whether the good object is mutated.
func (l *load) mutates() (bool, error) {
	object := l.good.DeepCopy()
	err := cluster.Client().Create(l.t.Context(), object, client.DryRunAll)
	return isMutated(object), err
}

func isMutated(object *unstructuredObject) bool { return object.GetLabels()["mutated"] == "yes" }

func (l *load) start() {
	ctx, cancel := context.WithCancel(l.t.Context())
	l.cancel = cancel
	l.t.Cleanup(l.stop) // also of a test that fails
	l.running.Go(func() {
		tick := time.NewTicker(time.Second / time.Duration(*frequency))
		defer tick.Stop()
		for number := 0; ctx.Err() == nil; number++ {
			<-tick.C
			if l.begin(number) {
				l.running.Go(func() { l.send(context.WithoutCancel(ctx), number) })
			}
		}
	})
}

// begin notes a request. It returns false while the requests of a whole second have no answers: the machine is too busy, and an API
// server that gets ever more connections does not recover.
func (l *load) begin(number int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) >= *frequency {
		return false
	}
	l.sent++
	l.open[number] = true
	return true
}

// areAnswered reports whether all requests are answered that were sent before this call, for Eventually.
func (l *load) areAnswered() func() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	sent := l.sent
	return func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		for number := range l.open {
			if number < sent {
				return false
			}
		}
		return true
	}
}

// stop returns when all requests are answered.
func (l *load) stop() {
	l.cancel()
	l.running.Wait()
}

func (l *load) send(ctx context.Context, number int) {
	isBad := number%2 == 0
	object := l.good.DeepCopy()
	if isBad {
		object = l.bad.DeepCopy()
	}
	err := cluster.Client().Create(ctx, object, client.DryRunAll)
	rejected, _ := haveCode(418, "bad").Match(err)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, number)
	switch {
	case isBad && rejected, !isBad && err == nil && isMutated(object):
	case err != nil && strings.Contains(err.Error(), "failed calling webhook"):
		l.failed = append(l.failed, l.noted(number, err))
	default: // or any other answer
		l.unchecked = append(l.unchecked, l.noted(number, err))
	}
}

func (l *load) noted(number int, err error) string {
	text := "without an error"
	if err != nil {
		text = err.Error()
	}
	l.t.Logf("%s: request %d: %s", time.Now().Format(time.StampMilli), number, text)
	return text
}

func (l *load) counts() (sent, unchecked, failed int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent, len(l.unchecked), len(l.failed)
}
