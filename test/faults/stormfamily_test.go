package faults

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// In storms with families, each object has children, which its state determines: config maps, secrets, services with
// lists of ports, and deployments. They grow, shrink, and change.

// kin are the kinds of children, with their resources.
var kin = []struct{ apiVersion, kind, plural string }{
	{"v1", "ConfigMap", "configmaps"},
	{"v1", "Secret", "secrets"},
	{"v1", "Service", "services"},
	{"apps/v1", "Deployment", "deployments"},
}

// familyOf returns the children that an object must have.
func familyOf(body *object.Body) (family []*unstructured.Unstructured) {
	name := body.Name()
	a, _ := body.Spec().Int64("a")
	b, _ := body.Spec().Int64("b")
	child := func(kind, suffix string, content map[string]any) {
		i := slices.IndexFunc(kin, func(k struct{ apiVersion, kind, plural string }) bool { return k.kind == kind })
		obj := &unstructured.Unstructured{Object: content}
		obj.SetAPIVersion(kin[i].apiVersion)
		obj.SetKind(kind)
		obj.SetName(name + "-" + suffix)
		family = append(family, obj)
	}
	child("ConfigMap", "config", map[string]any{"data": map[string]any{
		"a": fmt.Sprint(a), "b": fmt.Sprint(b), tuned: fmt.Sprint(a / 2),
	}})
	for i := range a {
		secret := map[string]any{"data": map[string]any{"token": base64.StdEncoding.EncodeToString([]byte(fmt.Sprint(b)))}}
		if i%2 == 1 {
			secret = map[string]any{"stringData": map[string]any{"token": fmt.Sprint(b)}}
		}
		child("Secret", fmt.Sprintf("secret-%d", i), secret)
	}
	if b > 0 {
		var ports []any
		for i := range b {
			ports = append(ports, map[string]any{"name": fmt.Sprintf("p%d", i), "port": 8000 + 10*a + i, "protocol": "TCP", "targetPort": 80 + a})
		}
		child("Service", "web", map[string]any{"spec": map[string]any{"ports": ports, "selector": map[string]any{"app": name}}})
	}
	if body.Labels()["on"] == "yes" {
		env := []any{map[string]any{"name": "A", "value": fmt.Sprint(a)}}
		if b > 0 {
			env = append(env, map[string]any{"name": "B", "value": fmt.Sprint(b)})
		}
		labels := map[string]any{"app": name}
		child("Deployment", "app", map[string]any{"spec": map[string]any{
			"replicas": b,
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{
				"containers": []any{map[string]any{"name": "main", "image": fmt.Sprintf("example.com/app:%d", a), "env": env}},
			}},
		}})
	}
	return family
}

// tuned is the key of a config map in which changes by others are accepted if they say so.
const tuned = "tuned"

// accepted is how others change what is accepted then.
func accepted(wanted any) string { return fmt.Sprintf("accepted over %v", wanted) }

// raise declares the handlers of families.
func (o *stormOperator) raise(r *kopf.Registry, kex kopf.Selector) {
	r.Ensure(kex, o.ensure, kopf.ID("family"), kopf.AdoptExisting())
	r.OnDrift(kex, o.drift, kopf.ID("drift"))
	for _, k := range kin {
		r.OnChild(kex, kopf.Resource(append(strings.Split(k.apiVersion, "/"), k.plural)...), o.look(k.kind), kopf.ID("look-"+k.plural))
	}
}

// ensure returns the children, and fails by chance.
func (o *stormOperator) ensure(_ context.Context, c *kopf.Change) ([]client.Object, error) {
	defer o.works()()
	dice, alive := o.storm.subject(c.Name()).calledFor(o, "family")
	switch {
	case !alive:
		return nil, errDead
	case dice.IntN(10) == 0 && !o.storm.calm.Load():
		return nil, errors.New("not now")
	}
	var family []client.Object
	for _, child := range familyOf(c.Body()) {
		family = append(family, child)
	}
	return family, nil
}

// drift accepts what others want to be accepted, and fails by chance.
func (o *stormOperator) drift(_ context.Context, c *kopf.Drift) (kopf.Resolution, error) {
	defer o.works()()
	dice, alive := o.storm.subject(c.Name()).calledFor(o, "drift")
	switch {
	case !alive:
		return kopf.RestoreDrift(), errDead
	case dice.IntN(10) == 0 && !o.storm.calm.Load():
		return kopf.RestoreDrift(), errors.New("not now")
	}
	var paths []string
	for _, field := range c.Fields() {
		if found, _ := field.Found.Any().(string); found == accepted(field.Wanted.Any()) {
			paths = append(paths, field.Path)
		}
	}
	return kopf.AcceptFields(paths...), nil
}

// look notes what a handler of children sees, and fails by chance.
func (o *stormOperator) look(kind string) func(context.Context, *kopf.ChildChange) error {
	return func(_ context.Context, c *kopf.ChildChange) error {
		defer o.works()()
		s := o.storm.subject(c.Name())
		dice, alive := s.calledFor(o, "look "+kind)
		switch {
		case !alive:
			return errDead
		case dice.IntN(10) == 0 && !o.storm.calm.Load():
			return errors.New("not now")
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		known := s.sight(o, string(c.UID()))
		if c.Initial() {
			clear(known[kind])
			known[kind] = map[string]string{}
			for _, child := range c.Children() {
				known[kind][child.Name()] = contentOf(child.Raw())
			}
			return nil
		}
		if known[kind] == nil {
			known[kind] = map[string]string{}
		}
		s.note("%s shows the %s of %s, version %s", o.name, c.Reason().Noun(), c.Child().Name(), c.Child().ResourceVersion())
		if c.Reason() == kopf.ReasonDelete {
			delete(known[kind], c.Child().Name())
			return nil
		}
		known[kind][c.Child().Name()] = contentOf(c.Child().Raw())
		return nil
	}
}

// contentOf returns what a handler of children must see.
func contentOf(child map[string]any) string {
	metadata, _ := child["metadata"].(map[string]any)
	return textOf([]any{child["data"], child["spec"], metadata["labels"]})
}
