package deployment

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kopf-go/kopf/test/audit"
)

func TestDefinitionIsThatOfTheExamples(t *testing.T) {
	if read(t, "config/crd/example/kopfexamples.yaml") != read(t, "examples/crd/kopfexamples.yaml") {
		t.Error("config/crd/example and examples/crd differ: copy the file")
	}
}

func TestPermissionsAreDocumented(t *testing.T) {
	documented := read(t, "docs/permissions.md")
	for _, path := range []string{"config/rbac/cluster/role.yaml", "config/rbac/base/leader_election.yaml", "config/webhook/roles.yaml"} {
		for part := range strings.SplitSeq(read(t, path), "---\n") {
			_, role, _ := strings.Cut(part, "apiVersion")
			if !strings.Contains(role, "Binding\n") && !strings.Contains(documented, "```yaml\napiVersion"+role+"```\n") {
				t.Errorf("docs/permissions.md does not contain this role of %s: %s", path, role)
			}
		}
	}
}

func TestRolesHaveNoWildcards(t *testing.T) {
	for _, dir := range []string{complete(t), "config/namespaced"} {
		all := manifests(t, dir)
		grants := audit.Grants(t, all)
		if len(grants) == 0 {
			t.Errorf("%s has no roles", dir)
		}
		for _, g := range grants {
			if strings.Contains(g.Verb+g.Group+g.Resource+g.Name, "*") {
				t.Errorf("%s: %+v", dir, g)
			}
		}
	}
}

func TestServicesLeadToThePods(t *testing.T) {
	all := manifests(t, complete(t))
	pods := of[appsv1.Deployment](t, "Deployment", all)[0].Spec.Template
	for _, service := range of[corev1.Service](t, "Service", all) {
		if !labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pods.Labels)) {
			t.Errorf("the service %s selects other pods", service.Name)
		}
		for _, from := range service.Spec.Ports {
			if !slices.ContainsFunc(pods.Spec.Containers[0].Ports, func(to corev1.ContainerPort) bool {
				return to.Name == from.TargetPort.StrVal && to.ContainerPort == from.Port
			}) {
				t.Errorf("the service %s maps the port %d to a missing or different port", service.Name, from.Port)
			}
		}
	}
}

// read returns the text of a file of the repository.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
