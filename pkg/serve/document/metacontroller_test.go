package document_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kopf-go/kopf/pkg/serve/document"
)

// The controllers of a file are read with all their words, next to handlers, and to objects that are left to kubectl.
func TestControllersAreRead(t *testing.T) {
	d, err := document.Parse("f.yaml", []byte(`---
apiVersion: metacontroller.k8s.io/v1alpha1
kind: CompositeController
metadata: {name: sets, labels: {a: b}}
spec:
  generateSelector: true
  resyncPeriodSeconds: 30
  parentResource:
    apiVersion: example.com/v1
    resource: sets
    labelSelector: {matchLabels: {a: b}, matchExpressions: [{key: c, operator: NotIn, values: [d]}]}
    ignoreStatusChanges: true
    revisionHistory: {fieldPaths: [spec.template]}
  childResources:
  - {apiVersion: v1, resource: pods, updateStrategy: {method: Recreate, statusChecks: {conditions: [{type: Ready, status: "True"}]}}}
  - {apiVersion: v1, resource: services}
  hooks:
    sync: {webhook: {url: "http://sets/sync", timeout: 20s, etag: {enabled: true}}}
    finalize: {version: v2, webhook: {service: {name: sets, namespace: hooks}, path: /finalize}}
    customize: {version: v2, webhook: {service: {name: sets, namespace: hooks, port: 8443, protocol: https}, path: /customize, responseUnMarshallMode: loose}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: hooks}
---
kopf: v1
handlers:
- {create: a, id: b, run: [a]}
---
apiVersion: metacontroller.k8s.io/v1alpha1
kind: DecoratorController
metadata: {name: pods}
spec:
  resources:
  - {apiVersion: v1, resource: pods, annotationSelector: {matchAnnotations: {a: b}}}
  - {apiVersion: apps/v1, resource: deployments}
  attachments: [{apiVersion: v1, resource: services, updateStrategy: {method: InPlace}}]
  hooks: {sync: {webhook: {url: "http://pods/sync", responseUnMarshallMode: strict}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Handlers) != 1 || len(d.Controllers) != 2 {
		t.Fatalf("got %d handlers and %d controllers", len(d.Handlers), len(d.Controllers))
	}
	sets, pods := d.Controllers[0], d.Controllers[1]
	if want := (&document.Hook{URL: "http://sets/sync", Timeout: 20 * time.Second}); *sets.Sync != *want {
		t.Errorf("got %+v", sets.Sync)
	}
	if want := (&document.Hook{URL: "http://sets.hooks:80/finalize", Timeout: 10 * time.Second, Uniform: true, Strict: true}); *sets.Finalize != *want {
		t.Errorf("got %+v", sets.Finalize)
	}
	if want := (&document.Hook{URL: "https://sets.hooks:8443/customize", Timeout: 10 * time.Second, Uniform: true}); *sets.Customize != *want {
		t.Errorf("got %+v", sets.Customize)
	}
	rule := sets.Parents[0]
	if sets.Place != "f.yaml:2" || sets.Name != "sets" || sets.Kind != document.Composite || !sets.GenerateSelector || sets.ResyncPeriod != 30*time.Second || !rule.IgnoreStatusChanges {
		t.Errorf("got %+v", sets)
	}
	if !rule.Labels.Matches(labels.Set{"a": "b"}) || rule.Labels.Matches(labels.Set{"a": "b", "c": "d"}) || !rule.Annotations.Empty() {
		t.Errorf("got %s and %s", rule.Labels, rule.Annotations)
	}
	if diff := cmp.Diff([]document.ChildRule{{"v1", "pods", document.Recreate}, {"v1", "services", document.OnDelete}}, sets.Children); diff != "" {
		t.Error(diff)
	}
	if pods.Finalize != nil || !pods.Sync.Strict || len(pods.Parents) != 2 || !pods.Parents[0].Annotations.Matches(labels.Set{"a": "b"}) || pods.Parents[0].Annotations.Matches(labels.Set{}) {
		t.Errorf("got %+v", pods)
	}
	// What the API server would have added is added.
	want := map[string]any{
		"apiVersion": "metacontroller.k8s.io/v1alpha1", "kind": "DecoratorController", "metadata": map[string]any{"name": "pods"}, "status": map[string]any{},
		"spec": map[string]any{
			"resources": []any{
				map[string]any{"apiVersion": "v1", "resource": "pods", "annotationSelector": map[string]any{"matchAnnotations": map[string]any{"a": "b"}}},
				map[string]any{"apiVersion": "apps/v1", "resource": "deployments"},
			},
			"attachments": []any{map[string]any{"apiVersion": "v1", "resource": "services", "updateStrategy": map[string]any{"method": "InPlace"}}},
			"hooks":       map[string]any{"sync": map[string]any{"version": "v1", "webhook": map[string]any{"url": "http://pods/sync", "responseUnMarshallMode": "strict"}}},
		},
	}
	if diff := cmp.Diff(want, pods.Object); diff != "" {
		t.Error(diff)
	}
}

// A hook has its own certificates and credentials, or those of its host.
func TestConnections(t *testing.T) {
	d, err := document.Parse("f.yaml", []byte(`
apiVersion: metacontroller.k8s.io/v1alpha1
kind: CompositeController
metadata: {name: a}
spec:
  parentResource: {apiVersion: v1, resource: pods}
  hooks:
    sync: {webhook: {url: "https://Hooks.example.com/sync"}}
    finalize: {webhook: {service: {name: hooks, namespace: here}, path: /finalize}}
    customize: {webhook: {url: "https://hooks.example.com:443/customize", caBundle: {inline: PEM}, authorization: {type: Token, secretRef: {name: a, namespace: b, key: c}}}}
  endpointConfigs:
  - {host: "other.example.com", caBundle: {inline: PEM}}
  - {host: "hooks.example.com:443", caBundle: {configMapRef: {name: ca, namespace: b}}, clientTLS: {secretRef: {name: tls, namespace: b}, certKey: cert}}
  - {host: hooks.here, basicAuth: {secretRef: {name: user, namespace: b}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	c := d.Controllers[0]
	for name, test := range map[string]struct{ got, want *document.Connection }{
		"of the host": {c.Sync.Connection, &document.Connection{
			CABundleFrom: document.Reference{"ConfigMap", "b", "ca", "ca.crt"},
			Certificate:  document.Reference{"Secret", "b", "tls", "cert"}, Key: document.Reference{"Secret", "b", "tls", "tls.key"},
		}},
		"of the service": {c.Finalize.Connection, &document.Connection{
			Username: document.Reference{"Secret", "b", "user", "username"}, Password: document.Reference{"Secret", "b", "user", "password"},
		}},
		"of the hook": {c.Customize.Connection, &document.Connection{CABundle: "PEM", Scheme: "Token", Token: document.Reference{"Secret", "b", "a", "c"}}},
	} {
		if diff := cmp.Diff(test.want, test.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if refs := c.Sync.Connection.References(); len(refs) != 3 {
		t.Errorf("got %v", refs)
	}
}

// A list is read as kubectl prints it, and a controller of the cluster as the API server has it.
func TestControllersOfTheCluster(t *testing.T) {
	const one = `{"apiVersion":"metacontroller.k8s.io/v1alpha1","kind":"CompositeController","metadata":{"name":"one","uid":"u"},"status":{},` +
		`"spec":{"parentResource":{"apiVersion":"v1","resource":"pods"},"hooks":{"sync":{"version":"v1","webhook":{"url":"http://a"}}}}}`
	d, err := document.Parse("f.yaml", []byte(`{"apiVersion":"v1","kind":"List","items":[`+one+`,{"apiVersion":"v1","kind":"Secret"}]}`))
	if err != nil || len(d.Controllers) != 1 || d.Controllers[0].Name != "one" {
		t.Fatalf("got %+v, %v", d, err)
	}
	c, err := document.ParseController(d.Controllers[0].Object)
	if err != nil || c.Place != `the CompositeController "one" of the cluster` || c.Sync.URL != "http://a" {
		t.Errorf("got %+v, %v", c, err)
	}
	if diff := cmp.Diff(d.Controllers[0].Object, c.Object); diff != "" {
		t.Error(diff)
	}
	delete(c.Object, "spec")
	if _, err := document.ParseController(c.Object); err == nil || !strings.Contains(err.Error(), `in the cluster: the CompositeController "one" has no spec`) {
		t.Errorf("got %v", err)
	}
}

// A mistake is named with its line and the nearest correct word; what is not supported, by its name.
func TestMistakesInControllersAreNamed(t *testing.T) {
	const head = "apiVersion: metacontroller.k8s.io/v1alpha1\nkind: CompositeController\nmetadata: {name: a}\nspec:\n"
	const hooks = "  hooks: {sync: {webhook: {url: 'http://a'}}}\n"
	const resource = "  parentResource: {apiVersion: v1, resource: pods}\n"
	for name, test := range map[string]struct{ text, want string }{
		"another kind":                {strings.Replace(head, "CompositeController", "CompositController", 1) + resource + hooks, "f.yaml:2: the kind CompositController is unknown: did you mean CompositeController?"},
		"another kind of the group":   {strings.Replace(head, "CompositeController", "ControllerRevision", 1), "the kind ControllerRevision is unknown: it must be CompositeController or DecoratorController"},
		"another version":             {strings.Replace(head, "v1alpha1", "v1", 1) + resource + hooks, "f.yaml:1: the apiVersion of a CompositeController is metacontroller.k8s.io/v1alpha1, not metacontroller.k8s.io/v1"},
		"no name":                     {strings.Replace(head, "{name: a}", "{}", 1) + resource + hooks, "the CompositeController has no name"},
		"no spec":                     {"apiVersion: metacontroller.k8s.io/v1alpha1\nkind: DecoratorController\nmetadata: {name: a}", `the DecoratorController "a" has no spec`},
		"no parent":                   {head + hooks, "f.yaml:5: the spec has no parentResource"},
		"no hooks":                    {head + resource, "f.yaml:5: the spec has no sync hook"},
		"an unknown word":             {head + "  parentResources: {}\n" + hooks, "f.yaml:5: the spec of the CompositeController has an unknown word, parentResources: did you mean parentResource?"},
		"a word of the other kind":    {head + "  attachments: []\n" + resource + hooks, "f.yaml:5: the spec of the CompositeController has an unknown word, attachments"},
		"a word twice":                {head + resource + resource + hooks, "f.yaml:6: the spec of the CompositeController has parentResource twice: it is also in line 5"},
		"a rule without a resource":   {head + "  parentResource: {apiVersion: v1}\n" + hooks, "f.yaml:5: parentResource needs an apiVersion and a resource"},
		"a child twice":               {head + resource + "  childResources: [{apiVersion: v1, resource: pods}, {apiVersion: v1, resource: pods}]\n" + hooks, "f.yaml:6: childResources has pods of v1 twice"},
		"a parent twice":              {strings.Replace(head, "Composite", "Decorator", 1) + "  resources: [{apiVersion: v1, resource: pods}, {apiVersion: v1, resource: pods}]\n" + hooks, "f.yaml:5: resources has pods of v1 twice"},
		"an unknown hook":             {head + resource + "  hooks: {synch: {webhook: {url: 'http://a'}}}\n", "f.yaml:6: the hook synch is unknown: did you mean sync?"},
		"a hook that is never called": {head + resource + "  hooks: {preUpdateChild: {webhook: {url: 'http://a'}}}\n", "the hook preUpdateChild is not supported: Metacontroller does not call it, either"},
		"a hook without a webhook":    {head + resource + "  hooks: {sync: {version: v1}}\n", "f.yaml:6: the hook sync has no webhook"},
		"a hook without a target":     {head + resource + "  hooks: {sync: {webhook: {path: /sync}}}\n", "f.yaml:6: the webhook of sync needs a url, or a service and a path"},
		"a service without a name":    {head + resource + "  hooks: {sync: {webhook: {path: /sync, service: {namespace: a}}}}\n", "the service of sync needs a name and a namespace"},
		"an unknown version":          {head + resource + "  hooks: {sync: {version: v3, webhook: {url: 'http://a'}}}\n", `f.yaml:6: "v3" is unknown`},
		"no credential":               {head + resource + "  hooks: {sync: {webhook: {url: 'http://a', authorization: {}}}}\n", "f.yaml:6: authorization has no secretRef"},
		"a basic authorization":       {head + resource + "  hooks: {sync: {webhook: {url: 'http://a', authorization: {type: Basic, secretRef: {name: a, namespace: b, key: c}}}}}\n", "f.yaml:6: authorization cannot have the type Basic: use basicAuth"},
		"two credentials":             {head + resource + "  hooks: {sync: {webhook: {url: 'http://a', basicAuth: {secretRef: {name: a, namespace: b}}, authorization: {secretRef: {name: a, namespace: b, key: c}}}}}\n", "f.yaml:6: authorization and basicAuth exclude each other"},
		"a bundle of two":             {head + resource + "  hooks: {sync: {webhook: {url: 'http://a', caBundle: {inline: a, secretRef: {name: a, namespace: b}}}}}\n", "f.yaml:6: caBundle has exactly one of inline, secretRef, and configMapRef"},
		"a reference without a name":  {head + resource + "  hooks: {sync: {webhook: {url: 'http://a', clientTLS: {secretRef: {namespace: b}}}}}\n", "f.yaml:6: clientTLS needs a secretRef with a name and a namespace"},
		"an endpoint without a host":  {head + resource + "  endpointConfigs: [{caBundle: {inline: a}}]\n" + hooks, "f.yaml:6: an entry of endpointConfigs needs a host"},
		"a rolling update":            {head + resource + "  childResources:\n  - {apiVersion: v1, resource: pods, updateStrategy: {method: RollingRecreate}}\n" + hooks, "f.yaml:7: the method RollingRecreate is not supported: use Recreate"},
		"an unknown method":           {head + resource + "  childResources:\n  - {apiVersion: v1, resource: pods, updateStrategy: {method: Inplace}}\n" + hooks, `f.yaml:7: "Inplace" is unknown: did you mean InPlace?`},
		"a selector with a mistake":   {head + "  parentResource: {apiVersion: v1, resource: pods, labelSelector: {matchLabel: {}}}\n" + hooks, "f.yaml:5: labelSelector has an unknown word, matchLabel: did you mean matchLabels?"},
		"a selector without values":   {head + "  parentResource: {apiVersion: v1, resource: pods, labelSelector: {matchExpressions: [{key: a, operator: In}]}}\n" + hooks, "f.yaml:5: the labelSelector is not valid"},
		"no declarations at all":      {"apiVersion: v1\nkind: ConfigMap\n", "f.yaml:1: the file declares nothing"},
		"two documents of handlers":   {"kopf: v1\nhandlers: []\n---\nkopf: v1\n", "f.yaml:4: the file has two documents that are no objects of Kubernetes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := document.Parse("f.yaml", []byte(test.text))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
}
