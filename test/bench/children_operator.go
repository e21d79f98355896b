package main

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/convergence"
)

// childrenOf is the number of children of an object, each of another kind.
const childrenOf = 5

// childLabel is the label of all children.
const childLabel = "app"

// wantedColor is the value of a child that others change.
const wantedColor = "blue"

// expectedCall notes when an object is handled next.
type expectedCall struct {
	name string
	at   atomic.Int64
}

func (e *expectedCall) time() int64 {
	if e == nil {
		return 0
	}
	return e.at.Load()
}

// called notes that an object is handled now.
func (t *tally) called(name string) {
	if e := t.expected.Load(); e != nil && e.name == name {
		e.at.CompareAndSwap(0, time.Now().UnixNano())
	}
}

// childrenOperator is an operator of this project that keeps the children of objects.
type childrenOperator struct{}

func (childrenOperator) run(ctx context.Context, env environment) error {
	registry := kopf.NewRegistry()
	registry.Ensure(kopf.Resource("kopfexamples"), func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
		env.tally.called(c.Name())
		host, _ := c.Spec().String("host")
		revision, _ := c.Spec().Int64("revision")
		return childrenFor(c.Name(), host, revision), nil
	}, kopf.ID("children"))
	return operateKopf(ctx, env, registry, quietly)
}

// childrenCache is an operator of this project that has the same objects in its cache, with or
// without the children, and nothing else to do.
type childrenCache struct{ children bool }

func (k childrenCache) run(ctx context.Context, env environment) error {
	registry := kopf.NewRegistry()
	registry.OnCreate(kopf.Resource("kopfexamples"), func(context.Context, *kopf.Change) error { return nil }, kopf.ID("children"))
	if !k.children {
		return operateKopf(ctx, env, registry, quietly)
	}
	ours := kopf.Labels(map[string]kopf.Matcher{convergence.OwnerLabel: kopf.Present()})
	for i, kind := range [childrenOf]kopf.Selector{
		kopf.Resource("apps", "v1", "deployments"), kopf.Resource("v1", "services"), kopf.Resource("v1", "configmaps"),
		kopf.Resource("v1", "secrets"), kopf.Resource("v1", "serviceaccounts"),
	} {
		kopf.NewIndex(registry, kind, func(context.Context, *kopf.Indexed) (map[string]any, error) { return nil, nil }, ours, kopf.ID(strconv.Itoa(i)))
	}
	return operateKopf(ctx, env, registry, quietly)
}

func metaOf(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{childLabel: name}}
}

// childrenFor returns the children of an object. The config map depends on the revision.
func childrenFor(name, host string, revision int64) []client.Object {
	labels := map[string]string{childLabel: name}
	container := corev1.Container{
		Name: "web", Image: "registry.example.com/shop/frontend:1.24.3",
		Ports: []corev1.ContainerPort{{ContainerPort: 8080}},
		Env:   []corev1.EnvVar{{Name: "HOST", Value: host}, {Name: "LOG_LEVEL", Value: "info"}},
	}
	return []client.Object{
		&appsv1.Deployment{ObjectMeta: metaOf(name), Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{container}}},
		}},
		&corev1.Service{ObjectMeta: metaOf(name), Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, Selector: labels, Ports: []corev1.ServicePort{{Port: 8080}},
		}},
		&corev1.ConfigMap{ObjectMeta: metaOf(name), Data: configOf(host, revision)},
		&corev1.Secret{ObjectMeta: metaOf(name), Data: map[string][]byte{"password": []byte("secret of " + host)}},
		&corev1.ServiceAccount{ObjectMeta: metaOf(name)},
	}
}

func configOf(host string, revision int64) map[string]string {
	return map[string]string{"host": host, "color": wantedColor, "revision": strconv.FormatInt(revision, 10), "database": "postgres.example.com"}
}
