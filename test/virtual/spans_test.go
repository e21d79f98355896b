package virtual

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/internal/manifests"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
	"github.com/kopf-go/kopf/pkg/tracing"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// traced is an operator with a tracer, in virtual time.
type traced struct {
	*testing.T
	spans   operators.Spans
	config  *rest.Config
	client  client.Client
	fails   atomic.Bool // the next patch of the operator
	declare func(*kopf.Registry)
	stop    func()
}

// withTracer runs a test of an operator with a tracer.
func withTracer(t *testing.T, declare func(*kopf.Registry), test func(*traced)) {
	t.Helper()
	all, err := manifests.Require("../../examples/crd")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		o := &traced{T: t, config: kopftest.NewAPIServer(t).Config(), declare: declare}
		if o.client, err = client.New(o.config, client.Options{}); err != nil {
			t.Fatal(err)
		}
		for _, one := range all {
			o.must(o.client.Create(t.Context(), one.DeepCopy()))
		}
		o.start()
		defer func() { o.stop() }()
		test(o)
	})
}

func (o *traced) must(err error) {
	o.Helper()
	if err != nil {
		o.Fatal(err)
	}
}

// start starts the operator, and waits until it is at rest.
func (o *traced) start() {
	o.Helper()
	r := kopf.NewRegistry()
	o.declare(r)
	config := rest.CopyConfig(o.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return testenv.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPatch && o.fails.CompareAndSwap(true, false) {
				return nil, errors.New("out of order")
			}
			return next.RoundTrip(r)
		})
	})
	options := kopf.Options{Registry: r, Config: config, Tracer: &o.spans}
	options.Settings.Name = "example.com"
	options.Settings.Networking.QPS = -1
	options.Settings.Watching.InactivityTimeout = -1
	options.Settings.Peering.Standalone = true
	operator, err := kopf.NewOperator(options)
	o.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- operator.Run(ctx) }()
	o.stop = func() {
		cancel()
		o.must(<-ended)
		o.stop = func() {}
	}
	select {
	case <-operator.Ready():
	case err := <-ended:
		o.Fatalf("the operator has ended: %v", err)
	}
	o.advance(time.Second)
}

func (o *traced) advance(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// create creates the example, with an annotation unless it is empty.
func (o *traced) create(traceparent string) {
	o.Helper()
	example := newExample()
	if traceparent != "" {
		example.SetAnnotations(map[string]string{"traceparent": traceparent})
	}
	o.must(o.client.Create(o.Context(), example))
	o.advance(time.Second)
}

// patch changes the example.
func (o *traced) patch(merge string) {
	o.Helper()
	o.must(o.client.Patch(o.Context(), newExample(), client.RawPatch(types.MergePatchType, []byte(merge))))
	o.advance(time.Second)
}

func (o *traced) expect(tree string) {
	o.Helper()
	if got := o.spans.Tree(); got != tree {
		o.Errorf("got the spans\n%s\nwant\n%s", got, tree)
	}
	for _, span := range o.spans.All() {
		if span.Ends != 1 || span.Name != "one" || span.Namespace != "default" || span.UID == "" && span.Kind != tracing.Write || span.Resource == "" {
			o.Errorf("unexpected: %+v", span)
		}
	}
}

var notYet = kopf.Temporary(errors.New("not yet"), time.Minute)

// failOnce fails the first attempt.
func failOnce(_ context.Context, c *kopf.Change) error {
	if c.Retry() == 0 {
		return notYet
	}
	return nil
}

func always(context.Context, *kopf.Change) error { return notYet }

func nothing(context.Context, *kopf.Change) error { return nil }

func newChild() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"},
		Data:       map[string]string{"size": "1"},
	}
}

func TestSpans(t *testing.T) {
	for name, test := range map[string]struct {
		declare func(*kopf.Registry)
		story   func(*traced)
		want    string
	}{
		"cycles have passes, and these have attempts and writes": {
			func(r *kopf.Registry) {
				r.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
					c.Subhandler("sub", failOnce)
					return nil
				}, kopf.ID("create"))
				r.OnUpdate(examples, func(context.Context, *kopf.Change) error { return kopf.Permanent(errors.New("broken")) }, kopf.ID("update"))
				r.OnDelete(examples, nothing, kopf.ID("delete"))
			},
			func(o *traced) {
				o.create("")
				o.advance(time.Minute)
				o.patch(`{"spec": {"size": 4}}`)
				o.must(o.client.Delete(o.Context(), newExample()))
			},
			`cycle create (succeeded)
  pass
    write finalizer (written)
    attempt create create 1 (waiting)
      attempt subhandler create/sub 1 (retried: not yet)
    write progress (written)
  pass
    attempt create create 2 (succeeded)
      attempt subhandler create/sub 2 (succeeded)
    write handled (written)
cycle update (failed)
  pass
    attempt update update 1 (failed: broken)
    write handled (written)
cycle delete (succeeded)
  pass
    attempt delete delete 1 (succeeded)
    write handled (written)
`,
		},
		"a pass that goes on with another cycle has a span in each": {
			func(r *kopf.Registry) {
				r.OnCreate(examples, func(_ context.Context, c *kopf.Change) error {
					c.Patch().Set(int64(5), "spec", "size")
					return nil
				}, kopf.ID("create"))
				r.OnUpdate(examples, nothing, kopf.ID("update"))
			},
			func(o *traced) { o.create("") },
			`cycle create (succeeded)
  pass
    attempt create create 1 (succeeded)
    write handled (written)
cycle update (succeeded)
  pass
    attempt update update 1 (succeeded)
    write handled (written)
`,
		},
		"a deletion supersedes a change": {
			func(r *kopf.Registry) {
				r.OnCreate(examples, always, kopf.ID("create"))
				r.OnDelete(examples, nothing, kopf.ID("delete"))
			},
			func(o *traced) {
				o.create("")
				o.must(o.client.Delete(o.Context(), newExample()))
			},
			`cycle create (superseded)
  pass
    write finalizer (written)
    attempt create create 1 (retried: not yet)
    write progress (written)
cycle delete (succeeded)
  pass
    attempt delete delete 1 (succeeded)
    write handled (written)
`,
		},
		"an object can be gone before its handlers have ended": {
			func(r *kopf.Registry) { r.OnCreate(examples, always, kopf.ID("create")) },
			func(o *traced) {
				o.create("")
				o.must(o.client.Delete(o.Context(), newExample()))
			},
			`cycle create (gone)
  pass
    attempt create create 1 (retried: not yet)
    write progress (written)
`,
		},
		"another process goes on with another span": {
			func(r *kopf.Registry) { r.OnCreate(examples, failOnce, kopf.ID("create")) },
			func(o *traced) {
				o.create("")
				o.stop()
				o.advance(time.Minute)
				o.start()
				cycles := o.spans.Of(tracing.Cycle)
				if len(cycles) != 2 || !cycles[1].Began.Equal(cycles[0].Began) || !cycles[1].Started.After(cycles[0].Ended) {
					o.Errorf("got %+v", cycles)
				}
			},
			`cycle create (interrupted)
  pass
    attempt create create 1 (retried: not yet)
    write progress (written)
cycle create (succeeded)
  pass
    attempt create create 2 (succeeded)
    write handled (written)
`,
		},
		"an attempt that the end of the operator cancels has not failed": {
			func(r *kopf.Registry) {
				r.OnCreate(examples, func(ctx context.Context, _ *kopf.Change) error {
					<-ctx.Done()
					return ctx.Err()
				}, kopf.ID("create"))
			},
			func(o *traced) { o.create("") },
			`cycle create (interrupted)
  pass
    attempt create create 1 (canceled: context canceled)
`,
		},
		"an error of the API server is one of the pass": {
			func(r *kopf.Registry) { r.OnUpdate(examples, nothing, kopf.ID("update")) },
			func(o *traced) {
				o.create("")
				o.fails.Store(true)
				o.patch(`{"spec": {"size": 4}}`)
				o.advance(time.Minute)
			},
			`pass
  write handled (written)
cycle update (succeeded)
  pass (: out of order)
    attempt update update 1 (succeeded)
    write handled (failed: out of order)
  pass
    write handled (written)
`,
		},
		"handlers of watch events belong to no pass": {
			func(r *kopf.Registry) {
				r.OnEvent(examples, func(context.Context, *kopf.WatchEvent) error { return errors.New("broken") }, kopf.ID("event"))
			},
			func(o *traced) { o.create("") },
			`attempt event event (ignored: broken)
`,
		},
		"the span of a daemon is made at its end": {
			func(r *kopf.Registry) {
				r.Timer(examples, func(ctx context.Context, tick *kopf.Tick) error {
					tick.SetResult(operators.SpanOf(ctx).String())
					return nil
				}, kopf.ID("timer"), kopf.Interval(time.Hour), kopf.InitialDelay(time.Second))
				r.Daemon(examples, func(ctx context.Context, task *kopf.Task) error {
					if span := operators.SpanOf(ctx); span != nil {
						return kopf.Permanent(errors.New("the context of a daemon has a span"))
					}
					if task.Retry() == 0 {
						return notYet
					}
					<-task.Stopped()
					return nil
				}, kopf.ID("daemon"))
			},
			func(o *traced) {
				o.create("")
				o.advance(2 * time.Minute)
				o.must(o.client.Delete(o.Context(), newExample()))
				o.advance(time.Minute)
				for _, span := range o.spans.Of(tracing.Attempt) {
					if span.Reason == "daemon" && span.Number == 2 && span.Ended.Sub(span.Began) < time.Minute {
						o.Errorf("got %+v", span)
					}
				}
			},
			`pass
  write finalizer (written)
attempt daemon daemon 1 (retried: not yet)
attempt timer timer 1 (succeeded)
pass
  write status status (written)
attempt daemon daemon 2 (succeeded)
pass
  write finalizer (written)
`,
		},
		"writes to children belong to the attempt, as do handlers of drift": {
			func(r *kopf.Registry) {
				r.Ensure(examples, func(context.Context, *kopf.Change) ([]client.Object, error) {
					return []client.Object{newChild()}, nil
				}, kopf.ID("children"))
				r.OnDrift(examples, func(context.Context, *kopf.Drift) (kopf.Resolution, error) { return kopf.RestoreDrift(), nil }, kopf.ID("drift"))
			},
			func(o *traced) {
				o.create("")
				change := client.RawPatch(types.MergePatchType, []byte(`{"data": {"size": "2"}}`))
				o.must(o.client.Patch(o.Context(), newChild(), change, client.FieldOwner("another")))
			},
			`cycle create (succeeded)
  pass
    attempt create children 1 (succeeded)
      write apply (written)
    write patch (written)
    write handled (written)
pass
  attempt disturbance children 1 (succeeded)
    attempt drift drift/configmaps/one (succeeded)
    write apply (written)
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			withTracer(t, test.declare, func(o *traced) {
				test.story(o)
				o.advance(time.Minute)
				o.stop()
				o.expect(test.want)
			})
		})
	}
}

// A client leaves its trace in an annotation. What it has caused belongs to that trace, and nothing else does.
func TestSpansOfClients(t *testing.T) {
	declare := func(r *kopf.Registry) {
		r.OnCreate(examples, failOnce, kopf.ID("create"))
		r.OnUpdate(examples, nothing, kopf.ID("update"))
		r.OnDelete(examples, nothing, kopf.ID("delete"))
		r.OnResume(examples, nothing, kopf.ID("resume"))
		r.Timer(examples, func(context.Context, *kopf.Tick) error { return nil }, kopf.ID("timer"), kopf.Interval(time.Hour))
	}
	withTracer(t, declare, func(o *traced) {
		o.create("a")
		o.stop()
		o.start()
		o.advance(time.Minute)
		o.patch(`{"spec": {"size": 4}}`)
		o.patch(`{"metadata": {"annotations": {"traceparent": "b"}}, "spec": {"size": 5}}`)
		o.stop()
		o.start()
		o.must(o.client.Delete(o.Context(), newExample()))
		o.advance(time.Minute)
		var got []string
		for _, span := range o.spans.Of(tracing.Cycle) {
			got = append(got, fmt.Sprintf("%s %s %t", span.Reason, span.From, span.IsCause))
		}
		for _, span := range o.spans.Of(tracing.Attempt) {
			if span.Reason == "timer" && (span.IsCause || span.From == "") {
				t.Errorf("got %+v", span)
			}
		}
		want := "create a true, create a true, resume a false, update a false, update b true, resume b false, delete b false"
		if got := strings.Join(got, ", "); got != want {
			t.Errorf("got the cycles %s, want %s", got, want)
		}
	})
}

// The context of a handler ends as without a tracer, and has all values.
func TestContextWithSpan(t *testing.T) {
	var cause error
	var logger error
	declare := func(r *kopf.Registry) {
		r.OnCreate(examples, func(ctx context.Context, _ *kopf.Change) error {
			_, logger = logr.FromContext(ctx)
			within, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			<-within.Done()
			cause = context.Cause(within)
			return cause
		}, kopf.ID("create"), kopf.Timeout(time.Minute))
	}
	withTracer(t, declare, func(o *traced) {
		o.create("")
		o.advance(2 * time.Minute)
		if cause == nil || !strings.Contains(cause.Error(), "has timed out after 1m0s") || logger != nil {
			t.Errorf("the context has ended with %v, and its logger is %v", cause, logger)
		}
	})
}
