package testenv

import (
	"strings"
	"testing"

	"github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var cluster *Cluster

func TestMain(m *testing.M) { Main(m, &cluster, Options{}) }

func TestDefinitionsAreAcceptedWithoutWarnings(t *testing.T) {
	g := gomega.NewWithT(t)
	types := scheme.Scheme
	g.Expect(apiextensionsv1.AddToScheme(types)).To(gomega.Succeed())
	reader, err := client.New(cluster.Config(), client.Options{Scheme: types})
	g.Expect(err).NotTo(gomega.HaveOccurred())

	g.Eventually(func(g gomega.Gomega) {
		var list apiextensionsv1.CustomResourceDefinitionList
		g.Expect(reader.List(t.Context(), &list)).To(gomega.Succeed())
		g.Expect(list.Items).NotTo(gomega.BeEmpty())
		for _, definition := range list.Items {
			conditions := map[apiextensionsv1.CustomResourceDefinitionConditionType]string{}
			for _, condition := range definition.Status.Conditions {
				conditions[condition.Type] = string(condition.Status)
			}
			g.Expect(conditions).To(gomega.HaveKeyWithValue(apiextensionsv1.Established, "True"), definition.Name)
			g.Expect(conditions).To(gomega.HaveKeyWithValue(apiextensionsv1.NamesAccepted, "True"), definition.Name)
			g.Expect(conditions).NotTo(gomega.HaveKey(apiextensionsv1.NonStructuralSchema), definition.Name)
		}
	}).Should(gomega.Succeed())
}

func TestResourcesKeepOrDropFields(t *testing.T) {
	tests := map[string]struct {
		kind             string
		spec             any
		statusByMainPath any
		statusByItsPath  any
	}{
		"KopfExample keeps everything":           {"KopfExample", "kept", nil, "kept"},
		"EphemeralVolumeClaim keeps everything":  {"EphemeralVolumeClaim", "kept", nil, "kept"},
		"KopfNoStatus has no status subresource": {"KopfNoStatus", "kept", "kept", nil},
		"KopfPruned drops unknown fields":        {"KopfPruned", nil, nil, nil},
		"KopfCluster keeps everything":           {"KopfCluster", "kept", nil, "kept"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			namespace := cluster.Namespace(t)
			if test.kind == "KopfCluster" {
				namespace = ""
			}
			object := NewObject(test.kind, namespace, "one", map[string]any{"unknown": "kept"})
			object.Object["status"] = map[string]any{"unknown": "kept"}
			g.Expect(cluster.Client().Create(t.Context(), object)).To(gomega.Succeed())
			g.Eventually(cluster.Current(object)).Should(gomega.SatisfyAll(
				HavePath("spec.unknown", test.spec), HavePath("status.unknown", test.statusByMainPath)))

			object.Object["status"] = map[string]any{"unknown": "kept"}
			err := cluster.Client().Status().Update(t.Context(), object)
			g.Expect(IsNotFound().Match(err)).To(gomega.Equal(test.kind == "KopfNoStatus"), "%v", err)
			if err == nil {
				g.Expect(object).To(HavePath("status.unknown", test.statusByItsPath))
			}
		})
	}
}

func TestWatchCanStartWithInitialEvents(t *testing.T) {
	g := gomega.NewWithT(t)
	object := NewObject("KopfExample", cluster.Namespace(t), "one", nil)
	g.Expect(cluster.Client().Create(t.Context(), object)).To(gomega.Succeed())

	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(object.GroupVersionKind())
	watch, err := cluster.Client().Watch(t.Context(), list, client.InNamespace(object.GetNamespace()),
		&client.ListOptions{Raw: &metav1.ListOptions{
			SendInitialEvents: new(true), AllowWatchBookmarks: true,
			ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		}})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	defer watch.Stop()
	g.Expect(string((<-watch.ResultChan()).Type)).To(gomega.Equal("ADDED"))
	g.Expect(string((<-watch.ResultChan()).Type)).To(gomega.Equal("BOOKMARK"))
}

func TestNamespaceIsNamedAfterTheTestAndUnique(t *testing.T) {
	g := gomega.NewWithT(t)
	first, second := cluster.Namespace(t), cluster.Namespace(t)
	g.Expect(first).To(gomega.HavePrefix("testnamespaceisnamedafterthetestandunique-"))
	g.Expect(second).NotTo(gomega.Equal(first))
}

func TestPrefix(t *testing.T) {
	tests := map[string]struct{ test, want string }{
		"a plain name":         {"TestOne", "testone-"},
		"a subtest with words": {"TestOne/a_case,_or_two", "testone-a-case-or-two-"},
		"no valid letters":     {"«»", "test-"},
		"a long name is cut":   {strings.Repeat("x", 99), strings.Repeat("x", maxPrefix) + "-"},
		"a cut before a dash":  {strings.Repeat("x", maxPrefix-1) + "/y", strings.Repeat("x", maxPrefix-1) + "-"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := prefix(test.test); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
