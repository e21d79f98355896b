package metacontroller

import (
	"testing"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/test/testenv"
)

// A decorator attaches objects to those that its selectors select, and changes their labels, annotations, and status. It
// cleans up when they do not match anymore, and when they are deleted.
func TestDecorator(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.on("sync", func(r *request) m {
		return m{
			"labels": m{"decorated": "yes", "unwanted": nil}, "annotations": m{"attached": r.field()}, "status": m{"decorated": true},
			"attachments": []m{child("ConfigMap", r.parent.GetName()+"-attached", r.field())},
		}
	})
	b.on("finalize", func(r *request) m {
		return m{"labels": m{"decorated": nil}, "finalized": len(r.names("attachments", "ConfigMap.v1")) == 0}
	})
	b.start(`
apiVersion: metacontroller.k8s.io/v1alpha1
kind: DecoratorController
metadata: {name: decorator}
spec:
  resources:
  - apiVersion: kopf.dev/v1
    resource: kopfexamples
    labelSelector: {matchLabels: {decorate: "yes"}}
    annotationSelector: {matchExpressions: [{key: decorate, operator: Exists}]}
  attachments:
  - {apiVersion: v1, resource: configmaps, updateStrategy: {method: InPlace}}
  hooks:
    sync: {webhook: {url: URL/sync}}
    finalize: {webhook: {url: URL/finalize}}
`)
	other := b.create(`{apiVersion: kopf.dev/v1, kind: KopfExample, metadata: {name: other, labels: {decorate: "yes"}}}`)
	p := b.create(`
apiVersion: kopf.dev/v1
kind: KopfExample
metadata: {name: one, labels: {decorate: "yes", unwanted: "yes"}, annotations: {decorate: ""}}
spec: {field: first}
`)
	// Another object of the same owner, which the decorator has not attached.
	foreign := b.create(`
apiVersion: v1
kind: ConfigMap
metadata: {name: foreign, ownerReferences: [{apiVersion: kopf.dev/v1, kind: KopfExample, name: one, uid: %s, controller: true}]}
`, p.GetUID())
	attached := b.named("v1", "ConfigMap", "one-attached")
	b.eventually(attached, m{"data.value": "first"})
	b.eventually(p, m{"metadata.labels": m{"decorate": "yes", "decorated": "yes"}, "metadata.annotations.attached": "first", "status": m{"decorated": true}})
	b.Expect(b.current(attached)).To(testenv.HaveAnnotation("metacontroller.k8s.io/decorator-controller", "decorator"))
	b.Expect(b.current(p)).To(testenv.HaveFinalizer("metacontroller.io/decoratorcontroller-decorator"))
	b.patch(p, `{"spec":{"field":"second"}}`)
	b.eventually(attached, m{"data.value": "second"})

	b.patch(p, `{"metadata":{"annotations":{"decorate":null}}}`)
	b.expectGone(attached)
	b.Eventually(cluster.Current(p)).Should(testenv.HavePath("metadata.finalizers", nil), b.logs.String)
	b.Eventually(cluster.Current(p)).Should(testenv.HavePath("metadata.labels", m{"decorate": "yes"}))
	b.patch(p, `{"metadata":{"annotations":{"decorate":""}}}`)
	b.eventually(attached, m{"data.value": "second"})
	b.remove(p)
	b.expectGone(p)
	b.expectGone(attached)
	b.Expect(cluster.Exists(foreign)()).To(gomega.BeTrue())
	b.Expect(b.current(other).GetFinalizers()).To(gomega.BeEmpty())
	for _, r := range b.called("sync") {
		b.Expect(r.parent.GetName()).To(gomega.Equal("one"))
		b.Expect(r.names("attachments", "ConfigMap.v1")).NotTo(gomega.ContainElement("foreign"))
	}
}

// Without a finalize hook, a decorator has no finalizer, and its parents are free.
func TestDecoratorWithoutFinalizer(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.on("sync", func(*request) m { return m{"attachments": []m{child("ConfigMap", "attached", "1")}} })
	running := b.start(`
apiVersion: metacontroller.k8s.io/v1alpha1
kind: DecoratorController
metadata: {name: free}
spec:
  resources: [{apiVersion: kopf.dev/v1, resource: kopfexamples}, {apiVersion: kopf.dev/v1, resource: kopfnostatuses}]
  attachments: [{apiVersion: v1, resource: configmaps}]
  hooks: {sync: {webhook: {url: URL/sync}}}
`)
	// A controller of the same name has had a finalize hook before.
	p := b.create(`{apiVersion: kopf.dev/v1, kind: KopfNoStatus, metadata: {name: parent, finalizers: [metacontroller.io/decoratorcontroller-free]}}`)
	b.eventually(b.named("v1", "ConfigMap", "attached"), m{"data.value": "1"})
	b.Eventually(cluster.Current(p)).Should(testenv.HavePath("metadata.finalizers", nil))
	b.expectRest()
	b.Expect(b.current(p)).To(testenv.HavePath("status", nil))
	b.remove(p)
	b.Expect(cluster.Exists(p)()).To(gomega.BeFalse(), "nothing holds it")
	b.expectRest()
	running.Stop()
}
