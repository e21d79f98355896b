package virtual

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// fonts are the calls of a handler that reads an index of config maps, by their objects.
type fonts struct {
	mu    sync.Mutex
	calls map[string]int
	first map[string]time.Time // the time of the first call since the last look
}

func (f *fonts) note(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls == nil {
		f.calls, f.first = map[string]int{}, map[string]time.Time{}
	}
	f.calls[name]++
	if f.first[name].IsZero() {
		f.first[name] = time.Now()
	}
}

// take returns the calls since the last look.
func (f *fonts) take() (calls map[string]int, first map[string]time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls, first = f.calls, f.first
	f.calls, f.first = nil, nil
	return calls, first
}

// expect checks the number of calls of each object, and that there are no others.
func (f *fonts) expect(t *testing.T, want map[string]int) {
	t.Helper()
	if got, _ := f.take(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got the calls %v, want %v", got, want)
	}
}

// declare declares the index and the handler. The index has the fonts of config maps with a label;
// the child of an object has all of them.
func (f *fonts) declare(r *kopf.Registry, options ...kopf.ChildOption) {
	index := kopf.NewIndex(r, kopf.Resource("v1", "configmaps"), func(_ context.Context, i *kopf.Indexed) (map[string][]string, error) {
		names, _, _ := unstructured.NestedString(i.Body().Raw(), "data", "fonts")
		return map[string][]string{"fonts": strings.Fields(names)}, nil // slices are not comparable
	}, kopf.Labels(map[string]kopf.Matcher{"fonts": kopf.Present()}), kopf.ID("fonts"))
	r.Ensure(examples, func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
		f.note(c.Name())
		wanted := newTheme()
		wanted.Name = c.Name()
		wanted.Data = map[string]string{"fonts": fmt.Sprint(index.Get("fonts"))}
		return []client.Object{wanted}, nil
	}, append([]kopf.ChildOption{kopf.ID("theme"), kopf.WatchIndex(index)}, options...)...)
}

func fontsOf(names string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "fonts", Labels: map[string]string{"fonts": "yes"}},
		Data:       map[string]string{"fonts": names},
	}
}

func exampleNamed(name string) *unstructured.Unstructured {
	one := newExample()
	one.SetName(name)
	return one
}

// fontsIn returns the fonts of the child of an object.
func fontsIn(h *kopftest.Harness, name string) string {
	child := newTheme()
	child.Name = name
	h.Get(child)
	return child.Data["fonts"]
}

// A change of the index calls the handler once for each object, and only a change.
func TestWatchedIndexCallsTheHandler(t *testing.T) {
	var f fonts
	withOperator(t, func(r *kopf.Registry) {
		f.declare(r, kopf.Labels(map[string]kopf.Matcher{"theme": kopf.Absent()}))
	}, func(t *testing.T, h *kopftest.Harness) {
		other := exampleNamed("other")
		other.SetLabels(map[string]string{"theme": "none"})
		for _, o := range []client.Object{exampleNamed("one"), exampleNamed("two"), other} {
			h.Create(o)
		}
		h.Advance(time.Minute)
		f.expect(t, map[string]int{"one": 1, "two": 1})

		h.Create(fontsOf("serif mono"))
		h.Advance(time.Minute)
		f.expect(t, map[string]int{"one": 1, "two": 1})
		if got := fontsIn(h, "two"); got != "[[serif mono]]" {
			t.Errorf("got the fonts %s", got)
		}

		before := len(h.Writes())
		h.Patch(fontsOf(""), `{"metadata": {"labels": {"fonts": "still"}}}`) // the same values
		h.Advance(time.Hour)
		f.expect(t, nil)
		if writes := h.Writes()[before:]; len(writes) != 0 {
			t.Errorf("got the writes %v", writes)
		}

		h.Delete(fontsOf(""))
		h.Advance(time.Minute)
		f.expect(t, map[string]int{"one": 1, "two": 1})
		if got := fontsIn(h, "one"); got != "[]" {
			t.Errorf("got the fonts %s", got)
		}
	})
}

// What the handler returns again costs no write, neither of the child nor of the object.
func TestWatchedIndexWritesOnlyWhatDiffers(t *testing.T) {
	var calls int
	withOperator(t, func(r *kopf.Registry) {
		index := kopf.NewIndex(r, kopf.Resource("v1", "configmaps"), func(_ context.Context, i *kopf.Indexed) (map[string]string, error) {
			return map[string]string{i.Name(): "here"}, nil
		}, kopf.Labels(map[string]kopf.Matcher{"fonts": kopf.Present()}), kopf.ID("names"))
		r.Ensure(examples, func(ctx context.Context, c *kopf.Change) ([]client.Object, error) {
			calls++
			return theme(ctx, c)
		}, kopf.ID("theme"), kopf.WatchIndex(index))
	}, func(t *testing.T, h *kopftest.Harness) {
		h.Create(newExample())
		h.Advance(time.Minute)
		before := len(h.Writes())
		for range 5 {
			h.Create(fontsOf("serif"))
			h.Advance(time.Minute)
			h.Delete(fontsOf(""))
			h.Advance(time.Minute)
		}
		if writes := h.Writes()[before:]; len(writes) != 0 || calls != 11 {
			t.Errorf("got %d calls, and the writes %v", calls, writes)
		}
	})
}

// Many objects take turns, and many changes are one.
func TestWatchedIndexSpreadsTheCalls(t *testing.T) {
	const objects = 300
	var f fonts
	withOperator(t, func(r *kopf.Registry) { f.declare(r) }, func(t *testing.T, h *kopftest.Harness) {
		for i := range objects {
			h.Create(exampleNamed(fmt.Sprintf("shop-%03d", i)))
		}
		h.Advance(time.Minute)
		f.take()
		h.Create(fontsOf("serif"))
		began := time.Now()
		for i := range 10 {
			h.Patch(fontsOf(""), fmt.Sprintf(`{"data": {"fonts": "serif-%d"}}`, i))
		}
		h.Advance(2 * time.Minute)
		calls, first := f.take()
		slices, last := map[time.Duration]int{}, time.Duration(0)
		for _, at := range first {
			slices[at.Sub(began).Truncate(100*time.Millisecond)]++
			last = max(last, at.Sub(began))
		}
		for slice, n := range slices {
			if n > 25 {
				t.Errorf("%d calls between %s and 100 ms later", n, slice)
			}
		}
		total := 0
		for _, n := range calls {
			total += n
		}
		if len(calls) != objects || total > 2*objects || last > 10*time.Second {
			t.Errorf("got %d calls of %d objects within %s", total, len(calls), last)
		}
		if got := fontsIn(h, "shop-299"); got != "[[serif-9]]" {
			t.Errorf("got the fonts %s", got)
		}
	})
}

// An index that changes all the time calls an object once per second.
func TestWatchedIndexThatChangesAllTheTime(t *testing.T) {
	var f fonts
	withOperator(t, func(r *kopf.Registry) { f.declare(r) }, func(t *testing.T, h *kopftest.Harness) {
		h.Create(newExample())
		h.Create(fontsOf("serif"))
		h.Advance(time.Minute)
		f.take()
		for i := range 600 {
			h.Patch(fontsOf(""), fmt.Sprintf(`{"data": {"fonts": "serif-%d"}}`, i))
			h.Advance(50 * time.Millisecond)
		}
		h.Advance(time.Minute)
		if calls, _ := f.take(); calls["one"] < 25 || calls["one"] > 32 {
			t.Errorf("got %d calls in 30 s", calls["one"])
		}
		if got := fontsIn(h, "one"); got != "[[serif-599]]" {
			t.Errorf("got the fonts %s", got)
		}
	})
}

// A change while the object is suspended, while the operator stands still, and while the handler
// runs is not lost.
func TestWatchedIndexIsNotMissed(t *testing.T) {
	var f fonts
	var mu sync.Mutex
	busy := time.Duration(0)
	withOperator(t, func(r *kopf.Registry) {
		f.declare(r, kopf.WhenObject(func(*unstructured.Unstructured) bool { return true }))
		r.OnCreate(examples, func(context.Context, *kopf.Change) error {
			mu.Lock()
			d := busy
			mu.Unlock()
			time.Sleep(d)
			return nil
		}, kopf.ID("slow"))
	}, func(t *testing.T, h *kopftest.Harness) {
		one := newExample()
		h.Create(one)
		h.Advance(time.Minute)

		h.Patch(one, `{"metadata": {"annotations": {"kopf.zalando.org/request-suspend": "forever"}}}`)
		h.Advance(time.Minute)
		f.take()
		h.Create(fontsOf("serif"))
		h.Advance(time.Hour)
		f.expect(t, nil)
		h.Patch(one, `{"metadata": {"annotations": {"kopf.zalando.org/request-suspend": null}}}`)
		h.Advance(time.Minute)
		if got := fontsIn(h, "one"); got != "[[serif]]" {
			t.Errorf("after the suspension: got the fonts %s", got)
		}

		h.Restart()
		h.Patch(fontsOf(""), `{"data": {"fonts": "mono"}}`)
		h.Advance(time.Minute)
		if got := fontsIn(h, "one"); got != "[[mono]]" {
			t.Errorf("after the restart: got the fonts %s", got)
		}

		mu.Lock()
		busy = time.Minute
		mu.Unlock()
		h.Create(exampleNamed("two"))
		h.Advance(30 * time.Second) // in the middle of its creation
		h.Patch(fontsOf(""), `{"data": {"fonts": "bold"}}`)
		h.Advance(time.Hour)
		if got := fontsIn(h, "two"); got != "[[bold]]" {
			t.Errorf("after the creation: got the fonts %s", got)
		}
	})
}

func TestMistakesInWatchedIndicesAreFoundAtTheStart(t *testing.T) {
	fill := func(context.Context, *kopf.Indexed) (map[string]string, error) { return nil, nil }
	for name, test := range map[string]struct {
		declare func(*kopf.Registry)
		want    string
	}{
		"of another registry": {func(r *kopf.Registry) {
			index := kopf.NewIndex(kopf.NewRegistry(), examples, fill, kopf.ID("index"))
			r.Ensure(examples, theme, kopf.ID("children"), kopf.WatchIndex(index))
		}, `the handler "children" has kopf.WatchIndex with an index that no function of its registry fills`},
		"nil": {func(r *kopf.Registry) {
			var index *kopf.Index[string, string]
			r.Ensure(examples, theme, kopf.ID("children"), kopf.WatchIndex(index))
		}, "the index of kopf.WatchIndex is nil"},
		"none": {func(r *kopf.Registry) {
			r.Ensure(examples, theme, kopf.ID("children"), kopf.WatchIndex())
		}, "kopf.WatchIndex has no index"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := kopf.NewRegistry()
				test.declare(r)
				o := kopf.Options{Registry: r, Config: kopftest.NewAPIServer(t).Config()}
				o.Settings.Name, o.Settings.Peering.Standalone = "example.com", true
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := kopf.Run(ctx, o); err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

// The operator is killed before and after each write while an index changes.
func TestSweepOfAWatchedIndex(t *testing.T) {
	kopftest.Sweep(t, func(t *testing.T, fault kopftest.Option) {
		var f fonts
		h := kopftest.New(t, func() *kopf.Registry {
			r := kopf.NewRegistry()
			f.declare(r, kopf.Backoff(time.Second))
			return r
		}, fault, kopftest.CRDs(definitions), kopftest.Settings(func(s *kopf.Settings) { s.Name = "example.com" }))
		h.Create(newExample())
		h.Advance(2 * time.Minute)
		h.Create(fontsOf("serif"))
		h.Advance(2 * time.Minute)
		h.Patch(fontsOf(""), `{"data": {"fonts": "mono"}}`)
		h.Advance(2 * time.Minute)
		if got := fontsIn(h, "one"); got != "[[mono]]" {
			t.Errorf("got the fonts %s", got)
		}
	})
}
