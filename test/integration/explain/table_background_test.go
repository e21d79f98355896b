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
func timed(message string, options ...kopf.BackgroundOption) situation {
	return situation{
		arrange: func(s *scene) {
			s.Timer(examples, tick, append(options, kopf.ID("fn"))...)
			s.create("one")
		},
		stopped: []string{"- fn (timer) " + message},
		running: []string{"- fn (timer) " + message, "- The timer fn waits for its next call, or for a change of the object."},
	}
}

const isForever = "- fn (daemon) runs while an operator is active, until it returns or fails for good"

// background are situations of daemons and timers.
var background = map[string]situation{
	"a daemon": {
		arrange: func(s *scene) {
			s.Daemon(examples, wait, kopf.ID("fn"))
			s.create("one")
			s.releaseAfterwards()
		},
		stopped: []string{isForever, "- The object does not have the finalizer " + finalizer + " now: a running operator adds it while a daemon runs for the object."},
		running: []string{isForever, "- The daemon fn is running.", "- The object has the finalizer " + finalizer + ": its deletion will wait for this operator."},
	},
	"a daemon has returned": {
		arrange: func(s *scene) {
			s.Daemon(examples, func(context.Context, *kopf.Task) error { return nil }, kopf.ID("fn"))
			s.create("one")
			s.releaseAfterwards()
		},
		stopped: []string{isForever},
		running: []string{isForever, "- The daemon fn has ended, and is not called again.", nothingDue},
	},
	"a daemon is not for the object": {
		arrange: func(s *scene) {
			s.Daemon(examples, wait, kopf.ID("fn"), kopf.Labels(matching(kopf.Equal("db"))))
			s.patch(s.create("one"), labeledWeb)
		},
		stopped: []string{`- fn (daemon) is not for this object: the label app is "web", and the handler wants "db"`, "- The deletion waits for nothing."},
		running: []string{`- fn (daemon) is not for this object: the label app is "web", and the handler wants "db"`, nothingDue},
	},
	"a daemon of a suspended object": {
		arrange: func(s *scene) {
			s.Daemon(examples, wait, kopf.ID("fn"))
			asking("suspend", "forever")(s, s.create("one"))
			s.releaseAfterwards()
		},
		stopped: []string{"- fn (daemon) is stopped, because the object is suspended", "- The object is suspended until the request is removed: " + isSuspended},
		running: []string{"- fn (daemon) is stopped, because the object is suspended", nothingDue},
	},
	"a timer":              timed("is called every 1h while an operator is active, unless it has failed for good", kopf.Interval(time.Hour)),
	"a timer that is idle": timed("is called while an operator is active, when the object has not changed for 1h, unless it has failed for good", kopf.Interval(time.Minute), kopf.Idle(time.Hour)),
}

// shop returns one child with the name of the object.
func shop(_ context.Context, c *kopf.Change) ([]client.Object, error) {
	return []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: c.Name(), Namespace: c.Namespace()}, Data: map[string]string{"color": "red"}}}, nil
}

const (
	unknownDrift = "- Whether children differ from what a handler wants, or are missing, is not decidable here, because the handler is not called."
	isEnsured    = "- shop (ensure) has nothing to do: nothing has changed since the object was handled; it is called again when an operator starts, and when another client changes a child"
)

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

const (
	isTaken    = "the object belongs to another controller, Deployment.apps web (uid UID); it was not changed for KopfExample.kopf.dev default/one (uid UID): rename the child, or, if that controller does not need the object, delete it: kubectl delete configmaps "
	isLeft     = "- ConfigMap default/one (shop) belongs to another controller, Deployment.apps web (uid UID), not to KopfExample.kopf.dev default/one (uid UID): it is neither changed nor deleted until that lets it go; if that controller does not need it, delete it: kubectl delete configmaps/one -n default"
	isOutgrown = `- shop (ensure) is not for this object: the label app is "web", and the handler wants "db"; its 2 children stay: the operator neither restores nor deletes them as long as that is so`
	isUnkept   = "is ready; it is not restored, because the filters of shop do not match the object"
)

// kept creates an object whose child an earlier operator has created.
func (s *scene) kept() *corev1.ConfigMap {
	s.t.Helper()
	s.Ensure(examples, shop, kopf.ID("shop"))
	former := s.start()
	s.isHandled(s.create("one"))
	former.Stop()
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: s.namespace}}
}

const toCallShop = "→ to call it now: ./my-operator retry kopfexamples.kopf.dev/one -n default shop"

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
	s.says("one", "the color black is sold out")
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
		stopped: []string{isNew, "- shop (ensure) will run, if an operator is running", unknownDrift},
		running: []string{isHandled, isEnsured, "- ConfigMap default/one (shop) is ready", unknownDrift},
	},
	"a child was changed": {
		arrange: func(s *scene) { s.patch(s.kept(), `{"data":{"color":"blue"}}`) },
		stopped: []string{isHandled, isEnsured, "- ConfigMap default/one (shop) is ready", unknownDrift},
		running: []string{isHandled, "- ConfigMap default/one (shop) is ready", nothingDue},
	},
	"a change of a child is accepted": {
		arrange: func(s *scene) {
			s.OnDrift(examples, func(context.Context, *kopf.Drift) (kopf.Resolution, error) { return kopf.AcceptDrift(), nil }, kopf.ID("painted"))
			s.patch(s.kept(), `{"data":{"color":"blue"}}`)
		},
		stopped: []string{"- painted (drift) is asked when other clients change children of the object", "- ConfigMap default/one (shop) is ready", unknownDrift},
		running: []string{"- ConfigMap default/one (shop) is ready; it was accepted that others have changed data.color, until shop returns another value", nothingDue},
	},
	"a child is kept": {
		arrange: func(s *scene) { s.patch(s.kept(), `{"metadata":{"annotations":{"kopf.zalando.org/keep":"true"}}}`) },
		stopped: []string{"- ConfigMap default/one (shop) is ready; it is never deleted, because of the annotation kopf.zalando.org/keep"},
		running: []string{"- ConfigMap default/one (shop) is ready; it is never deleted, because of the annotation kopf.zalando.org/keep"},
	},
	"a child belongs to another": {
		arrange: func(s *scene) {
			s.Ensure(examples, shop, kopf.ID("shop"))
			taken := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: s.namespace}}
			s.Expect(cluster.Client().Create(s.t.Context(), taken)).To(gomega.Succeed())
			s.create("one")
		},
		stopped: []string{isNew, "- shop (ensure) will run, if an operator is running"},
		running: []string{"- shop (ensure) waits until TIME (in SOME TIME) after 1 attempt, the last error: the child ConfigMap default/one: the object belongs to no owner; it was not changed for KopfExample.kopf.dev default/one (uid UID): declare the handler with kopf.AdoptExisting() to take it over, rename the child, or delete the object: kubectl delete configmaps one -n default", "→ to call it now: ./my-operator retry kopfexamples.kopf.dev/one -n default shop"},
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
		stopped: []string{isNew, "- shop (ensure) will run, if an operator is running"},
		running: []string{
			"- shop (ensure) waits until TIME (in SOME TIME) after 1 attempt, the last error: the child ConfigMap default/one-a: " + isTaken + "one-a -n default",
			"the child ConfigMap default/one-b: " + isTaken + "one-b -n default",
			"→ to call it now: ./my-operator retry kopfexamples.kopf.dev/one -n default shop",
		},
	},
	"a handler of children fails after a change": {
		arrange: func(s *scene) { s.failsToEnsure() },
		stopped: []string{"- shop (ensure) waits until TIME (in SOME TIME) after 1 attempt, the last error: the color black is sold out", toCallShop},
		running: []string{"- shop (ensure) waits until TIME (in SOME TIME) after 1 attempt, the last error: the color black is sold out", toCallShop},
	},
	"a change with which a handler of children has failed is taken back": {
		arrange: func(s *scene) { s.patch(s.failsToEnsure(), `{"spec":{"color":"red"}}`) },
		stopped: []string{"- shop (ensure) waits until TIME (in SOME TIME) after 1 attempt, the last error: the color black is sold out", toCallShop},
		running: []string{"- shop (ensure) waits until TIME (in SOME TIME) after 1 attempt, the last error: the color black is sold out", toCallShop},
	},
	"another controller takes a child": {
		arrange: func(s *scene) {
			child := s.kept()
			s.Expect(cluster.Client().Get(s.t.Context(), client.ObjectKeyFromObject(child), child)).To(gomega.Succeed())
			child.OwnerReferences = s.controlled()
			s.Expect(cluster.Client().Update(s.t.Context(), child)).To(gomega.Succeed())
		},
		stopped: []string{isHandled, isLeft},
		running: []string{isLeft},
	},
	"the filter of a handler with children does not match anymore": {
		arrange: func(s *scene) {
			s.Ensure(examples, shops, kopf.ID("shop"), kopf.Labels(matching(kopf.Equal("db"))))
			s.opened(`{"metadata":{"labels":{"app":"db"}}}`, "ConfigMap NAMESPACE/one-b (shop) is ready")
			s.patch(s.object(), labeledWeb)
			s.releaseAfterwards()
		},
		stopped: []string{isOutgrown, "- ConfigMap default/one-a (shop) " + isUnkept, "- ConfigMap default/one-b (shop) " + isUnkept},
		during: func(s *scene) {
			s.patch(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one-a", Namespace: s.namespace}}, `{"data":{"color":"blue"}}`)
			s.Expect(cluster.Client().Delete(s.t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one-b", Namespace: s.namespace}})).To(gomega.Succeed())
			other := s.create("other")
			s.patch(other.DeepCopy(), `{"metadata":{"labels":{"app":"db"}}}`)
			s.isHandled(other)
		},
		running: []string{`- shop (ensure) is not for this object: the label app is "web", and the handler wants "db"; its 1 child stays: the operator neither restores nor deletes it as long as that is so`, "- ConfigMap default/one-a (shop) " + isUnkept, nothingDue},
	},
	"the handler of a child is not declared": {
		arrange: func(s *scene) {
			s.kept()
			s.Registry = kopf.NewRegistry()
			s.OnUpdate(examples, create, kopf.ID("fn"))
		},
		stopped: []string{"- The object has children of a handler of kopf.Ensure, but this program declares none for it: they are left alone, unless another operator takes care of them.", `- ConfigMap default/one (shop) is left alone, because its handler is not declared: if it was renamed, declare it with kopf.ID("shop"); otherwise, delete the child`},
		running: []string{`- ConfigMap default/one (shop) is left alone, because its handler is not declared: if it was renamed, declare it with kopf.ID("shop"); otherwise, delete the child`, nothingDue},
	},
}
