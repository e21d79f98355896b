package virtual

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/hierarchy"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
	"github.com/kopf-go/kopf/pkg/model/stop"
)

// looks are what a daemon has seen when it was woken, with the seconds since the start.
type looks struct {
	began time.Time
	all   []string
}

func (l *looks) add(format string, args ...any) {
	l.all = append(l.all, fmt.Sprintf("%gs ", time.Since(l.began).Seconds())+fmt.Sprintf(format, args...))
}

func (l *looks) expect(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(l.all, want) {
		t.Errorf("got %q, want %q", l.all, want)
	}
}

// watching is a daemon that notes the size whenever something wakes it.
func (l *looks) watching(_ context.Context, t *kopf.Task) error {
	for {
		size, _ := t.Spec().Int64("size")
		l.add("size %d", size)
		if t.WaitForChange(24 * time.Hour) {
			l.add("%s", t.StopReason())
			return nil
		}
	}
}

func TestDaemonIsWokenByChangesOfItsFields(t *testing.T) {
	seen := &looks{}
	withOperator(t, func(r *kopf.Registry) {
		r.Daemon(examples, seen.watching, kopf.ID("watch"), kopf.WakeOn("spec.size"), kopf.WakeOn("metadata", "labels", "example.com/look"))
	}, func(t *testing.T, h *kopftest.Harness) {
		seen.began = time.Now()
		one := newExample()
		h.Create(one)
		for _, change := range []string{
			`{"spec":{"color":"red"}}`, `{"metadata":{"annotations":{"a":"b"}}}`, `{"spec":{"size":4}}`,
			`{"metadata":{"labels":{"example.com/look":"here"}}}`, `{"metadata":{"labels":{"example.com/look":null}}}`, `{"spec":{"size":null}}`,
		} {
			h.Advance(time.Second)
			h.Patch(one, change)
			h.Settle()
		}
		h.Advance(time.Minute)
		h.Delete(one)
		h.Settle()
		seen.expect(t, "0s size 3", "3s size 4", "4s size 4", "5s size 4", "6s size 0", "66s "+(stop.Deleted|stop.Signaled).String())
	})
}

// The writes of the operator wake no daemon, also if the watch shows them before the API server responds, or if the
// response is lost.
func TestDaemonIsNotWokenByWritesOfItsOperator(t *testing.T) {
	seen := &looks{}
	withOperator(t, func(r *kopf.Registry) {
		r.OnUpdate(examples, func(_ context.Context, c *kopf.Change) error {
			size, _ := c.Spec().Int64("size")
			c.Patch().Set(size+100, "spec", "size")
			c.Patch().Set("done", "metadata", "annotations", "example.com/state")
			return nil
		}, kopf.ID("grow"), kopf.Field("spec.color"))
		r.Daemon(examples, func(ctx context.Context, t *kopf.Task) error {
			for !t.WaitForChange(time.Hour) {
				size, _ := t.Spec().Int64("size")
				seen.add("size %d", size)
				t.Patch().Set(size+1, "spec", "size")
				if err := t.Write(ctx); err != nil {
					return err
				}
				now, _ := t.Spec().Int64("size")
				seen.add("wrote %d", now)
			}
			return nil
		}, kopf.ID("watch"), kopf.WakeOn("spec.size"), kopf.WakeOn("metadata"))
	}, func(t *testing.T, h *kopftest.Harness) {
		seen.began = time.Now()
		one := newExample()
		h.Create(one)
		h.Advance(time.Second)
		h.Patch(one, `{"spec":{"color":"red"}}`)
		h.Advance(time.Second)
		h.Patch(one, `{"spec":{"size":200}}`)
		h.Advance(time.Minute)
		seen.expect(t, "2s size 200", "2s wrote 201")
	})
}

// A change between the look at the object and the wait wakes at once, and so does one during a write.
func TestNoChangeIsLost(t *testing.T) {
	seen := &looks{}
	var h *kopftest.Harness
	withOperator(t, func(r *kopf.Registry) {
		r.Daemon(examples, func(ctx context.Context, t *kopf.Task) error {
			for {
				size, _ := t.Spec().Int64("size")
				seen.add("size %d", size)
				time.Sleep(10 * time.Second) // the object changes meanwhile
				t.Patch().Set(size, "status", "seen")
				if err := t.Write(ctx); err != nil {
					return err
				}
				if t.WaitForChange(24 * time.Hour) {
					return nil
				}
			}
		}, kopf.ID("watch"), kopf.WakeOn("spec"))
	}, func(t *testing.T, harness *kopftest.Harness) {
		h = harness
		seen.began = time.Now()
		one := newExample()
		h.Create(one)
		h.Advance(5 * time.Second)
		h.Patch(one, `{"spec":{"size":4}}`)
		h.Advance(5 * time.Second)
		h.Patch(one, `{"spec":{"size":5}}`)
		h.Advance(time.Minute)
		seen.expect(t, "0s size 3", "10s size 4", "20s size 5")
		if status, _ := content(h, one)["status"].(map[string]any); status["seen"] != int64(5) {
			t.Errorf("got %v", status)
		}
	})
}

// content returns an object as it is stored.
func content(h *kopftest.Harness, one *unstructured.Unstructured) map[string]any {
	now := one.DeepCopy()
	h.Get(now)
	return now.Object
}

// The operator writes what a daemon hands in, with what others have changed, and the daemon goes on.
func TestDaemonWritesBeforeItReturns(t *testing.T) {
	var h *kopftest.Harness
	one := newExample()
	withOperator(t, func(r *kopf.Registry) {
		r.Daemon(examples, func(ctx context.Context, task *kopf.Task) error {
			for number := int64(1); !task.Wait(time.Second); number++ {
				task.Patch().Set(number, "status", "number")
				task.SetResult(map[string]any{"number": number})
				h.Patch(one, fmt.Sprintf(`{"metadata":{"labels":{"others":"%d"}}}`, number)) // the watch has not shown it yet
				if err := task.Write(ctx); err != nil {
					t.Error(err)
				}
				of, _ := task.Status().Int64("number")
				result, _ := task.Status().Int64("watch", "number")
				if of != number || result != number || task.Labels()["others"] != fmt.Sprint(number) || !task.Patch().Empty() || task.Result() != nil {
					t.Errorf("got %v in write %d", task.Body().Raw(), number)
				}
			}
			return nil
		}, kopf.ID("watch"))
	}, func(t *testing.T, harness *kopftest.Harness) {
		h = harness
		h.Create(one)
		h.Advance(10500 * time.Millisecond)
		h.Get(one)
		if one.GetLabels()["others"] != "10" {
			t.Errorf("got %v", one.Object)
		}
	})
}

func TestRefusedWriteIsAnErrorOfTheDaemon(t *testing.T) {
	var failures []error
	withOperator(t, func(r *kopf.Registry) {
		r.OnValidate(examples, func(_ context.Context, a *kopf.Admission) error {
			if size, _ := a.Spec().Int64("size"); size > 10 {
				return kopf.Reject("too large", 422)
			}
			return nil
		}, kopf.ID("check"))
		r.Daemon(examples, func(ctx context.Context, t *kopf.Task) error {
			t.Patch().Set(11, "spec", "size")
			failures = append(failures, t.Write(ctx))
			t.Patch().Set(7, "spec", "size")
			failures = append(failures, t.Write(ctx))
			t.Patch().Set("no path")
			failures = append(failures, t.Write(ctx))
			<-t.Stopped()
			return nil
		}, kopf.ID("watch"))
	}, func(t *testing.T, h *kopftest.Harness) {
		one := newExample()
		h.Create(one)
		h.Advance(time.Minute)
		if len(failures) != 3 || failures[0] == nil || failures[1] != nil || failures[2] == nil {
			t.Fatalf("got %v", failures)
		}
		var refused *kopf.WriteError
		if !errors.As(failures[0], &refused) || refused.ID != "watch" || refused.Name.Name != "one" || !strings.Contains(failures[0].Error(), "too large") ||
			!strings.Contains(failures[0].Error(), "default/one") || apierrors.ReasonForError(failures[0]) == metav1.StatusReasonUnknown && apierrors.IsConflict(failures[0]) {
			t.Errorf("got %v", failures[0])
		}
		if spec, _ := content(h, one)["spec"].(map[string]any); spec["size"] != int64(7) {
			t.Errorf("got %v", spec)
		}
		for _, line := range h.Logs() {
			if strings.Contains(fmt.Sprint(line), "the handler failed") {
				t.Errorf("got %s", line)
			}
		}
	})
}

// A write ends when there is nothing to write to anymore, and when the daemon does not want to wait.
func TestWriteEndsInTheEnd(t *testing.T) {
	var got []string
	note := func(err error) {
		switch {
		case err == nil:
			got = append(got, "written")
		case errors.Is(err, kopf.ErrGone):
			got = append(got, "gone")
		case errors.Is(err, context.DeadlineExceeded):
			got = append(got, "late")
		default:
			got = append(got, err.Error())
		}
	}
	withOperator(t, func(r *kopf.Registry) {
		r.OnUpdate(examples, func(context.Context, *kopf.Change) error {
			time.Sleep(time.Minute)
			return nil
		}, kopf.ID("slow"))
		r.Daemon(examples, func(ctx context.Context, t *kopf.Task) error {
			<-t.Changed() // the update is being handled, for a minute
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			t.Patch().Set("a", "status", "first")
			note(t.Write(short))
			t.Patch().Set("b", "status", "second")
			note(t.Write(ctx))
			<-t.Stopped()
			t.Patch().Set("c", "status", "third")
			note(t.Write(ctx)) // its object is kept until it returns
			time.Sleep(time.Minute)
			t.Patch().Set("d", "status", "fourth")
			err := t.Write(ctx)
			note(err)
			return err
		}, kopf.ID("watch"), kopf.WakeOn("spec"))
	}, func(t *testing.T, h *kopftest.Harness) {
		one := newExample()
		h.Create(one)
		h.Advance(time.Second)
		h.Patch(one, `{"spec":{"size":4}}`)
		h.Advance(61 * time.Second)
		status, _ := content(h, one)["status"].(map[string]any)
		if status["first"] != "a" || status["second"] != "b" {
			t.Errorf("got %v", status)
		}
		h.Delete(one)
		h.Advance(time.Second)
		if status, _ := content(h, one)["status"].(map[string]any); status["third"] != "c" {
			t.Errorf("got %v", status)
		}
		h.Patch(one, `{"metadata":{"finalizers":null}}`)
		h.Advance(2 * time.Minute)
		if want := []string{"late", "written", "written", "gone"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		for _, line := range h.Logs() {
			if strings.Contains(fmt.Sprint(line), "does not exist anymore") {
				t.Errorf("got %s", line)
			}
		}
	})
}

// An operator that exits lets a daemon write, whatever else it waits for, and ends in time if the daemon does not.
func TestDaemonWritesAtTheExit(t *testing.T) {
	withOperator(t, func(r *kopf.Registry) {
		r.OnUpdate(examples, func(ctx context.Context, _ *kopf.Change) error {
			<-ctx.Done()
			return ctx.Err()
		}, kopf.ID("endless"))
		r.Daemon(examples, func(_ context.Context, t *kopf.Task) error {
			<-t.Stopped()
			t.Patch().Set("bye", "status", "last")
			return t.Write(context.Background()) //nolint:contextcheck // it must end nevertheless
		}, kopf.ID("watch"))
	}, func(t *testing.T, h *kopftest.Harness) {
		one := newExample()
		h.Create(one)
		h.Advance(time.Second)
		h.Restart()
		if status, _ := content(h, one)["status"].(map[string]any); status["last"] != "bye" {
			t.Errorf("got %v", status)
		}
		h.Patch(one, `{"spec":{"size":4}, "status":{"last":null}}`)
		h.Advance(time.Second)
		began := time.Now()
		h.Restart()
		if status, _ := content(h, one)["status"].(map[string]any); status["last"] != "bye" || time.Since(began) > 30*time.Second {
			t.Errorf("got %v after %s", status, time.Since(began))
		}
	})
}

func TestDaemonKnowsItsChildren(t *testing.T) {
	seen := &looks{}
	withOperator(t, func(r *kopf.Registry) {
		r.Daemon(examples, func(ctx context.Context, t *kopf.Task) error {
			for {
				var names []string
				for _, child := range t.Children() {
					names = append(names, child.Kind()+" "+child.Name()+" "+child.Labels()["phase"])
				}
				seen.add("%s", strings.Join(names, ", "))
				if len(names) == 0 {
					made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace(), Name: "made"}}
					if err := hierarchy.Adopt(ctx, made); err != nil {
						return err
					}
					if err := t.Client().Create(ctx, made); err != nil {
						return err
					}
				}
				if t.WaitForChange(24 * time.Hour) {
					return nil
				}
			}
		}, kopf.ID("watch"), kopf.WatchChildren(kopf.Resource("v1", "configmaps")), kopf.WatchChildrenOf[*corev1.Secret]())
	}, func(t *testing.T, h *kopftest.Harness) {
		seen.began = time.Now()
		one := newExample()
		h.Create(one)
		h.Create(newTheme()) // it has no owner
		h.Advance(time.Second)
		made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "made"}}
		h.Get(made)
		h.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "key", OwnerReferences: made.OwnerReferences}})
		h.Advance(time.Second)
		h.Patch(made, `{"metadata":{"labels":{"phase":"ready"}}}`)
		h.Advance(time.Second)
		h.Delete(made)
		h.Advance(time.Second)
		h.Crash() // a new daemon knows all
		seen.expect(t, "0s ", "0s ConfigMap made ", "1s ConfigMap made , Secret key ", "2s ConfigMap made ready, Secret key ", "3s Secret key ", "4s Secret key ")
	})
}

// A daemon that reconciles ends at the same state after every fault, and is not woken by its writes.
func TestDaemonReconcilesDespiteFaults(t *testing.T) {
	kopftest.Sweep(t, func(t *testing.T, fault kopftest.Option) {
		h := kopftest.New(t, func() *kopf.Registry {
			r := kopf.NewRegistry()
			r.Daemon(examples, func(ctx context.Context, t *kopf.Task) error {
				for looks := 0; ; looks++ {
					if looks > 20 {
						return kopf.Permanent(errors.New("it wakes itself"))
					}
					size, _ := t.Spec().Int64("size")
					t.Patch().Set(size, "status", "size")
					t.Patch().Set("seen", "metadata", "labels", "example.com/state")
					if err := t.Write(ctx); err != nil {
						return err
					}
					if t.WaitForChange(365 * 24 * time.Hour) {
						return nil
					}
				}
			}, kopf.ID("watch"), kopf.WakeOn("spec"), kopf.WakeOn("metadata.labels"), kopf.WakeOn("status"))
			return r
		}, fault, kopftest.CRDs(definitions))
		one := newExample()
		h.Create(one)
		h.Settle()
		for size := range 3 {
			h.Patch(one, fmt.Sprintf(`{"spec":{"size":%d}}`, size+10))
			h.Settle()
		}
	})
}
