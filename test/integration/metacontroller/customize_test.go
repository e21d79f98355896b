package metacontroller

import (
	"strings"
	"testing"

	"github.com/onsi/gomega"
)

// The customize hook names related objects, which the sync hook gets. Their changes call it again.
func TestRelatedObjects(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.on("customize", func(r *request) m {
		return m{"relatedResources": []m{
			{"apiVersion": "v1", "resource": "configmaps", "labelSelector": m{"matchLabels": m{"part-of": r.field()}}},
			{"apiVersion": "v1", "resource": "secrets", "namespace": b.namespace, "names": []string{"named"}},
		}}
	})
	b.on("sync", func(r *request) m {
		var values []string
		for _, name := range r.names("related", "ConfigMap.v1") {
			values = append(values, name+"="+r.get("related", "ConfigMap.v1", name, "data", "value"))
		}
		values = append(values, r.names("related", "Secret.v1")...)
		return m{"status": m{"related": strings.Join(values, " ")}}
	})
	b.start(composite + "    customize: {webhook: {url: URL/customize}}\n")
	one := b.create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: one, labels: {part-of: first}}, data: {value: a}}`)
	b.create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: other, labels: {part-of: second}}, data: {value: b}}`)
	b.create(`{apiVersion: v1, kind: Secret, metadata: {name: named}}`)
	b.create(`{apiVersion: v1, kind: Secret, metadata: {name: unnamed}}`)
	p := b.create(parent)
	b.eventually(p, m{"status.related": "one=a named"})
	b.patch(one, `{"data":{"value":"c"}}`)
	b.eventually(p, m{"status.related": "one=c named"})
	two := b.create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: two, labels: {part-of: first}}, data: {value: d}}`)
	b.eventually(p, m{"status.related": "one=c two=d named"})
	b.remove(one)
	b.eventually(p, m{"status.related": "two=d named"})
	b.patch(two, `{"metadata":{"labels":{"part-of":"second"}}}`)
	b.eventually(p, m{"status.related": "named"})

	// Another generation has other related objects.
	asked := len(b.called("customize"))
	b.patch(p, `{"spec":{"field":"second"}}`)
	b.eventually(p, m{"status.related": "other=b two=d named"})
	b.expectRest()
	b.Expect(b.called("customize")).To(gomega.HaveLen(asked + 1))

	// Objects that are not related, and a parent that rests, cause no calls.
	synced := len(b.called("sync"))
	b.patch(b.named("v1", "Secret", "unnamed"), `{"metadata":{"labels":{"a":"b"}}}`)
	b.expectRest()
	b.Expect(b.called("sync")).To(gomega.HaveLen(synced))
}

// A rule that cannot be used is named. Version v2 names all objects with their namespaces, and can select namespaces.
func TestRulesOfRelatedObjects(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.on("customize", func(r *request) m {
		if r.field() == "first" {
			return m{"relatedResources": []m{{"apiVersion": "v1", "resource": "configmaps", "namespace": "elsewhere"}}}
		}
		return m{"relatedResources": []m{
			{"apiVersion": "v1", "resource": "configmaps", "namespaceSelector": m{"matchLabels": m{"kubernetes.io/metadata.name": b.namespace}}, "labelSelector": m{"matchLabels": m{"a": "b"}}},
		}}
	})
	b.on("sync", func(r *request) m { return m{"status": m{"related": r.names("related", "ConfigMap.v1")}} })
	of := func(name, version, parents string) string {
		edited := strings.NewReplacer("name: composite", "name: "+name, "sync: {", "sync: {version: "+version+", ", "resource: kopfexamples", "resource: kopfexamples, labelSelector: "+parents)
		return edited.Replace(composite) + "    customize: {version: " + version + ", webhook: {url: URL/customize}}\n"
	}
	b.start(of("relative", "v1", "{matchExpressions: [{key: uniform, operator: DoesNotExist}]}") + "---" + of("uniform", "v2", "{matchLabels: {uniform: v2}}"))
	p := b.create(parent)
	b.Eventually(cluster.Events(p)).Should(gomega.ContainElement(gomega.ContainSubstring("the related resource 1 of the customize hook cannot be used: it is about the namespace elsewhere, but the parent is in " + b.namespace)))
	b.create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: one, labels: {a: b}}}`)
	relative := b.create(`{apiVersion: kopf.dev/v1, kind: KopfExample, metadata: {name: relative}, spec: {field: second}}`)
	b.Eventually(cluster.Events(relative)).Should(gomega.ContainElement(gomega.ContainSubstring("it has a namespaceSelector, but the parent is in a namespace: use version v2 of the hook")))
	uniform := b.create(`{apiVersion: kopf.dev/v1, kind: KopfExample, metadata: {name: uniform, labels: {uniform: v2}}, spec: {field: second}}`)
	b.eventually(uniform, m{"status.related": []any{b.namespace + "/one"}})
}
