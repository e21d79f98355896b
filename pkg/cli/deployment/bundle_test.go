package deployment_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/internal/conversion"
	"github.com/kopf-go/kopf/internal/golden"
	"github.com/kopf-go/kopf/internal/manifests"
	"github.com/kopf-go/kopf/pkg/cli/deployment"
	"github.com/kopf-go/kopf/pkg/inspect"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// bundled returns the program as the Operator Lifecycle Manager runs it.
func bundled() inspect.Program {
	p := shops(true)
	p.Settings.Admission.Managed = ""
	return p
}

// readTree returns the files of a folder.
func readTree(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	if err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path) //nolint:gosec // it was just written
		name, _ := filepath.Rel(dir, path)
		found[filepath.ToSlash(name)] = string(text)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return found
}

// hack/tools/olm checks a bundle with the validators of the Operator Framework.
func TestWriteBundle(t *testing.T) {
	dir := t.TempDir()
	o := deployment.Options{Replicas: 2, Definitions: definitions(t), Components: []string{"metrics", "webhook", "prometheus"}, IsBundle: true}
	samples, err := manifests.Objects([]byte("{apiVersion: example.com/v1, kind: Shop, metadata: {name: <corner>}}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: p}}"))
	if err != nil {
		t.Fatal(err)
	}
	if err := deploy(t, bundled(), o).WriteBundle(dir, samples); err != nil {
		t.Fatal(err)
	}
	files := readTree(t, dir)
	want := []string{
		"about.yaml", "bundle.Dockerfile",
		"manifests/shops-alerts_prometheusrule.yaml", "manifests/shops-dashboard_configmap.yaml", "manifests/shops-metrics-reader_clusterrole.yaml",
		"manifests/shops-metrics_service.yaml", "manifests/shops-metrics_servicemonitor.yaml",
		"manifests/shops-shop-admin_clusterrole.yaml", "manifests/shops-shop-editor_clusterrole.yaml", "manifests/shops-shop-viewer_clusterrole.yaml",
		"manifests/shops.clusterserviceversion.yaml", "manifests/shops.example.com.crd.yaml", "manifests/shops_poddisruptionbudget.yaml",
		"metadata/annotations.yaml",
	}
	if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	for file, text := range files {
		if strings.HasPrefix(file, "manifests/") && strings.Contains(text, "  namespace: stores\n") {
			t.Errorf("%s names a namespace", file)
		}
	}
	golden.Compare(t, filepath.Join("testdata", "bundle.yaml"), files["manifests/shops.clusterserviceversion.yaml"])
	golden.Compare(t, filepath.Join("testdata", "bundle-about.yaml"), files["about.yaml"])
	golden.Compare(t, filepath.Join("testdata", "bundle-annotations.yaml"), files["metadata/annotations.yaml"])
	golden.Compare(t, filepath.Join("testdata", "bundle-dockerfile.txt"), files["bundle.Dockerfile"])
}

// A person describes the operator in about.yaml, which stays as it is.
func TestBundlesOfDescribedOperators(t *testing.T) {
	for name, test := range map[string]struct {
		about, want string
	}{
		"with an icon":             {"iconFile: icon.svg", "  icon:\n  - base64data: PHN2Zy8+\n    mediatype: image/svg+xml\n"},
		"with a maintainer":        {"maintainers: [{name: A, email: a@example.com}]", "  maintainers:\n  - email: a@example.com\n    name: A\n"},
		"with another capability":  {"annotations: {capabilities: Full Lifecycle}", "    capabilities: Full Lifecycle\n"},
		"with images":              {"relatedImages: [{name: shop, image: example.com/shop:v1}]", "    - image: example.com/shop:v1\n      name: shop\n"},
		"with channels":            {"channels: [candidate, stable]\ndefaultChannel: stable", "bundle.channels.v1: candidate,stable\n  operators.operatorframework.io.bundle.channel.default.v1: stable\n"},
		"with nothing":             {"{}", "  displayName: shops\n"},
		"with a mistyped field":    {"display: x", `unknown field "display"`},
		"with a missing icon":      {"iconFile: other.svg", "other.svg: no such file"},
		"with an icon of no image": {"iconFile: icon.txt", "neither an SVG"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range map[string]string{"about.yaml": test.about, "icon.svg": "<svg/>"} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var got string
			if err := deploy(t, bundled(), deployment.Options{Definitions: definitions(t), IsBundle: true}).WriteBundle(dir, nil); err != nil {
				got = err.Error()
			}
			files := readTree(t, dir)
			got += files["manifests/shops.clusterserviceversion.yaml"] + files["metadata/annotations.yaml"]
			if !strings.Contains(got, test.want) {
				t.Errorf("got %s", got)
			}
			if files["about.yaml"] != test.about {
				t.Errorf("about.yaml was changed to %s", files["about.yaml"])
			}
		})
	}
}

func TestBundlesOfOneNamespace(t *testing.T) {
	dir := t.TempDir()
	if err := deploy(t, bundled(), deployment.Options{Definitions: definitions(t), IsBundle: true, Namespaced: true}).WriteBundle(dir, nil); err != nil {
		t.Fatal(err)
	}
	text := readTree(t, dir)["manifests/shops.clusterserviceversion.yaml"]
	if strings.Contains(text, "clusterPermissions:") || !strings.Contains(text, "{type: OwnNamespace, supported: true}") || !strings.Contains(text, "- --namespace=$(POD_NAMESPACE)") {
		t.Errorf("got %s", text)
	}
}

func TestBundlesWithConversions(t *testing.T) {
	p := bundled()
	p.Conversions = conversion.Set{{Selector: selector.New("example.com", "shops"), From: "v1", To: "v1beta1", DeclaredAt: "shops/main.go:9"}}
	dir := t.TempDir()
	if err := deploy(t, p, deployment.Options{Definitions: definitions(t), IsBundle: true}).WriteBundle(dir, nil); err != nil {
		t.Fatal(err)
	}
	text := readTree(t, dir)["manifests/shops.clusterserviceversion.yaml"]
	if !strings.Contains(text, "conversionCRDs:\n      - shops.example.com\n") || !strings.Contains(text, "type: ConversionWebhook\n") {
		t.Errorf("got %s", text)
	}
	if err := deploy(t, p, deployment.Options{Definitions: definitions(t), IsBundle: true, Namespaced: true}).WriteBundle(dir, nil); err == nil || !strings.Contains(err.Error(), "convert objects") {
		t.Errorf("got %v", err)
	}
}

func TestWhatCannotBeABundle(t *testing.T) {
	longID := bundled()
	longID.Handlers[1].ID = strings.Repeat("a", 60)
	unknown := bundled()
	unknown.Handlers[1].Selector = selector.New("other.com", "things")
	everything := bundled()
	everything.Handlers[1].Selector = selector.New(selector.Everything)
	elsewhere := bundled()
	elsewhere.Settings.Replicas.LeaseNamespace = "elsewhere"
	for want, test := range map[string]struct {
		program inspect.Program
		options deployment.Options
	}{
		"apply the policy yourself":           {bundled(), deployment.Options{Components: []string{"network-policy"}}},
		"makes the certificate":               {bundled(), deployment.Options{Components: []string{"webhook", "certmanager"}}},
		"leave Settings.Admission.Managed":    {shops(true), deployment.Options{}},
		"shorten the id of the handler":       {longID, deployment.Options{}},
		`shops/main.go:7: "other.com/things"`: {unknown, deployment.Options{}},
		`shops/main.go:7: "*"`:                {everything, deployment.Options{}},
		"name the namespace elsewhere":        {elsewhere, deployment.Options{}},
	} {
		test.options.IsBundle = true
		test.options.Definitions = definitions(t)
		if err := deploy(t, test.program, test.options).WriteBundle(t.TempDir(), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}

// A file with several definitions is divided, because a bundle has a file for each object.
func TestBundlesDivideFilesWithDefinitions(t *testing.T) {
	const text = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: as.example.com},
  spec: {group: example.com, scope: Namespaced, names: {kind: A, plural: as}, versions: [{name: v1, served: true, storage: true}, {name: v0}]}}
---
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: bs.example.com},
  spec: {group: example.com, scope: Namespaced, names: {kind: B, plural: bs}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, description: A thing.}}}]}}
`
	file := filepath.Join(t.TempDir(), "both.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	both, err := manifests.Require(file)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	p := shops(false)
	if err := deploy(t, p, deployment.Options{Definitions: append(both, definitions(t)...), IsBundle: true}).WriteBundle(dir, []*unstructured.Unstructured{}); err != nil {
		t.Fatal(err)
	}
	files := readTree(t, dir)
	for _, name := range []string{"as", "bs"} {
		found, err := manifests.Objects([]byte(files["manifests/"+name+".example.com.crd.yaml"]))
		if err != nil || len(found) != 1 || found[0].GetName() != name+".example.com" {
			t.Errorf("%s: got %v, %v", name, found, err)
		}
	}
	csv := files["manifests/shops.clusterserviceversion.yaml"]
	if !strings.Contains(csv, "description: A thing.") || strings.Contains(csv, "version: v0") || strings.Contains(csv, "webhookdefinitions") {
		t.Errorf("got %s", csv)
	}
}
