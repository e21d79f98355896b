package chart

import (
	"bytes"
	"maps"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	"sigs.k8s.io/yaml"
)

// build builds the example manager.
func build(t *testing.T) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "manager")
	command := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/manager")
	command.Dir = filepath.Join("..", "..", "..")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return program
}

// run runs the command manifests of the manager.
func run(t *testing.T, program string, arguments ...string) []byte {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, append([]string{"manifests", "--crds=config/crd/kopf.dev,config/crd/example"}, arguments...)...)
	command.Dir = filepath.Join("..", "..", "..")
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%q: %v", arguments, err)
	}
	return output
}

// objects returns the objects of manifests by their kinds and names, without definitions and namespaces, which Helm makes
// in other ways.
func objects(t *testing.T, text []byte) map[string]map[string]any {
	t.Helper()
	found := map[string]map[string]any{}
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		object := map[string]any{}
		if err := yaml.Unmarshal(slices.Concat(document, []byte("\n")), &object); err != nil { // a block at the end has a last line
			t.Fatalf("%v\n%s", err, document)
		}
		kind, _ := object["kind"].(string)
		if kind == "" || kind == "CustomResourceDefinition" || kind == "Namespace" {
			continue
		}
		metadata, _ := object["metadata"].(map[string]any)
		name, _ := metadata["name"].(string)
		found[kind+" "+name] = object
	}
	return found
}

// render returns the manifests of a release in the namespace stores, as helm template does.
func render(t *testing.T, dir string, values map[string]any) (map[string]map[string]any, error) {
	t.Helper()
	loaded, err := loader.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(loaded, values, chartutil.ReleaseOptions{Name: "mine", Namespace: "stores", IsInstall: true}, chartutil.DefaultCapabilities)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(loaded, all)
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	for _, file := range slices.Sorted(maps.Keys(files)) {
		text.WriteString("\n---\n" + files[file])
	}
	return objects(t, []byte(text.String())), nil
}

func TestHelmAcceptsTheChart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kopf-manager") // Helm wants the name of the chart
	run(t, build(t), "--helm="+dir)
	for _, message := range lint.AllWithKubeVersion(dir, nil, "stores", nil).Messages {
		if message.Severity > support.InfoSev {
			t.Error(message)
		}
	}
	loaded, err := loader.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(loaded.CRDObjects()) != 3 {
		t.Errorf("got the definitions %v", loaded.CRDObjects())
	}
}

// Values lead to the same manifests as flags.
func TestTheChartRendersWhatIsPrinted(t *testing.T) {
	program := build(t)
	dir := filepath.Join(t.TempDir(), "kopf-manager")
	run(t, program, "--helm="+dir)
	enabled := map[string]any{"enabled": true}
	for name, test := range map[string]struct {
		values map[string]any
		flags  []string
	}{
		"by default":           {nil, nil},
		"of another image":     {map[string]any{"image": "example.com/mine:v2", "replicas": 1}, []string{"--image=example.com/mine:v2", "--replicas=1"}},
		"for the namespace":    {map[string]any{"namespaced": true}, []string{"--namespaced"}},
		"with metrics":         {map[string]any{"metrics": enabled}, []string{"--with=metrics"}},
		"with webhooks":        {map[string]any{"webhook": enabled}, []string{"--with=webhook"}},
		"with all other parts": {map[string]any{"metrics": enabled, "webhook": enabled, "networkPolicy": enabled, "prometheus": enabled, "certmanager": enabled}, []string{"--with=metrics,webhook,network-policy,prometheus,certmanager"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := render(t, dir, test.values)
			if err != nil {
				t.Fatal(err)
			}
			want := objects(t, run(t, program, append(test.flags, "--namespace=stores")...))
			if names := slices.Sorted(maps.Keys(want)); !slices.Equal(slices.Sorted(maps.Keys(got)), names) {
				t.Fatalf("got %q, want %q", slices.Sorted(maps.Keys(got)), names)
			}
			for object := range want {
				if !reflect.DeepEqual(got[object], want[object]) {
					t.Errorf("%s: got %.1000v, want %.1000v", object, got[object], want[object])
				}
			}
		})
	}
}

func TestComponentsThatNeedOthers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kopf-manager")
	run(t, build(t), "--helm="+dir)
	_, err := render(t, dir, map[string]any{"prometheus": map[string]any{"enabled": true}})
	if err == nil || !strings.Contains(err.Error(), "prometheus needs metrics") {
		t.Errorf("got %v", err)
	}
}
