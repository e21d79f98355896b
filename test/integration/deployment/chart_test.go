package deployment

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// helm is the program, as an administrator of the cluster runs it.
type helm struct {
	t           *testing.T
	environment []string
}

func (w *world) helm(t *testing.T) *helm {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: "default", Name: "administrator"}
	w.create(t, &corev1.ServiceAccount{ObjectMeta: meta}, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: meta.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: meta.Namespace, Name: meta.Name}},
	})
	kubeconfig := w.kubeconfig(t, w.token(t, meta.Namespace, meta.Name))
	home := t.TempDir()
	return &helm{t, append(os.Environ(), "KUBECONFIG="+kubeconfig, "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)}
}

// run runs a command, and returns what it prints.
func (h *helm) run(arguments ...string) string {
	h.t.Helper()
	command := exec.CommandContext(h.t.Context(), "go", append([]string{"tool", "-modfile=hack/tools/chart/go.mod", "helm", "--namespace=stores"}, arguments...)...) //nolint:gosec // no input from outside
	command.Dir, command.Env = root(h.t), h.environment
	var problems strings.Builder
	command.Stderr = &problems
	output, err := command.Output()
	if err != nil {
		h.t.Fatalf("helm %q: %v\n%s%s", arguments, err, output, &problems)
	}
	return string(output)
}

// manifests returns the objects of the release mine.
func (h *helm) manifests() []*unstructured.Unstructured {
	h.t.Helper()
	return objects(h.t, []byte(h.run("get", "manifest", "mine")))
}

// Helm installs the chart, changes the release to other values and another image, and removes it. The operator works under
// exactly the roles of the chart.
func TestTheChartIsInstalledAndUpgraded(t *testing.T) {
	w := newWorld(t)
	h := w.helm(t)
	dir := filepath.Join(t.TempDir(), "stores")
	printed(t, w.program, "--name=stores", "--helm="+dir, "--image=registry.example.com/stores:v1")
	h.run("lint", "--strict", dir)
	h.run("install", "mine", dir, "--create-namespace", "--set=replicas=1")
	meeting := one(t, "ClusterKopfPeering", manifests(t, "config/samples"))
	w.install(t, []*unstructured.Unstructured{meeting})
	older := sample(t, "default")
	older.SetName("older")
	before := operate(t, w, h.manifests(), meeting)
	before.Expect(before.pods).To(gomega.HaveLen(1))
	before.handles(older)
	state, err := before.Current(older)()
	before.Expect(err).NotTo(gomega.HaveOccurred())

	h.run("upgrade", "mine", dir, "--set=metrics.enabled=true,page.enabled=true,image=registry.example.com/stores:v2")
	before.pods[0].stop()
	all := h.manifests()
	o := operate(t, w, all, meeting)
	o.Expect(o.pods).To(gomega.HaveLen(2))
	o.Expect(o.deployment.Spec.Template.Spec.Containers[0].Image).To(gomega.Equal("registry.example.com/stores:v2"))
	o.measures()
	o.presents(older)
	o.works(sample(t, "default"))
	current, err := o.Current(older)()
	o.Expect(err).NotTo(gomega.HaveOccurred())
	o.Expect(current.GetResourceVersion()).To(gomega.Equal(state.GetResourceVersion()), "an upgrade writes nothing to objects")

	h.run("uninstall", "mine")
	for _, object := range all {
		o.Eventually(o.Exists(object)).Should(gomega.BeFalse(), "%s %s", object.GetKind(), object.GetName())
	}
	definitions := slices.DeleteFunc(manifests(t, "config/crd"), func(object *unstructured.Unstructured) bool { return object.GetKind() != "CustomResourceDefinition" })
	o.Expect(definitions).NotTo(gomega.BeEmpty())
	for _, definition := range definitions {
		o.Expect(o.Exists(definition)()).To(gomega.BeTrue(), "Helm leaves the definitions, because all objects would be deleted with them")
	}
}
