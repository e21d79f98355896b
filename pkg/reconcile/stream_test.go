package reconcile

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	"github.com/kopf-go/kopf/pkg/model/handler"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/registry"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// watched gives a resource a stream that is connected to nothing.
func watched(t *testing.T, e *Engine, s *served, namespace string) *stream {
	t.Helper()
	informer := cache.NewSharedIndexInformer(nil, &object.Snapshot{}, 0, cache.Indexers{})
	listening, err := informer.AddEventHandler(e.listener(t.Context(), s))
	if err != nil {
		t.Fatal(err)
	}
	w := &stream{namespace: namespace, informer: informer, listening: listening}
	s.streams.put(w)
	return w
}

func TestWhoHasTheObjectsOfANamespace(t *testing.T) {
	tests := map[string]struct {
		watched []string
		asked   string
		want    string // "none": nobody
	}{
		"the watch of the cluster":                   {[]string{""}, "ns", ""},
		"the watch of the namespace":                 {[]string{"other", "ns"}, "ns", "ns"},
		"nobody has those of another one":            {[]string{"other"}, "ns", "none"},
		"nobody has anything":                        {nil, "ns", "none"},
		"objects of no namespace need the cluster's": {[]string{"ns"}, "", "none"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e, s := New(Config{}), newServed(kex, nil, nil)
			for _, namespace := range test.watched {
				watched(t, e, s, namespace)
			}
			got := "none"
			if w := s.streams.of(test.asked); w != nil {
				got = w.namespace
			}
			if got != test.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestAWatchTellsItsTrouble(t *testing.T) {
	e, s := New(Config{}), newServed(kex, nil, nil)
	e.served.put(s)
	w := watched(t, e, s, "ns")
	refused, down := errors.New("refused"), apierrors.NewServiceUnavailable("down")
	for i, step := range []struct {
		err          error
		news, healed bool
	}{{nil, false, false}, {refused, true, false}, {refused, false, false}, {nil, false, true}, {nil, false, false}, {refused, true, false}, {errors.New("refused again"), false, false}, {down, true, false}} {
		if news, healed := w.note(step.err); news != step.news || healed != step.healed {
			t.Errorf("%d. %v: news %t, healed %t", i+1, step.err, news, healed)
		}
	}
	got := e.Watching()
	if len(got) != 1 || got[0].Namespace != "ns" || got[0].Listed || got[0].Err == nil {
		t.Errorf("got %+v", got)
	}
}

// Nobody works: there is no pass that would forget what is not watched any longer.
func TestAStandbyForgetsWhatIsNotWatchedAnyLonger(t *testing.T) {
	e := New(Config{})
	s := newServed(kex, handlersOf(t, func(r *registry.Registry) {
		r.Add(handler.Watch(selector.New("kex"), handler.Function{Event: ignoreEvent}))
	}), nil)
	e.listener(t.Context(), s).OnAdd(seen(t, "u-1", "7"), true)
	for _, step := range []struct {
		namespace string
		left      int
	}{{"other", 1}, {"ns", 0}} {
		e.vacate(s, object.StreamKey{Resource: s.name, Namespace: step.namespace})
		if known := e.memories.in(object.StreamKey{Resource: s.name}); len(known) != step.left || len(e.lines.waiting) != step.left {
			t.Errorf("after %s has gone: got %v, %v", step.namespace, known, e.lines.waiting)
		}
	}
}
