package indexing_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/index"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/indexing"
)

// world is a cluster with pods, and an index of the values of their spec.value.
type world struct {
	t       *testing.T
	ctx     context.Context
	end     context.CancelFunc           // ends the watch
	index   *index.Index[string, string] // name -> value
	indexer *indexing.Indexer
	began   time.Time

	mu   sync.Mutex
	pods map[object.Key]*object.Body
	// answer is called by the indexing function before it returns the value.
	answer func(i *handler.Call) error
	calls  []string
	logs   []string
}

var errBroken = errors.New("broken")

// inBubble runs a test in a synctest bubble.
func inBubble(t *testing.T, test func(w *world), options ...handler.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w := &world{t: t, ctx: ctx, end: cancel, index: index.New[string, string](), pods: map[object.Key]*object.Body{}, began: time.Now()}
		w.answers(func(*handler.Call) error { return nil })
		d, err := handler.Index(selector.New("pods"), handlertest.Filling(w.index, w.value), append([]handler.Option{handler.ID("values")}, options...)...)
		if err != nil {
			t.Fatal(err)
		}
		w.indexer = w.start(d)
		defer w.indexer.Close()
		test(w)
	})
}

func (w *world) start(handlers ...*handler.Declaration) *indexing.Indexer {
	logger := funcr.New(func(_, line string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.logs = append(w.logs, line)
	}, funcr.Options{})
	return indexing.New(indexing.Config{
		Handlers: registry.Handlers(handlers),
		Current: func(owner object.Key) *object.Body {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.pods[owner]
		},
		Prepare: func(ctx context.Context, body *object.Body, d *handler.Declaration) (context.Context, handler.CallContext) {
			return ctx, handler.CallContext{Body: body, Logger: logger.WithValues("object", body.Name(), "handler", d.ID)}
		},
	})
}

// value is the indexing function.
func (w *world) value(_ context.Context, i *handler.Call) (any, error) {
	value, _ := i.Body().Spec().String("value")
	w.mu.Lock()
	w.calls = append(w.calls, fmt.Sprintf("%s %s %s #%d after %s", w.elapsed(), i.Name(), value, i.Attempt.Retry, i.Runtime()))
	answer := w.answer
	w.mu.Unlock()
	if err := answer(i); err != nil {
		return nil, err
	}
	if value == "" {
		return map[string]string(nil), nil
	}
	return map[string]string{i.Name(): value}, nil
}

// answers sets what the indexing function does from now on.
func (w *world) answers(answer func(i *handler.Call) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = answer
}

func (w *world) elapsed() string { return time.Since(w.began).String() }

func owner(name string) object.Key {
	return object.Key{Resource: "pods.v1", NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}}
}

// pod returns a pod. Further arguments with an equals sign are labels, others the uid.
func pod(name, value string, more ...string) *object.Body {
	uid, labels, spec := "uid-1", map[string]any{}, map[string]any{}
	for _, text := range more {
		if key, label, ok := strings.Cut(text, "="); ok {
			labels[key] = label
		} else {
			uid = text
		}
	}
	if value != "" {
		spec["value"] = value
	}
	return object.NewBody(map[string]any{
		"metadata": map[string]any{"name": name, "namespace": "ns", "uid": uid, "labels": labels}, "spec": spec,
	})
}

// put changes a pod before the watch reports it.
func (w *world) put(name string, body *object.Body) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pods[owner(name)] = body
}

// change changes a pod, and the watch reports it.
func (w *world) change(name, value string, more ...string) {
	body := pod(name, value, more...)
	w.put(name, body)
	w.indexer.Update(w.ctx, owner(name), body)
}

func (w *world) remove(name string) {
	w.put(name, nil)
	w.indexer.Remove(owner(name))
}

// has checks the content of the index: "name=value".
func (w *world) has(want ...string) {
	w.t.Helper()
	var got []string
	for name, values := range w.index.All() {
		for _, value := range values {
			got = append(got, name+"="+value)
		}
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		w.t.Errorf("after %s: got %v in the index, want %v", w.elapsed(), got, want)
	}
}

// called checks the calls since the last check: "1s name value #retry after runtime".
func (w *world) called(want ...string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.calls, want) {
		w.t.Errorf("after %s: got the calls\n%s\nwant\n%s", w.elapsed(), strings.Join(w.calls, "\n"), strings.Join(want, "\n"))
	}
	w.calls = nil
}

// logged checks the log lines since the last check by parts of them.
func (w *world) logged(want ...string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.logs) != len(want) {
		w.t.Errorf("got the lines\n%s\nwant %d", strings.Join(w.logs, "\n"), len(want))
	}
	for i, line := range w.logs[:min(len(w.logs), len(want))] {
		if !strings.Contains(line, want[i]) {
			w.t.Errorf("got the line\n%s\nwant %s", line, want[i])
		}
	}
	w.logs = nil
}

// loggedAtLast is logged for the last line only.
func (w *world) loggedAtLast(want string) {
	w.t.Helper()
	w.mu.Lock()
	w.logs = w.logs[max(0, len(w.logs)-1):]
	w.mu.Unlock()
	w.logged(want)
}

// forget drops the calls and lines so far.
func (w *world) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls, w.logs = nil, nil
}

// pass lets time pass, with everything that happens by then.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
