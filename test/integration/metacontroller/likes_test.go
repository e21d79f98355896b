package metacontroller

import (
	"fmt"
	"slices"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/testenv"
)

// expectNoWrites checks that a call of the sync hook at rest writes nothing.
func (b *bench) expectNoWrites(parent *object) {
	b.t.Helper()
	b.expectRest()
	b.requests.Reset()
	calls := len(b.called("sync"))
	b.patch(parent, fmt.Sprintf(`{"metadata":{"annotations":{"touched":"after %d"}}}`, calls))
	b.Eventually(func() int { return len(b.called("sync")) }).Should(gomega.BeNumerically(">", calls))
	b.expectRest()
	for _, r := range b.requests.Requests() {
		b.Expect(r.Method).To(gomega.Equal("GET"), b.requests.String)
	}
}

// patchStatus changes the status of an object, as the controllers of Kubernetes do, which do not run here.
func (b *bench) patchStatus(obj *object, merge string) {
	b.t.Helper()
	b.Expect(cluster.Client().Status().Patch(b.t.Context(), obj.DeepCopy(), mergePatch(merge))).To(gomega.Succeed())
}

// container is the spec of a pod, which the API server completes with defaults.
func container(image string) m {
	return m{"containers": []m{{"name": "main", "image": image, "ports": []m{{"containerPort": 80}}, "resources": m{"limits": m{"cpu": "1"}}}}}
}

// A job with indices: some pods at a time, which are counted by their phases.
func TestLikeAJob(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.on("sync", func(r *request) m {
		const completions, parallelism = 3, 2
		running, succeeded := 0, 0
		pods := []m{}
		for i := range completions {
			name := fmt.Sprintf("%s-%d", r.parent.GetName(), i)
			switch {
			case r.get("children", "Pod.v1", name, "status", "phase") == "Succeeded":
				succeeded++
			case running == parallelism:
				continue
			default:
				running++
			}
			pods = append(pods, m{"apiVersion": "v1", "kind": "Pod", "metadata": m{"name": name}, "spec": container(r.field())})
		}
		return m{"children": pods, "status": m{"succeeded": succeeded}}
	})
	b.start(`
apiVersion: metacontroller.k8s.io/v1alpha1
kind: CompositeController
metadata: {name: job}
spec:
  generateSelector: true
  parentResource: {apiVersion: kopf.dev/v1, resource: kopfexamples}
  childResources: [{apiVersion: v1, resource: pods, updateStrategy: {method: Recreate}}]
  hooks: {sync: {webhook: {url: URL/sync}}}
`)
	p := b.create(`{apiVersion: kopf.dev/v1, kind: KopfExample, metadata: {name: job}, spec: {field: "image:1"}}`)
	for i := range 3 {
		pod := b.named("v1", "Pod", fmt.Sprintf("job-%d", i))
		b.Eventually(cluster.Exists(pod)).Should(gomega.BeTrue(), b.logs.String)
		b.patchStatus(pod, `{"status":{"phase":"Succeeded"}}`)
		b.eventually(p, m{"status.succeeded": int64(i + 1)})
	}
	b.expectNoWrites(p)
	first := b.current(b.named("v1", "Pod", "job-0"))
	b.patch(p, `{"spec":{"field":"image:2"}}`)
	b.Eventually(cluster.Current(first)).Should(testenv.HavePath("metadata.uid", gomega.Not(gomega.Equal(string(first.GetUID())))), b.logs.String)
	b.eventually(p, m{"status.succeeded": int64(0)})
}

// Two colors of replicas, one of which a service selects: the other one gets a new template, and the service follows when it is
// ready.
func TestLikeBlueAndGreen(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.on("sync", func(r *request) m {
		group := "ReplicaSet.apps/v1"
		image := r.field()
		active := r.get("children", "Service.v1", "web", "spec", "selector", "color")
		if active == "" {
			active = "blue"
		}
		idle := map[string]string{"blue": "green", "green": "blue"}[active]
		imageOf := func(color string) string {
			groups, _ := r.m["children"].(m)
			sets, _ := groups[group].(m)
			set, _ := sets[color].(m)
			containers, _, _ := unstructured.NestedSlice(set, "spec", "template", "spec", "containers")
			if len(containers) == 0 {
				return ""
			}
			first, _ := containers[0].(m)
			now, _ := first["image"].(string)
			return now
		}
		ready := func(color string) bool {
			groups, _ := r.m["children"].(m)
			sets, _ := groups[group].(m)
			set, _ := sets[color].(m)
			now, _, _ := unstructured.NestedInt64(set, "status", "readyReplicas")
			return now == 2
		}
		images := map[string]string{active: imageOf(active), idle: image}
		if images[active] == "" {
			images[active] = image
		}
		if images[active] != image && imageOf(idle) == image && ready(idle) {
			active = idle
		}
		children := []m{{
			"apiVersion": "v1", "kind": "Service", "metadata": m{"name": "web"},
			"spec": m{"selector": m{"color": active}, "ports": []m{{"port": 80}}},
		}}
		for _, color := range []string{"blue", "green"} {
			children = append(children, m{"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": m{"name": color}, "spec": m{
				"replicas": 2, "selector": m{"matchLabels": m{"color": color}},
				"template": m{"metadata": m{"labels": m{"color": color}}, "spec": container(images[color])},
			}})
		}
		return m{"children": children, "status": m{"active": active}}
	})
	b.start(`
apiVersion: metacontroller.k8s.io/v1alpha1
kind: CompositeController
metadata: {name: colors}
spec:
  generateSelector: true
  parentResource: {apiVersion: kopf.dev/v1, resource: kopfexamples}
  childResources:
  - {apiVersion: v1, resource: services, updateStrategy: {method: InPlace}}
  - {apiVersion: apps/v1, resource: replicasets, updateStrategy: {method: InPlace}}
  hooks: {sync: {webhook: {url: URL/sync}}}
`)
	p := b.create(`{apiVersion: kopf.dev/v1, kind: KopfExample, metadata: {name: web}, spec: {field: "image:1"}}`)
	service := b.named("v1", "Service", "web")
	green := b.named("apps/v1", "ReplicaSet", "green")
	b.eventually(p, m{"status.active": "blue"})
	b.eventually(service, m{"spec.selector": m{"color": "blue"}})
	b.expectNoWrites(p)
	address, _, _ := unstructured.NestedString(b.current(service).Object, "spec", "clusterIP")
	b.patch(p, `{"spec":{"field":"image:2"}}`)
	b.Eventually(func() (string, error) {
		set, err := cluster.Current(green)()
		if err != nil {
			return "", err
		}
		containers, _, _ := unstructured.NestedSlice(set.Object, "spec", "template", "spec", "containers")
		first, _ := containers[0].(m)
		image, _ := first["image"].(string)
		return image, nil
	}).Should(gomega.Equal("image:2"))
	b.Expect(b.current(service)).To(testenv.HavePath("spec.selector", m{"color": "blue"}))
	b.patchStatus(green, `{"status":{"replicas":2,"readyReplicas":2}}`)
	b.eventually(service, m{"spec.selector": m{"color": "green"}, "spec.clusterIP": address})
	b.eventually(p, m{"status.active": "green"})
	b.expectNoWrites(p)
}

// A service for each replica of a stateful set that asks for it by an annotation.
func TestLikeAServicePerPod(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.on("sync", func(r *request) m {
		replicas, _, _ := unstructured.NestedInt64(r.parent.Object, "spec", "replicas")
		services := []m{}
		for i := range replicas {
			name := fmt.Sprintf("%s-%d", r.parent.GetName(), i)
			services = append(services, m{
				"apiVersion": "v1", "kind": "Service", "metadata": m{"name": name},
				"spec": m{"selector": m{r.parent.GetAnnotations()["service-per-pod"]: name}, "ports": []m{{"port": 80, "targetPort": 8080}}},
			})
		}
		return m{"attachments": services}
	})
	b.on("finalize", func(r *request) m { return m{"finalized": len(r.names("attachments", "Service.v1")) == 0} })
	b.start(`
apiVersion: metacontroller.k8s.io/v1alpha1
kind: DecoratorController
metadata: {name: service-per-pod}
spec:
  resources:
  - {apiVersion: apps/v1, resource: statefulsets, annotationSelector: {matchExpressions: [{key: service-per-pod, operator: Exists}]}, ignoreStatusChanges: true}
  attachments: [{apiVersion: v1, resource: services, updateStrategy: {method: InPlace}}]
  hooks:
    sync: {webhook: {url: URL/sync}}
    finalize: {webhook: {url: URL/finalize}}
`)
	set := b.create(`
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, annotations: {service-per-pod: pod-name}}
spec:
  replicas: 3
  serviceName: db
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: main, image: db}]}}
`)
	last := b.named("v1", "Service", "db-2")
	b.eventually(last, m{"spec.selector": m{"pod-name": "db-2"}})
	b.expectNoWrites(set)
	calls := len(b.called("sync"))
	b.patchStatus(set, `{"status":{"replicas":3}}`)
	b.expectRest()
	b.Expect(b.called("sync")).To(gomega.HaveLen(calls), "changes of the status are ignored")
	b.patch(set, `{"spec":{"replicas":2}}`)
	b.expectGone(last)
	b.eventually(b.named("v1", "Service", "db-0"), m{"spec.selector": m{"pod-name": "db-0"}})
	b.patch(set, `{"metadata":{"annotations":{"service-per-pod":null}}}`)
	b.expectGone(b.named("v1", "Service", "db-0"))
	b.Eventually(cluster.Current(set)).Should(testenv.HavePath("metadata.finalizers", nil), b.logs.String)
}

// An object of the cluster whose config map is copied into namespaces with a label.
func TestLikeAPropagation(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	second := cluster.Namespace(t)
	b.on("customize", func(r *request) m {
		return m{"relatedResources": []m{
			{"apiVersion": "v1", "resource": "configmaps", "namespace": r.field(), "names": []string{"source"}},
			{"apiVersion": "v1", "resource": "namespaces", "labelSelector": m{"matchLabels": m{"copy": r.field()}}},
		}}
	})
	b.on("sync", func(r *request) m {
		value := r.get("related", "ConfigMap.v1", r.field()+"/source", "data", "value")
		copies := []m{}
		for _, namespace := range r.names("related", "Namespace.v1") {
			c := child("ConfigMap", "copied", value)
			c["metadata"] = m{"name": "copied", "namespace": namespace}
			copies = append(copies, c)
		}
		return m{"children": copies, "status": m{"copies": r.names("children", "ConfigMap.v1")}}
	})
	b.start(`
apiVersion: metacontroller.k8s.io/v1alpha1
kind: CompositeController
metadata: {name: propagation}
spec:
  generateSelector: true
  parentResource: {apiVersion: kopf.dev/v1, resource: kopfclusters, labelSelector: {matchLabels: {test: propagation}}}
  childResources: [{apiVersion: v1, resource: configmaps, updateStrategy: {method: InPlace}}]
  hooks:
    sync: {webhook: {url: URL/sync}}
    customize: {webhook: {url: URL/customize}}
`, func(o *kopf.Options) { o.Settings.Scope.Namespaces = []string{b.namespace, second} })
	source := b.create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: source}, data: {value: first}}`)
	p := b.create(`{apiVersion: kopf.dev/v1, kind: KopfCluster, metadata: {name: %[1]s, labels: {test: propagation}}, spec: {field: %[1]s}}`, b.namespace)
	for i, name := range []string{b.namespace, second} {
		namespace := b.named("v1", "Namespace", name)
		namespace.SetNamespace("")
		b.patch(namespace, fmt.Sprintf(`{"metadata":{"labels":{"copy":%q}}}`, b.namespace))
		want := []string{b.namespace + "/copied", second + "/copied"}[:i+1]
		slices.Sort(want)
		b.Eventually(func() ([]string, error) {
			now, err := cluster.Current(p)()
			if err != nil {
				return nil, err
			}
			names, _, err := unstructured.NestedStringSlice(now.Object, "status", "copies")
			return names, err
		}).Should(gomega.Equal(want), b.logs.String)
	}
	copied := b.named("v1", "ConfigMap", "copied")
	copied.SetNamespace(second)
	b.patch(source, `{"data":{"value":"second"}}`)
	b.eventually(copied, m{"data.value": "second"})
	b.expectNoWrites(p)
	b.remove(p)
	b.expectGone(p)
}
