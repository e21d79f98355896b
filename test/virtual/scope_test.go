package virtual

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// Namespaces are served as long as they have the labels: objects are handled when a namespace comes, and let go
// when it leaves.
func TestNamespacesAreServedByTheirLabels(t *testing.T) {
	namespace := func(name, team string) *corev1.Namespace {
		return &corev1.Namespace{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": team}},
		}
	}
	ours := namespace("ours", "web")
	theirs := namespace("theirs", "db")
	named := namespace("named", "")
	var mu sync.Mutex
	var happened []string
	record := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		happened = append(happened, what)
	}
	withOperator(t, func(r *kopf.Registry) {
		r.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
			record("created in " + c.Namespace())
			return nil
		}, kopf.ID("create"))
		r.Daemon(examples, func(_ context.Context, t *kopf.Task) error {
			<-t.Stopped()
			record("stopped in " + t.Namespace() + ": " + t.StopReason().String())
			return nil
		}, kopf.ID("daemon"))
	}, func(t *testing.T, h *kopftest.Harness) {
		expect := func(want ...string) {
			t.Helper()
			h.Advance(time.Minute)
			mu.Lock()
			defer mu.Unlock()
			slices.Sort(happened)
			if !slices.Equal(happened, want) {
				t.Errorf("got %q, want %q", happened, want)
			}
			happened = nil
		}
		for _, name := range []string{"ours", "theirs", "named"} {
			one := newExample()
			one.SetNamespace(name)
			h.Create(one)
		}
		expect("created in named", "created in ours")
		h.Patch(ours, `{"metadata":{"labels":{"another":"label"}}}`)
		expect()
		h.Patch(theirs, `{"metadata":{"labels":{"team":"web"}}}`)
		expect("created in theirs")
		h.Patch(ours, `{"metadata":{"labels":{"team":null}}}`)
		h.Patch(named, `{"metadata":{"labels":{"team":"db"}}}`)
		expect("stopped in ours: mismatch|signaled")
		h.Stop()
		mu.Lock()
		happened = nil
		mu.Unlock()
		h.Start()
		expect()
	}, kopftest.Objects(ours, theirs, named), kopftest.Settings(func(s *kopf.Settings) {
		s.Scope.Namespaces = []string{"labels:team in (web, app)", "named"}
	}))
}
