package kopftest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// A namespace appears while handlers are called, and its objects for the index cannot be listed at
// first. Handlers wait until they are in the index, also those of other objects.
func TestHandlersWaitForIndicesOfNamespacesThatAppear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var seen []string
		declare := func() *kopf.Registry {
			r := kopf.NewRegistry()
			names := kopf.NewIndex(r, kopf.Resource("v1", "configmaps"), func(_ context.Context, i *kopf.Indexed) (map[string]string, error) {
				return map[string]string{i.Namespace(): i.Name()}, nil
			}, kopf.ID("names"))
			r.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, fmt.Sprintf("%s sees %d", c.Namespace(), len(names.Get("team-b"))))
				return nil
			}, kopf.ID("look"))
			return r
		}
		of := func(namespace string) *corev1.Namespace {
			return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		}
		h := kopftest.New(t, declare, kopftest.CRDs(crds), kopftest.Objects(of("team-a")), kopftest.Settings(func(s *kopf.Settings) {
			s.Scope.Namespaces = []string{"team-*"}
		}))
		h.Settle()
		failure := h.Fail(kopftest.Requests{Verb: "list", Resource: "configmaps", Namespace: "team-b"}, 0, errors.New("broken"))
		watching := h.Fail(kopftest.Requests{Verb: "watch", Resource: "configmaps", Namespace: "team-b"}, 0, errors.New("broken"))
		h.Create(of("team-b"))
		h.Advance(time.Millisecond) // the operator sees the namespace before the objects
		h.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team-b", Name: "one"}})
		for _, namespace := range []string{"team-a", "team-b"} {
			obj := example("one")
			obj.SetNamespace(namespace)
			h.Create(obj)
		}
		h.Advance(time.Second) // longer failures have longer retries, and handlers wait for ten seconds at most
		if len(seen) > 0 {
			t.Errorf("before the index is filled: %q", seen)
		}
		failure.End()
		watching.End()
		h.Advance(time.Minute)
		slices.Sort(seen)
		if want := []string{"team-a sees 1", "team-b sees 1"}; !slices.Equal(seen, want) {
			t.Errorf("got %q, want %q", seen, want)
		}
	})
}
