package kopftest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/hierarchy"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// bucketStore is the fake of an external system. It survives the crash of an operator.
type bucketStore struct {
	mu      sync.Mutex
	buckets map[string]bool
}

// make creates a bucket, unless there is one of the name.
func (s *bucketStore) make(ctx context.Context, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.buckets[name] {
		s.buckets[name] = true
		kopftest.Effect(ctx, "bucket created")
	}
}

func (s *bucketStore) remove(ctx context.Context, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.buckets[name] {
		delete(s.buckets, name)
		kopftest.Effect(ctx, "bucket removed")
	}
}

// ensureChild creates a child of the handled object, unless it exists.
func ensureChild(ctx context.Context, c *kopf.Change, name string) error {
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: c.Name() + "-" + name, Namespace: c.Namespace()}}
	if err := hierarchy.Adopt(ctx, child); err != nil {
		return err
	}
	return client.IgnoreAlreadyExists(c.Client().Create(ctx, child))
}

// updateChild copies the size to a child, by reading and replacing it.
func updateChild(ctx context.Context, c *kopf.Change, name string) error {
	child := &corev1.ConfigMap{}
	if err := c.Client().Get(ctx, client.ObjectKey{Namespace: c.Namespace(), Name: c.Name() + "-" + name}, child); err != nil {
		return err
	}
	size, _ := c.Spec().Int64("size")
	child.Data = map[string]string{"size": fmt.Sprint(size)}
	return c.Client().Update(ctx, child)
}

// declareBuckets declares the handlers of an operator for buckets, which is correct.
func declareBuckets(r *kopf.Registry, store *bucketStore) {
	r.OnCreate(examples, func(ctx context.Context, c *kopf.Change) error {
		store.make(ctx, c.Name())
		c.SetResult("made")
		return nil
	}, kopf.ID("bucket"))
	r.OnCreate(examples, func(ctx context.Context, c *kopf.Change) error {
		for _, name := range []string{"a", "b", "c"} {
			c.Subhandler(name, func(ctx context.Context, c *kopf.Change) error { return ensureChild(ctx, c, name) })
		}
		return nil
	}, kopf.ID("children"))
	r.OnCreate(examples, func(ctx context.Context, c *kopf.Change) error {
		if c.Retry() == 0 {
			return kopf.Temporary(errors.New("not yet"), time.Minute)
		}
		c.Patch().Set(true, "status", "ready")
		return nil
	}, kopf.ID("ready"))
	r.OnField(examples, "spec.size", func(ctx context.Context, c *kopf.Change) error {
		if c.Reason() == kopf.ReasonCreate {
			return nil
		}
		return errors.Join(updateChild(ctx, c, "a"), updateChild(ctx, c, "b"), updateChild(ctx, c, "c"))
	}, kopf.ID("resize"))
	r.OnDelete(examples, func(ctx context.Context, c *kopf.Change) error {
		store.remove(ctx, c.Name())
		return nil
	}, kopf.ID("remove"))
}

// lifeOfBuckets returns a scenario: objects are created, resized some times, and deleted.
func lifeOfBuckets(objects, updates int) func(*testing.T, kopftest.Option) {
	return func(t *testing.T, fault kopftest.Option) {
		store := &bucketStore{buckets: map[string]bool{}}
		h := kopftest.New(t, declaring(func(r *kopf.Registry) { declareBuckets(r, store) }), fault, kopftest.CRDs(crds))
		all := make([]*unstructured.Unstructured, objects)
		for i := range all {
			all[i] = example(fmt.Sprintf("object-%d", i))
			h.Create(all[i])
		}
		h.Advance(2 * time.Minute)
		for size := range updates {
			for _, one := range all {
				h.Patch(one, fmt.Sprintf(`{"spec":{"size":%d}}`, size+2))
			}
			h.Settle()
		}
		for _, one := range all {
			h.Delete(one)
		}
		h.Settle()
		if len(store.buckets) != 0 {
			t.Errorf("left: %v", store.buckets)
		}
	}
}

// A correct operator survives all faults at all writes.
func TestSweepOfACorrectOperator(t *testing.T) { kopftest.Sweep(t, lifeOfBuckets(2, 1)) }

// BenchmarkSweep takes more than 500 cases.
func BenchmarkSweep(b *testing.B) {
	scenario := lifeOfBuckets(3, 6)
	var runs atomic.Int64
	for b.Loop() {
		passed, output := runAlone(b, func(t *testing.T) {
			kopftest.Sweep(t, func(t *testing.T, fault kopftest.Option) {
				runs.Add(1)
				scenario(t, fault)
			})
		})
		if !passed {
			b.Fatal(output)
		}
	}
	b.ReportMetric(float64(runs.Load())/float64(b.N), "runs/op")
}

// With Go types, the writes of the handlers are swept as well.
func TestSweepOfTypedHandlers(t *testing.T) {
	kopftest.Sweep(t, func(t *testing.T, fault kopftest.Option) {
		h := kopftest.New(t, declaring(func(r *kopf.Registry) {
			kopf.For[*corev1.ConfigMap](r).OnCreate(func(ctx context.Context, _ *corev1.ConfigMap, c *kopf.Change) error {
				secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: c.Name(), Namespace: c.Namespace()}}
				if err := c.Client().Create(ctx, secret); err != nil && !apierrors.IsAlreadyExists(err) {
					return err
				}
				kopf.Update(c, func(m *corev1.ConfigMap) error {
					m.Data = map[string]string{"secret": secret.Name}
					return nil
				})
				return nil
			}, kopf.ID("secret"))
		}), fault)
		h.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "one"}})
		h.Settle()
	})
}

// runAlone runs a test that can fail, and returns its output.
func runAlone(t testing.TB, test func(*testing.T)) (passed bool, output string) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "output"))
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = file
	passed = runOnce(test)
	os.Stdout = stdout
	text, err := os.ReadFile(file.Name())
	if err != nil || file.Close() != nil {
		t.Fatal(err)
	}
	return passed, string(text)
}

// A handler that creates a bucket whenever it is called is found, and the message says how.
func TestSweepFindsWhatIsDoneTwice(t *testing.T) {
	passed, output := runAlone(t, func(t *testing.T) {
		kopftest.Sweep(t, func(t *testing.T, fault kopftest.Option) {
			h := kopftest.New(t, declaring(func(r *kopf.Registry) {
				r.OnCreate(examples, func(ctx context.Context, _ *kopf.Change) error {
					kopftest.Effect(ctx, "bucket created")
					return nil
				}, kopf.ID("create"))
			}), fault, kopftest.CRDs(crds))
			h.Create(example("one"))
			h.Settle()
			if h.Effects("bucket created") == 0 {
				t.Error("the handler is not called")
			}
		})
	})
	wanted := []string{
		"--- FAIL: TestBuckets/crash_before_write_1_of_kopfexamples_ns.one",
		`Done too often: "bucket created" for KopfExample "ns/one", 2 instead of 1 times`,
		"The operator crashed before it sent write 1 of kopfexamples ns/one: PATCH namespaces/ns/kopfexamples/one",
		"go test -run '^TestBuckets$/^crash_before_write_1_of_kopfexamples_ns\\.one$' .",
		"package variables", "call:   create of ns/one, attempt 1, succeeded\n",
		"FAULT:  crash before write 1 of kopfexamples ns/one",
	}
	for _, text := range wanted {
		if !strings.Contains(output, text) {
			t.Errorf("there is no %q", text)
		}
	}
	if passed || t.Failed() {
		t.Errorf("the output is:\n%s", output)
	}
}

// What is different in the end is named, with what is expected.
func TestSweepFindsADifferentEnd(t *testing.T) {
	passed, output := runAlone(t, func(t *testing.T) {
		kopftest.Sweep(t, func(t *testing.T, fault kopftest.Option) {
			attempts := 0
			h := kopftest.New(t, declaring(func(r *kopf.Registry) {
				r.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
					attempts++
					c.SetResult(attempts)
					return nil
				}, kopf.ID("create"))
			}), fault, kopftest.CRDs(crds))
			h.Create(example("one"))
			h.Settle()
		}, kopftest.OnlyCrashes(), kopftest.Recovery(time.Minute))
	})
	if want := "KopfExample ns/one.status.create is 2 instead of 1"; passed || !strings.Contains(output, want) {
		t.Errorf("there is no %q in:\n%s", want, output)
	}
}

// A handler that ignores the error of a write is found, because the write is refused.
func TestSweepFindsIgnoredErrors(t *testing.T) {
	passed, output := runAlone(t, func(t *testing.T) {
		kopftest.Sweep(t, func(t *testing.T, fault kopftest.Option) {
			h := kopftest.New(t, declaring(func(r *kopf.Registry) {
				r.OnCreate(examples, func(ctx context.Context, c *kopf.Change) error {
					_ = ensureChild(ctx, c, "child")
					return nil
				}, kopf.ID("create"))
			}), fault, kopftest.CRDs(crds))
			h.Create(example("one"))
			h.Settle()
		}, kopftest.Recovery(time.Minute))
	})
	for _, want := range []string{"--- FAIL: TestBuckets/refusal_of_write_1_of_configmaps_ns.one-child", "ConfigMap ns/one-child is missing", "The API server refused"} {
		if passed || !strings.Contains(output, want) {
			t.Errorf("there is no %q in:\n%s", want, output)
		}
	}
}

// The influence of faults cannot be seen if the end depends on chance.
func TestSweepNeedsTheSameEnd(t *testing.T) {
	runs := 0
	scenario := func(t *testing.T, fault kopftest.Option) {
		runs++
		h := kopftest.New(t, declaring(func(r *kopf.Registry) {
			r.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
				c.SetResult(runs)
				return nil
			}, kopf.ID("create"))
		}), fault, kopftest.CRDs(crds))
		h.Create(example("one"))
		h.Settle()
	}
	passed, output := runAlone(t, func(t *testing.T) { kopftest.Sweep(t, scenario, kopftest.Sequential()) })
	if passed || !strings.Contains(output, "IgnoreField") || strings.Contains(output, "TestBuckets/") {
		t.Errorf("got %s", output)
	}
	kopftest.Sweep(t, scenario, kopftest.Sequential(), kopftest.IgnoreField("status.create"))
}

// Writes that do not happen again cannot be tried, and a sweep of few cases is none.
func TestSweepNeedsTheSameWrites(t *testing.T) {
	runs := 0
	passed, output := runAlone(t, func(t *testing.T) {
		kopftest.Sweep(t, func(t *testing.T, fault kopftest.Option) {
			runs++
			h := kopftest.New(t, declaring(func(r *kopf.Registry) {
				r.OnCreate(examples, func(ctx context.Context, c *kopf.Change) error {
					for number := range 5 {
						patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"data":{"number":"%d"}}`, number))
						object := kopftest.Object(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: ns, name: counted}}`)
						if runs > 2 && number < 4 {
							continue // only the runs without a fault write often
						}
						if err := c.Client().Patch(ctx, object, patch); err != nil {
							return err
						}
					}
					return nil
				}, kopf.ID("create"))
			}), fault, kopftest.CRDs(crds), kopftest.Objects(kopftest.Object(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: ns, name: counted}}`)))
			h.Create(example("one"))
			h.Settle()
		}, kopftest.Sequential(), kopftest.OnlyCrashes(), kopftest.Recovery(2*time.Minute))
	})
	if passed || !strings.Contains(output, "could not be tried: how often the operator writes depends on chance") {
		t.Errorf("got %s", output)
	}
}

// The option must reach the operator.
func TestSweepNeedsItsOption(t *testing.T) {
	passed, output := runAlone(t, func(t *testing.T) {
		kopftest.Sweep(t, func(t *testing.T, _ kopftest.Option) { kopftest.New(t, declaring(func(*kopf.Registry) {})) })
	})
	if passed || !strings.Contains(output, "with the option that it is given") {
		t.Errorf("got %s", output)
	}
}

// declareMinutely declares a timer that makes something every minute, and needs most of it after a fault.
func declareMinutely(r *kopf.Registry) {
	r.Timer(examples, func(ctx context.Context, t *kopf.Tick) error {
		name := fmt.Sprintf("%s-%d", t.Name(), t.Scheduled().Minute())
		made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: t.Namespace()}}
		return client.IgnoreAlreadyExists(t.Client().Create(ctx, made))
	}, kopf.ID("make"), kopf.Schedule("* * * * *"), kopf.Backoff(45*time.Second))
}

// While a run recovers, the clock goes on: without the option, the end would have more minutes.
func TestSweepComparesAtTheSameTimes(t *testing.T) {
	kopftest.Sweep(t, func(t *testing.T, fault kopftest.Option) {
		h := kopftest.New(t, declaring(declareMinutely), fault, kopftest.CRDs(crds))
		h.Create(example("one"))
		for range 5 {
			h.Advance(30 * time.Second)
		}
		h.Advance(25 * time.Second)
	}, kopftest.SameClock())
}
