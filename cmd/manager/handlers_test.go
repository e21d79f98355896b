package main

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

const definitions = "../../examples/crd"

func newRegistry() *kopf.Registry {
	registry := kopf.NewRegistry()
	declare(registry, kopf.Resource("kopf.dev", "v1", "kopfexamples"))
	return registry
}

var named = kopftest.Settings(func(s *kopf.Settings) { s.Name = name })

func newExample() *unstructured.Unstructured {
	return kopftest.Object(`{apiVersion: kopf.dev/v1, kind: KopfExample, metadata: {namespace: default, name: one}, spec: {color: blue, size: 3}}`)
}

// childOf returns the ConfigMap of an object, without its content.
func childOf(example *unstructured.Unstructured) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: example.GetNamespace(), Name: example.GetName()},
	}
}

func TestConfigMapIsRestored(t *testing.T) {
	tests := map[string]struct {
		damage func(h *kopftest.Harness, child *corev1.ConfigMap)
		writes int
		want   map[string]string
	}{
		"after its deletion": {
			func(h *kopftest.Harness, child *corev1.ConfigMap) { h.Delete(child) },
			1,
			map[string]string{"color": "blue", "size": "3"},
		},
		"after a field was changed": {
			func(h *kopftest.Harness, child *corev1.ConfigMap) { h.Patch(child, `{"data": {"color": "red"}}`) },
			1,
			map[string]string{"color": "blue", "size": "3"},
		},
		"after a field was removed": {
			func(h *kopftest.Harness, child *corev1.ConfigMap) { h.Patch(child, `{"data": {"color": null}}`) },
			1,
			map[string]string{"color": "blue", "size": "3"},
		},
		"after its owner was removed": {
			func(h *kopftest.Harness, child *corev1.ConfigMap) {
				h.Patch(child, `{"metadata": {"ownerReferences": null}}`)
			},
			1,
			map[string]string{"color": "blue", "size": "3"},
		},
		"but keeps the fields of other clients": {
			func(h *kopftest.Harness, child *corev1.ConfigMap) { h.Patch(child, `{"data": {"shape": "round"}}`) },
			0,
			map[string]string{"color": "blue", "size": "3", "shape": "round"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := kopftest.New(t, newRegistry, kopftest.CRDs(definitions), named)
				example := newExample()
				child := childOf(example)
				h.Create(example)
				h.Advance(time.Minute)
				before := len(h.Writes())
				test.damage(h, child)
				h.Advance(time.Minute)
				if writes := h.Writes()[before:]; len(writes) != test.writes {
					t.Errorf("got %d writes: %v", len(writes), writes)
				}
				h.Get(child)
				if !maps.Equal(child.Data, test.want) || !metav1.IsControlledBy(child, h.Get(example)) {
					t.Errorf("got %v of %v", child.Data, child.OwnerReferences)
				}
			})
		})
	}
}

func TestConfigMapIsRestoredAfterADowntime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := kopftest.New(t, newRegistry, kopftest.CRDs(definitions), named)
		example := newExample()
		h.Create(example)
		h.Advance(time.Minute)
		h.Stop()
		h.Delete(childOf(example))
		h.Start()
		h.Advance(time.Minute)
		if !h.Exists(childOf(example)) {
			t.Error("it is missing")
		}
	})
}

func TestConfigMapIsDeletedWithItsObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := kopftest.New(t, newRegistry, kopftest.CRDs(definitions), named)
		example := newExample()
		h.Create(example)
		h.Advance(time.Minute)
		h.Delete(example)
		h.CollectGarbage()
		if h.Exists(example) || h.Exists(childOf(example)) {
			t.Error("something is left")
		}
	})
}

func TestHandlersSurviveFaults(t *testing.T) {
	kopftest.Sweep(t, func(t *testing.T, fault kopftest.Option) {
		h := kopftest.New(t, newRegistry, fault, kopftest.CRDs(definitions), named)
		example := newExample()
		h.Create(example)
		h.Advance(time.Minute)
		h.Patch(example, `{"spec": {"color": "red", "size": null}}`)
		h.Settle()
	})
}

func TestThereAreNoRequestsAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := kopftest.NewAPIServer(t).Config()
		c, err := client.New(config, client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		example := newExample()
		for _, object := range []client.Object{readDefinition(t), example} {
			if err := c.Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
		requests := countRequests(config)
		kopftest.Run(t, config, newRegistry(), func(o *kopf.Options) {
			o.Settings.Name, o.Settings.Peering.Standalone = name, true
		})
		time.Sleep(time.Minute)
		if requests.take()["PATCH /api/v1/namespaces/default/configmaps/one"] != 1 {
			t.Error("the ConfigMap was not applied")
		}
		time.Sleep(time.Hour)
		if made := requests.take(); len(made) > 0 {
			t.Errorf("in an hour, there are the requests %v", made)
		}
	})
}
