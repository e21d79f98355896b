package usercode

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/lifecycles"
	"github.com/kopf-go/kopf/pkg/model/memo"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage"
	"github.com/kopf-go/kopf/pkg/tracing"
)

// site is a place where the operator calls code of users for an object.
type site struct {
	// paths are those that call the code.
	paths []string
	// hasContext is set if the code has a context that it can wait for.
	hasContext bool
	// isolation is whether other handlers of the same object go on.
	isolation isolation
	declare   func(r *kopf.Registry, c *culprit)
	settings  func(s *kopf.Settings, c *culprit)
	// tracer returns the tracer of the operator; nil without one. Its first failure is reported, and no other.
	tracer func(c *culprit) tracing.Tracer
	// recorded is set if the recorder calls the code, too. At the end, it waits for the code.
	recorded bool
	// decodes is set if the code is a decoder.
	decodes bool
	// provoke lets something happen after which the code is called for an object. It can be nil.
	provoke func(y *story, name string)
}

// isolation is whether the other handlers of an object go on while code misbehaves for it.
type isolation int

const (
	never   isolation = iota // it is unknown which handlers apply, or what was handled
	returns                  // they do when the code returns
	always
)

func (c *culprit) change() func(context.Context, *kopf.Change) error {
	return func(ctx context.Context, o *kopf.Change) error { return c.do(ctx, o.Name()) }
}

func nothing(context.Context, *kopf.Change) error { return nil }

func (c *culprit) predicate(a kopf.Arguments) bool {
	c.ask(a.Name())
	return true
}

func (c *culprit) match(_ object.Value, a kopf.Arguments) bool {
	c.ask(a.Name())
	return true
}

func (c *culprit) when() kopf.Option { return kopf.When(c.predicate) }

func idle(ctx context.Context, o *kopf.Task) error { <-o.Stopped(); return nil }

func noTick(context.Context, *kopf.Tick) error { return nil }

func children(_ context.Context, o *kopf.Change) ([]client.Object, error) {
	return []client.Object{&corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: o.Name()},
		Data:       map[string]string{"size": fmt.Sprint(o.Spec().Map()["size"])},
	}}, nil
}

// text is a value whose encoding misbehaves.
type text struct {
	c    *culprit
	name string
}

func (t text) MarshalJSON() ([]byte, error) {
	t.c.ask(t.name)
	return []byte(`"text"`), nil
}

// failure is an error whose text misbehaves.
type failure struct {
	c    *culprit
	name string
}

func (f failure) Error() string {
	f.c.ask(f.name)
	return "a failure"
}

var sites = map[string]site{
	"create": {paths: []string{created, retried}, hasContext: true, isolation: returns, declare: func(r *kopf.Registry, c *culprit) {
		r.OnCreate(examples, c.change(), kopf.ID("site"))
	}},
	"update": {paths: []string{updated, paused}, hasContext: true, isolation: returns, declare: func(r *kopf.Registry, c *culprit) {
		r.OnUpdate(examples, c.change(), kopf.ID("site"))
	}},
	"field": {paths: []string{created, retried, updated, paused}, hasContext: true, isolation: returns, declare: func(r *kopf.Registry, c *culprit) {
		r.OnField(examples, "spec.size", c.change(), kopf.ID("site"))
	}},
	"delete": {paths: []string{deleted}, hasContext: true, isolation: returns, declare: func(r *kopf.Registry, c *culprit) {
		r.OnDelete(examples, c.change(), kopf.ID("site"))
	}},
	"resume": {paths: []string{resumed}, hasContext: true, isolation: returns, declare: func(r *kopf.Registry, c *culprit) {
		r.OnResume(examples, c.change(), kopf.ID("site"))
	}},
	"sub-handler": {paths: []string{created, retried, updated, paused}, hasContext: true, isolation: returns, declare: func(r *kopf.Registry, c *culprit) {
		fn := func(_ context.Context, o *kopf.Change) error {
			o.Subhandler("sub", c.change())
			return nil
		}
		r.OnCreate(examples, fn, kopf.ID("site"))
		r.OnUpdate(examples, fn, kopf.ID("site"))
	}},
	"sub-handler that is executed": {paths: []string{created, retried, updated, paused}, hasContext: true, isolation: returns, declare: func(r *kopf.Registry, c *culprit) {
		fn := func(ctx context.Context, o *kopf.Change) error {
			o.Subhandler("sub", c.change())
			return o.Execute(ctx)
		}
		r.OnCreate(examples, fn, kopf.ID("site"))
		r.OnUpdate(examples, fn, kopf.ID("site"))
	}},
	"event": {paths: []string{resumed, created, retried, updated, deleted, paused}, hasContext: true, isolation: returns, declare: func(r *kopf.Registry, c *culprit) {
		r.OnEvent(examples, func(ctx context.Context, o *kopf.WatchEvent) error { return c.do(ctx, o.Name()) }, kopf.ID("site"))
	}},
	"daemon": {paths: []string{resumed, created, retried, updated, paused}, hasContext: true, isolation: always, declare: func(r *kopf.Registry, c *culprit) {
		r.Daemon(examples, func(ctx context.Context, o *kopf.Task) error {
			for {
				if err := c.do(ctx, o.Name()); err != nil {
					return err
				}
				if o.Wait(10 * time.Second) {
					return nil
				}
			}
		}, kopf.ID("site"), kopf.CancellationTimeout(time.Second))
	}},
	"timer": {paths: []string{resumed, created, retried, updated, paused}, hasContext: true, isolation: always, declare: func(r *kopf.Registry, c *culprit) {
		r.Timer(examples, func(ctx context.Context, o *kopf.Tick) error { return c.do(ctx, o.Name()) }, kopf.ID("site"), kopf.Interval(10*time.Second))
	}},
	"index": {paths: []string{resumed, created, retried, updated, deleted, paused}, hasContext: true, isolation: always, declare: func(r *kopf.Registry, c *culprit) {
		kopf.NewIndex(r, examples, func(ctx context.Context, o *kopf.Indexed) (map[string]string, error) {
			return nil, c.do(ctx, o.Name())
		}, kopf.ID("site"))
	}},
	"ensure": {paths: []string{resumed, created, retried, updated, paused}, hasContext: true, isolation: returns, declare: func(r *kopf.Registry, c *culprit) {
		r.Ensure(examples, func(ctx context.Context, o *kopf.Change) ([]client.Object, error) {
			if err := c.do(ctx, o.Name()); err != nil {
				return nil, err
			}
			return children(ctx, o)
		}, kopf.ID("site"))
	}},
	"child": {paths: []string{resumed, created, retried, updated, paused}, hasContext: true, isolation: returns, declare: func(r *kopf.Registry, c *culprit) {
		r.Ensure(examples, children, kopf.ID("children"))
		r.OnChild(examples, kopf.Resource("v1", "configmaps"), func(ctx context.Context, o *kopf.ChildChange) error {
			return c.do(ctx, o.Name())
		}, kopf.ID("site"))
	}},
	"transformation": {paths: []string{created, retried, updated, paused}, isolation: returns, declare: func(r *kopf.Registry, c *culprit) {
		fn := func(_ context.Context, o *kopf.Change) error {
			name := o.Name()
			o.Patch().Apply(func(*unstructured.Unstructured) error { c.ask(name); return nil })
			return nil
		}
		r.OnCreate(examples, fn, kopf.ID("site"))
		r.OnUpdate(examples, fn, kopf.ID("site"))
	}},
	"transformation of a timer": {paths: []string{resumed, created, retried, updated, paused}, isolation: always, declare: func(r *kopf.Registry, c *culprit) {
		r.Timer(examples, func(_ context.Context, o *kopf.Tick) error {
			name := o.Name()
			o.Patch().Apply(func(*unstructured.Unstructured) error { c.ask(name); return nil })
			return nil
		}, kopf.ID("site"), kopf.Interval(10*time.Second))
	}},
	"result": {paths: []string{created, retried, updated, paused}, isolation: returns, declare: func(r *kopf.Registry, c *culprit) {
		fn := func(_ context.Context, o *kopf.Change) error { o.SetResult(text{c, o.Name()}); return nil }
		r.OnCreate(examples, fn, kopf.ID("site"))
		r.OnUpdate(examples, fn, kopf.ID("site"))
	}},
	"result of an event handler": {paths: []string{resumed, created, retried, updated, deleted, paused}, isolation: returns, declare: func(r *kopf.Registry, c *culprit) {
		r.OnEvent(examples, func(_ context.Context, o *kopf.WatchEvent) error { o.SetResult(text{c, o.Name()}); return nil }, kopf.ID("site"))
	}},
	"result of a timer": {paths: []string{resumed, created, retried, updated, paused}, isolation: always, declare: func(r *kopf.Registry, c *culprit) {
		r.Timer(examples, func(_ context.Context, o *kopf.Tick) error { o.SetResult(text{c, o.Name()}); return nil }, kopf.ID("site"), kopf.Interval(10*time.Second))
	}},
	"result of a sub-handler": {paths: []string{created, retried, updated, paused}, isolation: returns, declare: func(r *kopf.Registry, c *culprit) {
		fn := func(_ context.Context, o *kopf.Change) error {
			o.Subhandler("sub", func(_ context.Context, o *kopf.Change) error { o.SetResult(text{c, o.Name()}); return nil })
			return nil
		}
		r.OnCreate(examples, fn, kopf.ID("site"))
		r.OnUpdate(examples, fn, kopf.ID("site"))
	}},
	"error": {paths: []string{created, retried, updated, paused}, isolation: returns, declare: func(r *kopf.Registry, c *culprit) {
		fn := func(_ context.Context, o *kopf.Change) error {
			if o.Retry() > 1 {
				return nil
			}
			return failure{c, o.Name()}
		}
		r.OnCreate(examples, fn, kopf.ID("site"), kopf.Backoff(5*time.Second))
		r.OnUpdate(examples, fn, kopf.ID("site"), kopf.Backoff(5*time.Second))
	}},
	"error of a timer": {paths: []string{resumed, created, retried, updated, paused}, isolation: always, declare: func(r *kopf.Registry, c *culprit) {
		r.Timer(examples, func(_ context.Context, o *kopf.Tick) error { return failure{c, o.Name()} }, kopf.ID("site"), kopf.Interval(10*time.Second))
	}},
	"error of an event handler": {paths: []string{resumed, created, retried, updated, deleted, paused}, isolation: returns, declare: func(r *kopf.Registry, c *culprit) {
		r.OnEvent(examples, func(_ context.Context, o *kopf.WatchEvent) error { return failure{c, o.Name()} }, kopf.ID("site"))
	}},
	"value of a patch": {paths: []string{created, retried, updated, paused}, isolation: returns, declare: func(r *kopf.Registry, c *culprit) {
		fn := func(_ context.Context, o *kopf.Change) error {
			o.Patch().Set(text{c, o.Name()}, "status", "text")
			return nil
		}
		r.OnCreate(examples, fn, kopf.ID("site"))
		r.OnUpdate(examples, fn, kopf.ID("site"))
	}},
	"memo": {paths: []string{created, retried, updated, paused}, isolation: returns, declare: func(r *kopf.Registry, c *culprit) {
		memo := memo.New(func() *culprit { return c }, nil)
		fn := func(_ context.Context, o *kopf.Change) error { memo.Of(o).ask(o.Name()); return nil }
		r.OnCreate(examples, fn, kopf.ID("site"))
		r.OnUpdate(examples, fn, kopf.ID("site"))
	}},
	"filter of a creation handler": {paths: []string{created, retried}, declare: func(r *kopf.Registry, c *culprit) {
		r.OnCreate(examples, nothing, kopf.ID("site"), c.when())
	}},
	"filter of an update handler": {paths: []string{updated, paused}, declare: func(r *kopf.Registry, c *culprit) {
		r.OnUpdate(examples, nothing, kopf.ID("site"), c.when())
	}},
	"filter of a deletion handler": {paths: []string{deleted}, declare: func(r *kopf.Registry, c *culprit) {
		r.OnDelete(examples, nothing, kopf.ID("site"), c.when())
	}},
	"filter of a resume handler": {paths: []string{resumed}, declare: func(r *kopf.Registry, c *culprit) {
		r.OnResume(examples, nothing, kopf.ID("site"), c.when())
	}},
	"filter of an event handler": {paths: []string{resumed, created, retried, updated, deleted, paused}, isolation: returns, declare: func(r *kopf.Registry, c *culprit) {
		r.OnEvent(examples, func(context.Context, *kopf.WatchEvent) error { return nil }, kopf.ID("site"), c.when())
	}},
	"filter of a daemon": {paths: []string{resumed, created, retried, updated, paused}, declare: func(r *kopf.Registry, c *culprit) {
		r.Daemon(examples, idle, kopf.ID("site"), c.when())
	}},
	"filter of a timer": {paths: []string{resumed, created, retried, updated, paused}, declare: func(r *kopf.Registry, c *culprit) {
		r.Timer(examples, noTick, kopf.ID("site"), kopf.Interval(10*time.Second), c.when())
	}},
	"filter of an index": {paths: []string{resumed, created, retried, updated, deleted, paused}, isolation: always, declare: func(r *kopf.Registry, c *culprit) {
		kopf.NewIndex(r, examples, func(context.Context, *kopf.Indexed) (map[string]string, error) { return nil, nil }, kopf.ID("site"), c.when())
	}},
	"filter of children": {paths: []string{resumed, created, retried, updated, paused}, declare: func(r *kopf.Registry, c *culprit) {
		r.Ensure(examples, children, kopf.ID("site"), c.when())
	}},
	"filter of a child handler": {paths: []string{resumed, created, retried, updated, paused}, declare: func(r *kopf.Registry, c *culprit) {
		r.Ensure(examples, children, kopf.ID("children"))
		r.OnChild(examples, kopf.Resource("v1", "configmaps"), func(ctx context.Context, o *kopf.ChildChange) error { return nil }, kopf.ID("site"), c.when())
	}},
	"filter of a sub-handler": {paths: []string{created, retried, updated, paused}, isolation: returns, declare: func(r *kopf.Registry, c *culprit) {
		fn := func(_ context.Context, o *kopf.Change) error { o.Subhandler("sub", nothing, c.when()); return nil }
		r.OnCreate(examples, fn, kopf.ID("site"))
		r.OnUpdate(examples, fn, kopf.ID("site"))
	}},
	"filter of a sub-handler that is executed": {paths: []string{created, retried, updated, paused}, isolation: returns, declare: func(r *kopf.Registry, c *culprit) {
		fn := func(ctx context.Context, o *kopf.Change) error {
			o.Subhandler("sub", nothing, c.when())
			return o.Execute(ctx)
		}
		r.OnCreate(examples, fn, kopf.ID("site"))
		r.OnUpdate(examples, fn, kopf.ID("site"))
	}},
	"drift": {
		paths: []string{resumed, created, updated, paused}, hasContext: true, isolation: returns,
		declare: func(r *kopf.Registry, c *culprit) {
			r.Ensure(examples, children, kopf.ID("children"))
			r.OnDrift(examples, func(ctx context.Context, o *kopf.Drift) (kopf.Resolution, error) {
				return kopf.RestoreDrift(), c.do(ctx, o.Name())
			}, kopf.ID("site"))
		},
		provoke: changeChild,
	},
	"filter of a drift handler": {
		paths: []string{resumed, created, updated, paused}, isolation: returns,
		declare: func(r *kopf.Registry, c *culprit) {
			r.Ensure(examples, children, kopf.ID("children"))
			r.OnDrift(examples, func(context.Context, *kopf.Drift) (kopf.Resolution, error) { return kopf.RestoreDrift(), nil }, kopf.ID("site"), c.when())
		},
		provoke: changeChild,
	},
	"decoding": {decodes: true, paths: []string{updated, paused}, declare: func(r *kopf.Registry, c *culprit) {
		kopf.For[*picky](r).OnUpdate(func(context.Context, *picky, *kopf.Change) error { return nil }, kopf.ID("site"))
	}},
	"decoding for a timer": {decodes: true, paths: []string{resumed, created, retried, updated, paused}, declare: func(r *kopf.Registry, c *culprit) {
		kopf.For[*picky](r).Timer(func(context.Context, *picky, *kopf.Tick) error { return nil }, kopf.ID("site"), kopf.Interval(10*time.Second))
	}},
	"decoding for an event handler": {decodes: true, paths: []string{resumed, created, retried, updated, deleted, paused}, isolation: returns, declare: func(r *kopf.Registry, c *culprit) {
		kopf.For[*picky](r).OnEvent(func(context.Context, *picky, *kopf.WatchEvent) error { return nil }, kopf.ID("site"))
	}},
	"filter of a Go type": {paths: []string{created, retried}, declare: func(r *kopf.Registry, c *culprit) {
		kopf.For[*plain](r).OnCreate(func(context.Context, *plain, *kopf.Change) error { return nil }, kopf.ID("site"), kopf.WhenObject(func(o *plain) bool {
			c.ask(o.Name)
			return true
		}))
	}},
	"transformation of a Go type": {paths: []string{created, retried}, isolation: returns, declare: func(r *kopf.Registry, c *culprit) {
		kopf.For[*plain](r).OnCreate(func(_ context.Context, _ *plain, o *kopf.Change) error {
			kopf.Update(o, func(p *plain) error { c.ask(p.Name); return nil })
			return nil
		}, kopf.ID("site"))
	}},
	"memo in a filter": {paths: []string{created}, declare: func(r *kopf.Registry, c *culprit) {
		memos := map[string]*memo.Memo[int]{}
		for _, name := range allPaths {
			memos[name] = memo.New(nil, func(int) int { c.ask(name); return 0 })
		}
		r.OnCreate(examples, nothing, kopf.ID("site"), kopf.When(func(a kopf.Arguments) bool {
			if memo := memos[a.Name()]; memo != nil {
				memo.Of(a)
			}
			return true
		}))
	}},
	"filter of an event handler while recording": {
		paths: []string{resumed, created, retried, updated, deleted, paused}, isolation: returns,
		declare: func(r *kopf.Registry, c *culprit) {
			r.OnEvent(examples, func(context.Context, *kopf.WatchEvent) error { return nil }, kopf.ID("site"), c.when())
		},
		settings: func(s *kopf.Settings, c *culprit) { s.Recording.File = filepath.Join(c.folder, "recording") },
		recorded: true,
	},
	"label": {paths: []string{updated, paused}, declare: func(r *kopf.Registry, c *culprit) {
		r.OnUpdate(examples, nothing, kopf.ID("site"), kopf.Labels(map[string]kopf.Matcher{"app": kopf.MatchFunc(c.match)}))
	}},
	"annotation": {paths: []string{updated, paused}, declare: func(r *kopf.Registry, c *culprit) {
		r.OnUpdate(examples, nothing, kopf.ID("site"), kopf.Annotations(map[string]kopf.Matcher{"for": kopf.MatchFunc(c.match)}))
	}},
	"value": {paths: []string{updated, paused}, declare: func(r *kopf.Registry, c *culprit) {
		r.OnUpdate(examples, nothing, kopf.ID("site"), kopf.Field("spec.size"), kopf.Value(kopf.MatchFunc(c.match)))
	}},
	"value before": {paths: []string{created, retried, updated, paused}, declare: func(r *kopf.Registry, c *culprit) {
		r.OnField(examples, "spec.size", nothing, kopf.ID("site"), kopf.ValueBefore(kopf.MatchFunc(c.match)))
	}},
	"value after": {paths: []string{created, retried, updated, paused}, declare: func(r *kopf.Registry, c *culprit) {
		r.OnField(examples, "spec.size", nothing, kopf.ID("site"), kopf.ValueAfter(kopf.MatchFunc(c.match)))
	}},
	"initial delay": {paths: []string{resumed, created, retried, updated, paused}, isolation: returns, declare: func(r *kopf.Registry, c *culprit) {
		r.Daemon(examples, idle, kopf.ID("site"), kopf.InitialDelayFunc(func(a kopf.Arguments) time.Duration { c.ask(a.Name()); return 0 }))
	}},
	"interval": {paths: []string{resumed, created, retried, updated, paused}, isolation: returns, declare: func(r *kopf.Registry, c *culprit) {
		r.Timer(examples, func(context.Context, *kopf.Tick) error { return nil }, kopf.ID("site"), kopf.IntervalFunc(func(a kopf.Arguments) time.Duration { c.ask(a.Name()); return 10 * time.Second }))
	}},
	"schedule": {paths: []string{resumed, created, retried, updated, paused}, isolation: returns, declare: func(r *kopf.Registry, c *culprit) {
		r.Timer(examples, func(context.Context, *kopf.Tick) error { return nil }, kopf.ID("site"), kopf.ScheduleFunc(func(a kopf.Arguments) (string, error) { c.ask(a.Name()); return "@daily", nil }))
	}},
	"tracer": {paths: []string{created, retried, updated, deleted, paused, stopped}, isolation: returns, tracer: func(c *culprit) tracing.Tracer {
		return tracer(func(span tracing.Span) func() {
			c.ask(span.Name)
			return func() {}
		})
	}},
	"end of a span": {paths: []string{created, retried, updated, deleted, paused, stopped}, isolation: returns, tracer: func(c *culprit) tracing.Tracer {
		return tracer(func(span tracing.Span) func() { return func() { c.ask(span.Name) } })
	}},
	"lifecycle": {paths: []string{created, retried, updated, deleted, paused}, settings: func(s *kopf.Settings, c *culprit) {
		s.Execution.Lifecycle = func(due []lifecycles.Due) []lifecycles.Due {
			c.ask(due[0].Object.Name())
			return due
		}
	}},
	"DiffBase.Build":              {paths: []string{resumed, created, retried, updated, deleted, paused, stopped}, settings: withDiffBase(func(c *culprit) storage.DiffBase { return building{c: c} })},
	"DiffBase.Fetch":              {paths: []string{resumed, created, retried, updated, deleted, paused, stopped}, hasContext: true, settings: withDiffBase(func(c *culprit) storage.DiffBase { return fetching{c: c} })},
	"DiffBase.Store":              {paths: []string{created, retried, updated, paused}, hasContext: true, settings: withDiffBase(func(c *culprit) storage.DiffBase { return storing{c: c} })},
	"CycleBase.FetchCycle":        {paths: []string{retried}, hasContext: true, settings: withCycles("fetch")},
	"CycleBase.StoreCycle":        {paths: []string{retried}, hasContext: true, settings: withCycles("store")},
	"CycleBase.PurgeCycle":        {paths: []string{created, retried, updated, paused}, hasContext: true, settings: withCycles("purge")},
	"Hasher.Hashes":               {paths: []string{created, retried, updated, paused}, settings: withCycles("hashes")},
	"Progress.Fetch":              {paths: []string{resumed, created, retried, updated, deleted, paused, stopped}, hasContext: true, settings: withProgress("fetch")},
	"Progress.Store":              {paths: []string{retried, stopped}, hasContext: true, settings: withProgress("store")},
	"Progress.Purge":              {paths: []string{resumed, created, retried, updated, paused}, hasContext: true, settings: withProgress("purge")},
	"Progress.PurgeTouch":         {paths: []string{created, retried, updated, deleted, paused, stopped}, settings: withProgress("touch")},
	"RecordLister.UnknownRecords": {paths: []string{resumed}, hasContext: true, settings: withProgress("unknown")},
	"Eraser.Erase":                {paths: []string{deleted}, hasContext: true, isolation: always, settings: withProgress("erase")},
}

// tracer is a tracer whose spans are nothing but their ends.
type tracer func(tracing.Span) (end func())

// Start starts a span.
func (t tracer) Start(ctx context.Context, span tracing.Span) (context.Context, func(tracing.Result)) {
	end := t(span)
	return ctx, func(tracing.Result) { end() }
}

// changeChild changes the child of an object as another client does.
func changeChild(y *story, name string) {
	if y.get(example, name) == nil || name == deleted {
		return
	}
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	change := client.RawPatch(types.MergePatchType, []byte(`{"data": {"size": "changed"}}`))
	y.must(client.IgnoreNotFound(y.client.Patch(y.Context(), child, change, client.FieldOwner("another"))))
	y.advance(time.Minute)
}

// plain is a Go type of examples.
type plain struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
}

// DeepCopyObject copies the object.
func (p *plain) DeepCopyObject() runtime.Object {
	copied := *p
	copied.ObjectMeta = *p.ObjectMeta.DeepCopy()
	return &copied
}

// picky is a Go type whose decoder misbehaves.
type picky struct{ plain }

// DeepCopyObject copies the object.
func (p *picky) DeepCopyObject() runtime.Object {
	return &picky{plain: *p.plain.DeepCopyObject().(*plain)}
}

// UnmarshalJSON decodes the object, unless it misbehaves.
func (p *picky) UnmarshalJSON(text []byte) error {
	if err := json.Unmarshal(text, &p.plain); err != nil {
		return err
	}
	if c, ok := culprits.Load(p.Annotations["for"]); ok {
		c.(*culprit).ask(p.Name)
	}
	return nil
}

// scheme has a Go type of examples.
func scheme(decodes bool) *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	kind := schema.GroupVersionKind{Group: "kopf.dev", Version: "v1", Kind: example}
	if decodes {
		s.AddKnownTypeWithName(kind, &picky{})
	} else {
		s.AddKnownTypeWithName(kind, &plain{})
	}
	return s
}

type building struct {
	storage.AnnotationsDiffBase
	c *culprit
}

func (b building) Build(body *object.Body, extra []object.Path) object.Essence {
	b.c.ask(body.Name())
	return b.AnnotationsDiffBase.Build(body, extra)
}

type fetching struct {
	storage.AnnotationsDiffBase
	c *culprit
}

func (f fetching) Fetch(ctx context.Context, body *object.Body) (object.Essence, error) {
	if err := f.c.do(ctx, body.Name()); err != nil {
		return nil, err
	}
	return f.AnnotationsDiffBase.Fetch(ctx, body)
}

type storing struct {
	storage.AnnotationsDiffBase
	c *culprit
}

func (f storing) Store(ctx context.Context, body *object.Body, into storage.Patch, essence object.Essence) error {
	if err := f.c.do(ctx, body.Name()); err != nil {
		return err
	}
	return f.AnnotationsDiffBase.Store(ctx, body, into, essence)
}

// cycles is a storage of the open cycle of which one method misbehaves.
type cycles struct {
	storage.AnnotationsDiffBase
	c      *culprit
	method string
}

func (s cycles) do(ctx context.Context, method string, body *object.Body) error {
	if s.method != method {
		return nil
	}
	return s.c.do(ctx, body.Name())
}

func (s cycles) FetchCycle(ctx context.Context, body *object.Body) (*storage.Cycle, error) {
	if err := s.do(ctx, "fetch", body); err != nil {
		return nil, err
	}
	return s.AnnotationsDiffBase.FetchCycle(ctx, body)
}

func (s cycles) StoreCycle(ctx context.Context, body *object.Body, into storage.Patch, c *storage.Cycle) error {
	if err := s.do(ctx, "store", body); err != nil {
		return err
	}
	return s.AnnotationsDiffBase.StoreCycle(ctx, body, into, c)
}

func (s cycles) PurgeCycle(ctx context.Context, body *object.Body, into storage.Patch) error {
	if err := s.do(ctx, "purge", body); err != nil {
		return err
	}
	return s.AnnotationsDiffBase.PurgeCycle(ctx, body, into)
}

func (s cycles) Hashes(body *object.Body, into storage.Patch, essence object.Essence) storage.HashReason {
	_ = s.do(context.Background(), "hashes", body)
	return s.AnnotationsDiffBase.Hashes(body, into, essence)
}

func withCycles(method string) func(*kopf.Settings, *culprit) {
	return withDiffBase(func(c *culprit) storage.DiffBase { return cycles{c: c, method: method} })
}

func withDiffBase(made func(*culprit) storage.DiffBase) func(*kopf.Settings, *culprit) {
	return func(s *kopf.Settings, c *culprit) { s.Persistence.DiffBase = made(c) }
}

// progress is a storage of which one method misbehaves.
type progress struct {
	storage.AnnotationsProgress
	c      *culprit
	method string
}

func withProgress(method string) func(*kopf.Settings, *culprit) {
	return func(s *kopf.Settings, c *culprit) { s.Persistence.Progress = progress{c: c, method: method} }
}

func (p progress) do(ctx context.Context, method string, body *object.Body) error {
	if p.method != method {
		return nil
	}
	return p.c.do(ctx, body.Name())
}

func (p progress) Fetch(ctx context.Context, body *object.Body, id string) (*storage.Record, error) {
	if err := p.do(ctx, "fetch", body); err != nil {
		return nil, err
	}
	return p.AnnotationsProgress.Fetch(ctx, body, id)
}

func (p progress) Store(ctx context.Context, body *object.Body, into storage.Patch, id string, record *storage.Record) error {
	if err := p.do(ctx, "store", body); err != nil {
		return err
	}
	return p.AnnotationsProgress.Store(ctx, body, into, id, record)
}

func (p progress) Purge(ctx context.Context, body *object.Body, into storage.Patch, id string) error {
	if err := p.do(ctx, "purge", body); err != nil {
		return err
	}
	return p.AnnotationsProgress.Purge(ctx, body, into, id)
}

func (p progress) PurgeTouch(body *object.Body, into storage.Patch) {
	_ = p.do(context.Background(), "touch", body)
	p.AnnotationsProgress.PurgeTouch(body, into)
}

func (p progress) Erase(ctx context.Context, body *object.Body) error {
	return p.do(ctx, "erase", body)
}

func (p progress) UnknownRecords(ctx context.Context, body *object.Body, ids []string) ([]string, error) {
	if err := p.do(ctx, "unknown", body); err != nil {
		return nil, err
	}
	return p.AnnotationsProgress.UnknownRecords(ctx, body, ids)
}

// Code that misbehaves for one object holds back no other object, loses no outcome, and does not delay the end of
// the operator longer than documented.
func TestOthersGoOn(t *testing.T) {
	for name, s := range sites {
		for _, how := range []misbehavior{panics, exits, waits, blocks} {
			if how == waits && !s.hasContext {
				continue // the same as blocks
			}
			t.Run(name+" "+string(how), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { tell(t, s, how) })
			})
		}
	}
}
