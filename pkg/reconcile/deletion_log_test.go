package reconcile

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// logbook is the log of an operator, which refers to objects as they are known when a line is written.
type logbook struct {
	mu    sync.Mutex
	lines []string
}

// keep makes an operator log to the logbook, and post no events.
func (l *logbook) keep(c *Config) {
	c.Poster = nil
	c.Logger = funcr.New(func(_, line string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lines = append(l.lines, line)
	}, funcr.Options{Verbosity: 1})
}

// expectUID expects that all lines are about the object with the uid, and that these words are among them.
func (l *logbook) expectUID(t *testing.T, uid string, words ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if !strings.Contains(line, `"object"={"kind"="KopfExample" "namespace"="ns" "name"="a" "uid"="`+uid+`" `) {
			t.Errorf("the uid is not in the line %s", line)
		}
	}
	all := strings.Join(l.lines, "\n")
	for _, want := range words {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not in the log:\n%s", want, all)
		}
	}
}

// The watch can show that the object is gone, or that another one has its name, before the operator logs what it has done.
// People look for the uid then, as the name no longer says which object it was.
func TestAllLinesOfADeletionHaveTheUID(t *testing.T) {
	leave := func(l *lone) func() error {
		return func() error { l.forget(); return nil }
	}
	tests := map[string]struct {
		happens func(l *lone) // in the last call of the handler
		lines   []string
	}{
		"the watch shows the end first": {
			func(l *lone) { l.server.after = leave(l) },
			[]string{`"The handler succeeded."`, `"The deletion is processed: 1 succeeded; 0 failed."`},
		},
		"the watch shows another object of the name": {
			func(l *lone) {
				l.server.after = func() error {
					l.server.object = m{"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": m{"name": "a", "namespace": "ns", "uid": "u-2", "resourceVersion": "99"}}
					l.show()
					return nil
				}
			},
			[]string{`"The handler succeeded."`, `"The deletion is processed: 1 succeeded; 0 failed."`},
		},
		"others remove the finalizer": {
			func(l *lone) { l.server.remove(); l.forget() }, nil,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var l *lone
				var log logbook
				l = newLone(t, marked, func(r *registry.Registry) {
					r.Add(handler.Delete(selector.New("kopfexamples"), handlertest.Function(func(_ context.Context, c *handler.Call) error {
						if c.Attempt.Retry == 0 {
							c.Context.Logger.Info("Not yet.")
							return handler.Temporary(errBroken, time.Minute)
						}
						test.happens(l)
						c.Context.Logger.Info("Gone.")
						return nil
					}), handler.ID("delete")))
				}, log.keep)
				wake, err := l.pass()
				if err != nil || wake != time.Minute {
					t.Fatalf("got %s, %v", wake, err)
				}
				time.Sleep(wake)
				if _, err := l.pass(); err != nil {
					t.Fatal(err)
				}
				log.expectUID(t, "u-1", append(test.lines, `"The deletion is in progress."`, `"Not yet."`, `"The handler will be retried."`, `"Gone."`)...)
			})
		})
	}
}

// A daemon can end long after its object.
func TestLinesAboutTheDaemonOfAnObjectThatIsGoneHaveTheUID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logbook
		l := newLone(t, m{}, func(r *registry.Registry) {
			r.Add(handler.Daemon(selector.New("kopfexamples"), handlertest.Function(func(_ context.Context, task *handler.Call) error {
				<-task.Stopped()
				time.Sleep(10 * time.Minute)
				task.Context.Logger.Info("Bye.")
				return handler.Permanent(errBroken)
			}), handler.ID("daemon")))
		}, log.keep)
		l.rest()
		synctest.Wait()
		l.server.remove()
		l.forget()
		if _, err := l.look(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		l.engine.supervisor.Stop(context.Background())
		log.expectUID(t, "u-1", `"Bye."`, `"The handler failed permanently."`)
	})
}

// The deletion is the last event, and the cache has no object for it.
func TestLinesAboutTheEventOfADeletionHaveTheUID(t *testing.T) {
	var log logbook
	l := newLone(t, m{}, func(r *registry.Registry) {
		r.Add(handler.Watch(selector.New("kopfexamples"), handlertest.Function(func(_ context.Context, e *handler.Call) error {
			e.Context.Logger.Info("Deleted.")
			return errBroken
		}), handler.ID("event"), handlertest.When(func(arguments *handler.Call) bool {
			arguments.Context.Logger.Info("Filtered.")
			return true
		})))
	}, log.keep)
	l.show()
	last := l.engine.resources.get(kex.String()).Cached(keyOf("a").NamespacedName)
	l.forget()
	l.engine.backlog.Open()
	l.engine.backlog.Push(keyOf("a"), object.WatchEvent{Type: watch.Deleted, Snapshot: last})
	if _, err := l.Reconcile(t.Context(), keyOf("a")); err != nil {
		t.Fatal(err)
	}
	l.detached.Wait()
	log.expectUID(t, "u-1", `"Filtered."`, `"Deleted."`, `"The event handler failed; this is ignored."`)
}
