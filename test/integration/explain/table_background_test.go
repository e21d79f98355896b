package explain

import (
	"context"
	"errors"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
)

func wait(_ context.Context, task *kopf.Task) error { <-task.Stopped(); return nil }

func tick(context.Context, *kopf.Tick) error { return nil }

// timed is about a timer of a new object.
func timed(options ...kopf.BackgroundOption) situation {
	return situation{
		arrange: func(s *scene) {
			s.Timer(examples, tick, append(options, kopf.ID("fn"))...)
			s.create("one")
		},
		stopped: []string{"no cause", "fn (timer): background"},
		running: []string{"no cause", "fn (timer): background", "idle", "timer fn: waiting"},
	}
}

// background are situations of daemons and timers.
var background = map[string]situation{
	"a daemon": {
		arrange: func(s *scene) {
			s.Daemon(examples, wait, kopf.ID("fn"))
			s.create("one")
			s.releaseAfterwards()
		},
		stopped: []string{"no cause", "fn (daemon): background"},
		running: []string{"no cause", "fn (daemon): background", "daemon fn: running", "idle"},
	},
	"a daemon has returned": {
		arrange: func(s *scene) {
			s.Daemon(examples, func(context.Context, *kopf.Task) error { return nil }, kopf.ID("fn"))
			s.create("one")
			s.releaseAfterwards()
		},
		stopped: []string{"no cause", "fn (daemon): background"},
		running: []string{"no cause", "fn (daemon): background", "daemon fn: ended", "idle"},
	},
	"a daemon is not for the object": {
		arrange: func(s *scene) {
			s.Daemon(examples, wait, kopf.ID("fn"), kopf.Labels(matching(kopf.Equal("db"))))
			s.patch(s.create("one"), labeledWeb)
		},
		stopped: []string{"no cause", "fn (daemon): mismatched"},
		running: []string{"no cause", "fn (daemon): mismatched", "idle"},
	},
	"a daemon of a suspended object": {
		arrange: func(s *scene) {
			s.Daemon(examples, wait, kopf.ID("fn"))
			asking("suspend", "forever")(s, s.create("one"))
			s.releaseAfterwards()
		},
		stopped: []string{"no cause", "held", "fn (daemon): suspended"},
		running: []string{"no cause", "held", "fn (daemon): suspended", "idle"},
	},
	"a timer":              timed(kopf.Interval(time.Hour)),
	"a timer that is idle": timed(kopf.Interval(time.Minute), kopf.Idle(time.Hour)),
}

// shop returns one child with the name of the object.
func shop(_ context.Context, c *kopf.Change) ([]client.Object, error) {
	return []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: c.Name(), Namespace: c.Namespace()}, Data: map[string]string{"color": "red"}}}, nil
}

// shops returns two children.
func shops(_ context.Context, c *kopf.Change) ([]client.Object, error) {
	var children []client.Object
	for _, name := range []string{"one-a", "one-b"} {
		if c.Name() != "one" {
			name = c.Name() + name
		}
		children = append(children, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.Namespace()}, Data: map[string]string{"color": "red"}})
	}
	return children, nil
}

// controlled returns the owner references of objects that another one controls.
func (s *scene) controlled() []metav1.OwnerReference {
	s.t.Helper()
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "other-", Namespace: s.namespace}}
	s.Expect(cluster.Client().Create(s.t.Context(), other)).To(gomega.Succeed())
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: other.UID, Controller: new(true)}}
}

// kept creates an object whose child an earlier operator has created.
func (s *scene) kept() *corev1.ConfigMap {
	s.t.Helper()
	s.Ensure(examples, shop, kopf.ID("shop"))
	former := s.start()
	s.isHandled(s.create("one"))
	former.Stop()
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: s.namespace}}
}

// failsToEnsure changes an object whose children are ensured so that the handler fails, which it repeats in
// an hour.
func (s *scene) failsToEnsure() client.Object {
	s.t.Helper()
	s.Ensure(examples, func(ctx context.Context, c *kopf.Change) ([]client.Object, error) {
		if color, _ := c.Spec().String("color"); color == "black" {
			return nil, errors.New("the color black is sold out")
		}
		return shop(ctx, c)
	}, kopf.ID("shop"), kopf.Backoff(time.Hour))
	former := s.start()
	obj := s.create("one")
	s.isHandled(obj)
	s.patch(obj.DeepCopy(), `{"spec":{"color":"black"}}`)
	s.shows("one", "shop (ensure): waiting")
	former.Stop()
	return obj
}

// ensured are situations of children.
var ensured = map[string]situation{
	"no child yet": {
		arrange: func(s *scene) {
			s.Ensure(examples, shop, kopf.ID("shop"))
			s.create("one")
		},
		stopped: []string{"create", "shop (ensure): due"},
		running: []string{"noop", "shop (ensure): done", "ConfigMap default/one (shop): ready", "idle"},
	},
	"a child was changed": {
		arrange: func(s *scene) { s.patch(s.kept(), `{"data":{"color":"blue"}}`) },
		stopped: []string{"noop", "shop (ensure): done", "ConfigMap default/one (shop): ready"},
		running: []string{"noop", "shop (ensure): done", "ConfigMap default/one (shop): ready", "idle"},
	},
	"a change of a child is accepted": {
		arrange: func(s *scene) {
			s.OnDrift(examples, func(context.Context, *kopf.Drift) (kopf.Resolution, error) { return kopf.AcceptDrift(), nil }, kopf.ID("painted"))
			s.patch(s.kept(), `{"data":{"color":"blue"}}`)
		},
		stopped: []string{"noop", "painted (drift): ready", "shop (ensure): done", "ConfigMap default/one (shop): ready"},
		running: []string{"noop", "painted (drift): ready", "shop (ensure): done", "ConfigMap default/one (shop): ready", "accepted data.color", "idle"},
	},
	"a child is kept": {
		arrange: func(s *scene) { s.patch(s.kept(), `{"metadata":{"annotations":{"kopf.zalando.org/keep":"true"}}}`) },
		stopped: []string{"noop", "shop (ensure): done", "ConfigMap default/one (shop): ready"},
		running: []string{"noop", "shop (ensure): done", "ConfigMap default/one (shop): ready", "idle"},
	},
	"a child belongs to another": {
		arrange: func(s *scene) {
			s.Ensure(examples, shop, kopf.ID("shop"))
			taken := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: s.namespace}}
			s.Expect(cluster.Client().Create(s.t.Context(), taken)).To(gomega.Succeed())
			s.create("one")
		},
		stopped: []string{"create", "shop (ensure): due"},
		running: []string{"create", "shop (ensure): waiting", "looks later"},
	},
	"children belong to another controller": {
		arrange: func(s *scene) {
			s.Ensure(examples, shops, kopf.ID("shop"), kopf.Backoff(time.Hour))
			for _, name := range []string{"one-a", "one-b"} {
				taken := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.namespace, OwnerReferences: s.controlled()}}
				s.Expect(cluster.Client().Create(s.t.Context(), taken)).To(gomega.Succeed())
			}
			s.create("one")
		},
		stopped: []string{"create", "shop (ensure): due"},
		running: []string{"create", "shop (ensure): waiting", "looks later"},
	},
	"a handler of children fails after a change": {
		arrange: func(s *scene) { s.failsToEnsure() },
		stopped: []string{"update", `add spec: {"color":"black"}`, "shop (ensure): waiting", "ConfigMap default/one (shop): ready"},
		running: []string{"update", `add spec: {"color":"black"}`, "shop (ensure): waiting", "ConfigMap default/one (shop): ready", "looks later"},
	},
	"a change with which a handler of children has failed is taken back": {
		arrange: func(s *scene) { s.patch(s.failsToEnsure(), `{"spec":{"color":"red"}}`) },
		stopped: []string{"update", `add spec: {"color":"red"}`, "shop (ensure): waiting", "ConfigMap default/one (shop): ready"},
		running: []string{"update", `add spec: {"color":"red"}`, "shop (ensure): waiting", "ConfigMap default/one (shop): ready", "looks later"},
	},
	"another controller takes a child": {
		arrange: func(s *scene) {
			child := s.kept()
			s.Expect(cluster.Client().Get(s.t.Context(), client.ObjectKeyFromObject(child), child)).To(gomega.Succeed())
			child.OwnerReferences = s.controlled()
			s.Expect(cluster.Client().Update(s.t.Context(), child)).To(gomega.Succeed())
		},
		stopped: []string{"noop", "shop (ensure): done", "ConfigMap default/one (shop): foreign"},
		running: []string{"resume", "shop (ensure): waiting", "ConfigMap default/one (shop): foreign", "looks later"},
	},
	"the filter of a handler with children does not match anymore": {
		arrange: func(s *scene) {
			s.Ensure(examples, shops, kopf.ID("shop"), kopf.Labels(matching(kopf.Equal("db"))))
			s.opened(`{"metadata":{"labels":{"app":"db"}}}`, "ConfigMap default/one-b (shop): ready")
			s.patch(s.object(), labeledWeb)
			s.releaseAfterwards()
		},
		stopped: []string{"update", `change metadata.labels.app: "db" -> "web"`, "shop (ensure): mismatched", "ConfigMap default/one-a (shop): ready", "ConfigMap default/one-b (shop): ready"},
		during: func(s *scene) {
			s.patch(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one-a", Namespace: s.namespace}}, `{"data":{"color":"blue"}}`)
			s.Expect(cluster.Client().Delete(s.t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one-b", Namespace: s.namespace}})).To(gomega.Succeed())
			other := s.create("other")
			s.patch(other.DeepCopy(), `{"metadata":{"labels":{"app":"db"}}}`)
			s.isHandled(other)
		},
		running: []string{"update", `change metadata.labels.app: "db" -> "web"`, "shop (ensure): mismatched", "ConfigMap default/one-a (shop): ready", "idle"},
	},
	"the handler of a child is not declared": {
		arrange: func(s *scene) {
			s.kept()
			s.Registry = kopf.NewRegistry()
			s.OnUpdate(examples, create, kopf.ID("fn"))
		},
		stopped: []string{"noop", "fn (update): done", "ConfigMap default/one (shop): undeclared"},
		running: []string{"noop", "fn (update): done", "ConfigMap default/one (shop): undeclared", "idle"},
	},
}
