package metacontroller

import (
	"net/http"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/test/testenv"
)

const composite = `
apiVersion: metacontroller.k8s.io/v1alpha1
kind: CompositeController
metadata: {name: composite}
spec:
  generateSelector: true
  parentResource: {apiVersion: kopf.dev/v1, resource: kopfexamples}
  childResources:
  - {apiVersion: v1, resource: configmaps, updateStrategy: {method: InPlace}}
  - {apiVersion: v1, resource: secrets, updateStrategy: {method: Recreate}}
  - {apiVersion: v1, resource: serviceaccounts}
  hooks:
    sync: {webhook: {url: URL/sync}}
`

const parent = `
apiVersion: kopf.dev/v1
kind: KopfExample
metadata: {name: parent}
spec: {field: first}
`

// Children are created, and updated by the method of their kind. Those that are not returned anymore are deleted.
func TestChildren(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.on("sync", func(r *request) m {
		value := r.field()
		children := []m{child("Secret", "recreated", value), child("ServiceAccount", "kept", value)}
		children[0] = m{"apiVersion": "v1", "kind": "Secret", "metadata": m{"name": "recreated"}, "data": m{"value": "Zmlyc3Q="}}
		if value != "first" {
			children[0]["data"] = m{"value": "c2Vjb25k"}
		}
		if value != "third" {
			children = append(children, child("ConfigMap", "updated", value))
		}
		return m{"children": children, "status": m{"seen": value, "maps": len(r.names("children", "ConfigMap.v1"))}}
	})
	b.start(composite)
	p := b.create(parent)
	updated := b.named("v1", "ConfigMap", "updated")
	recreated := b.named("v1", "Secret", "recreated")
	kept := b.named("v1", "ServiceAccount", "kept")
	b.eventually(updated, m{"data.value": "first"})
	b.eventually(recreated, m{"data.value": "Zmlyc3Q="})
	b.eventually(kept, m{"metadata.annotations.value": "first"})
	b.eventually(p, m{"status": m{"seen": "first", "maps": int64(1), "observedGeneration": int64(1)}})

	owner := b.current(updated).GetOwnerReferences()
	b.Expect(owner).To(gomega.HaveLen(1))
	b.Expect(owner[0].UID).To(gomega.Equal(p.GetUID()))
	b.Expect(*owner[0].Controller && *owner[0].BlockOwnerDeletion).To(gomega.BeTrue())
	b.Expect(b.current(updated)).To(testenv.HavePath("metadata.labels.controller-uid", string(p.GetUID())))
	b.Expect(b.current(p).GetFinalizers()).To(gomega.BeEmpty())

	// What others set stays, also when the child is updated.
	b.patch(updated, `{"data":{"other":"value"}}`)
	former := map[*object]*object{updated: b.current(updated), recreated: b.current(recreated), kept: b.current(kept)}
	b.patch(p, `{"spec":{"field":"second"}}`)
	b.eventually(updated, m{"data": m{"value": "second", "other": "value"}})
	b.eventually(recreated, m{"data.value": "c2Vjb25k"})
	b.eventually(p, m{"status.seen": "second", "status.observedGeneration": int64(2)})
	b.Expect(b.current(updated).GetUID()).To(gomega.Equal(former[updated].GetUID()))
	b.Expect(b.current(recreated).GetUID()).NotTo(gomega.Equal(former[recreated].GetUID()))
	b.expectRest()
	b.Expect(b.current(kept)).To(testenv.HavePath("metadata.annotations.value", "first"))
	b.Expect(b.current(kept).GetResourceVersion()).To(gomega.Equal(former[kept].GetResourceVersion()))

	// One that another client deletes is created as it is wanted now, and what others change is restored.
	b.remove(kept)
	b.eventually(kept, m{"metadata.annotations.value": "second"})
	b.patch(updated, `{"data":{"value":"changed"}}`)
	b.eventually(updated, m{"data.value": "second"})

	b.patch(p, `{"spec":{"field":"third"}}`)
	b.expectGone(updated)
	b.eventually(p, m{"status.maps": int64(0)})

	b.expectNoWrites(p)
	b.remove(p)
	b.expectGone(p)
}

// A composite whose parents select their children adopts those that no one controls, and releases those that do not match
// anymore.
func TestSelectors(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.on("sync", func(r *request) m {
		children := []m{}
		for _, name := range append(r.names("children", "ConfigMap.v1"), "created") {
			c := child("ConfigMap", name, "wanted")
			c["metadata"] = m{"name": name, "labels": m{"app": "web"}}
			children = append(children, c)
		}
		return m{"children": children, "status": m{"names": r.names("children", "ConfigMap.v1")}}
	})
	b.start(`
apiVersion: metacontroller.k8s.io/v1alpha1
kind: CompositeController
metadata: {name: selecting}
spec:
  parentResource: {apiVersion: kopf.dev/v1, resource: kopfexamples}
  childResources:
  - {apiVersion: v1, resource: configmaps, updateStrategy: {method: InPlace}}
  hooks:
    sync: {webhook: {url: URL/sync}}
`)
	before := b.create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: before, labels: {app: web}}}`)
	b.create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: other, labels: {app: db}}}`)
	p := b.create(`{apiVersion: kopf.dev/v1, kind: KopfExample, metadata: {name: parent}, spec: {selector: {matchLabels: {app: web}}}}`)
	b.eventually(p, m{"status.names": []any{"before", "created"}})
	b.eventually(before, m{"data.value": "wanted"})
	b.create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: later, labels: {app: web}}}`)
	b.eventually(p, m{"status.names": []any{"before", "created", "later"}})

	b.patch(before, `{"metadata":{"labels":{"app":"db"}}}`)
	b.eventually(p, m{"status.names": []any{"created", "later"}})
	b.Eventually(func() int { return len(b.current(before).GetOwnerReferences()) }).Should(gomega.Equal(0))

	// Without a selector, nothing is done.
	broken := b.create(`{apiVersion: kopf.dev/v1, kind: KopfExample, metadata: {name: broken}}`)
	b.Eventually(cluster.Events(broken)).Should(gomega.ContainElement(gomega.ContainSubstring("Warning SyncError: Sync error: spec.selector must have matchLabels or matchExpressions")))
}

// The finalize hook is called until it says that it has finished, also by another operator, and may delete the children in
// an order.
func TestFinalize(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	all := []m{child("ConfigMap", "a", "1"), child("ConfigMap", "b", "1"), child("ConfigMap", "c", "1")}
	b.on("sync", func(*request) m { return m{"children": all} })
	b.on("finalize", func(r *request) m {
		left := len(r.names("children", "ConfigMap.v1"))
		return m{"children": all[:max(0, left-1)], "finalized": left == 0}
	})
	const file = composite + "    finalize: {webhook: {url: URL/finalize}}\n"
	first := b.start(file)
	p := b.create(parent)
	b.Eventually(cluster.Current(p)).Should(testenv.HaveFinalizer("metacontroller.io/compositecontroller-composite"))
	b.eventually(b.named("v1", "ConfigMap", "c"), m{"data.value": "1"})
	b.expectRest()
	first.Stop()
	b.remove(p)
	b.start(file)
	b.expectGone(p)
	for _, name := range []string{"a", "b", "c"} {
		b.expectGone(b.named("v1", "ConfigMap", name))
	}
	var left []int
	for _, r := range b.called("finalize") {
		b.Expect(r.m["finalizing"]).To(gomega.BeTrue())
		if now := len(r.names("children", "ConfigMap.v1")); len(left) == 0 || left[len(left)-1] != now {
			left = append(left, now)
		}
	}
	b.Expect(left).To(gomega.Equal([]int{3, 2, 1, 0}))
	for _, r := range b.called("sync") {
		b.Expect(r.m["finalizing"]).To(gomega.BeFalse())
	}
}

// A hook that fails is called again, and what it returns by mistake is named. A change does not wait for the pause.
func TestErrorsOfHooks(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	calls := 0
	b.onStatus("sync", func(r *request) (m, int) {
		calls++
		switch {
		case calls < 3:
			return m{"oops": true}, http.StatusInternalServerError
		case r.field() == "first":
			return m{"children": []m{{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": m{"name": "unknown"}}}}, http.StatusOK
		case r.field() == "second":
			return m{"children": []m{{"kind": "ConfigMap"}}}, http.StatusOK
		case r.field() == "third": // the API server refuses one of the children; the other one, and the status, are written
			return m{"status": m{"seen": "third"}, "children": []m{child("ConfigMap", "No Name", ""), child("ConfigMap", "good", "1")}}, http.StatusOK
		}
		return m{"status": m{"seen": "last"}}, http.StatusOK
	})
	b.start(composite)
	p := b.create(parent)
	said := func(text string) {
		t.Helper()
		b.Eventually(cluster.Events(p)).Should(gomega.ContainElement(gomega.ContainSubstring(text)), b.logs.String)
	}
	said("has answered 500 Internal Server Error, and not 200: {\"oops\":true}")
	said("the hook returns Deployment unknown, whose kind is not in childResources")
	b.patch(p, `{"spec":{"field":"second"}}`)
	said("the child 1 of the answer needs an apiVersion, a kind, and a metadata.name")
	b.patch(p, `{"spec":{"field":"third"}}`)
	b.eventually(b.named("v1", "ConfigMap", "good"), m{"data.value": "1"})
	b.eventually(p, m{"status.seen": "third"})
	said("cannot be created")
	b.patch(p, `{"spec":{"field":"fourth"}}`)
	b.eventually(p, m{"status.seen": "last"})
	b.expectGone(b.named("v1", "ConfigMap", "good"))
}

// A hook sees its own status, and can go on in steps; it can also be called again after a time.
func TestStepsAndTimes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.on("sync", func(r *request) m {
		step, _, _ := unstructured.NestedInt64(r.parent.Object, "status", "step")
		return m{"status": m{"step": min(step+1, 3)}}
	})
	resyncs := 0
	b.on("timed", func(*request) m {
		resyncs++
		if resyncs < 4 {
			return m{"resyncAfterSeconds": 0.05}
		}
		return m{"status": m{"resynced": true}}
	})
	b.start(strings.Replace(composite, "resource: kopfexamples}", "resource: kopfexamples, labelSelector: {matchExpressions: [{key: timed, operator: DoesNotExist}]}}", 1) + `
---
apiVersion: metacontroller.k8s.io/v1alpha1
kind: CompositeController
metadata: {name: timed}
spec:
  generateSelector: true
  parentResource: {apiVersion: kopf.dev/v1, resource: kopfexamples, labelSelector: {matchLabels: {timed: "yes"}}, ignoreStatusChanges: true}
  hooks: {sync: {webhook: {url: URL/timed}}}
`)
	p := b.create(parent)
	b.eventually(p, m{"status.step": int64(3)})
	timed := b.create(`{apiVersion: kopf.dev/v1, kind: KopfExample, metadata: {name: timed, labels: {timed: "yes"}}}`)
	b.eventually(timed, m{"status.resynced": true, "status.step": nil})
}

// Children of a parent outside of namespaces are named with their namespaces.
func TestClusterScopedParent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.on("sync", func(r *request) m {
		c := child("ConfigMap", "inside", "1")
		c["metadata"] = m{"name": "inside", "namespace": b.namespace}
		return m{"children": []m{c}, "status": m{"names": r.names("children", "ConfigMap.v1")}}
	})
	b.start(`
apiVersion: metacontroller.k8s.io/v1alpha1
kind: CompositeController
metadata: {name: clustered}
spec:
  generateSelector: true
  parentResource: {apiVersion: kopf.dev/v1, resource: kopfclusters, labelSelector: {matchLabels: {test: clustered}}}
  childResources: [{apiVersion: v1, resource: configmaps}]
  hooks: {sync: {webhook: {url: URL/sync}}}
`)
	p := b.create(`{apiVersion: kopf.dev/v1, kind: KopfCluster, metadata: {name: %s, labels: {test: clustered}}}`, b.namespace)
	b.eventually(p, m{"status.names": []any{b.namespace + "/inside"}})
	other := b.create(`{apiVersion: kopf.dev/v1, kind: KopfCluster, metadata: {name: %s-other}}`, b.namespace)
	b.remove(p)
	b.expectGone(p)
	b.Expect(b.current(other)).To(testenv.HavePath("status", nil))
	b.remove(other)
}
