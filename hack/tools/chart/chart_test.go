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

// compare expects the same objects of the chart as of the command manifests.
func compare(t *testing.T, dir, program string, values map[string]any, flags []string) {
	t.Helper()
	got, err := render(t, dir, values)
	if err != nil {
		t.Fatal(err)
	}
	want := objects(t, run(t, program, append(flags, "--namespace=stores")...))
	if names := slices.Sorted(maps.Keys(want)); !slices.Equal(slices.Sorted(maps.Keys(got)), names) {
		t.Fatalf("got %q, want %q", slices.Sorted(maps.Keys(got)), names)
	}
	for object := range want {
		if !reflect.DeepEqual(got[object], want[object]) {
			t.Errorf("%s: got %.1000v, want %.1000v", object, got[object], want[object])
		}
	}
}

// components are the values that add components, and the names of these for the flag --with.
var components = []struct{ value, name, needs string }{
	{"metrics", "metrics", ""},
	{"webhook", "webhook", ""},
	{"page", "page", ""},
	{"networkPolicy", "network-policy", ""},
	{"prometheus", "prometheus", "metrics"},
	{"certmanager", "certmanager", "webhook"},
}

// Values lead to the same manifests as flags, in all combinations. The chart refuses a component without the one that it
// needs, as the command does.
func TestTheChartRendersWhatIsPrinted(t *testing.T) {
	program := build(t)
	dir := filepath.Join(t.TempDir(), "kopf-manager")
	run(t, program, "--helm="+dir)
	known := []string{"image", "replicas", "resources", "namespaced"}
	for _, component := range components {
		known = append(known, component.value)
	}
	loaded, err := loader.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if all := slices.Sorted(maps.Keys(loaded.Values)); !slices.Equal(all, slices.Sorted(slices.Values(known))) {
		t.Fatalf("the values are %q, and the test knows %q", all, known)
	}
	for _, namespaced := range []bool{false, true} {
		for chosen := range 1 << len(components) {
			values := map[string]any{"namespaced": namespaced}
			var with, lacking []string
			for i, component := range components {
				if enabled := chosen&(1<<i) != 0; enabled {
					values[component.value] = map[string]any{"enabled": true}
					with = append(with, component.name)
					if component.needs != "" && !slices.Contains(with, component.needs) {
						lacking = append(lacking, component.value+" needs "+component.needs)
					}
				}
			}
			flags := []string{"--with=" + strings.Join(with, ",")}
			if namespaced {
				flags = append(flags, "--namespaced")
			}
			t.Run(strings.Join(flags, " "), func(t *testing.T) {
				if len(lacking) == 0 {
					compare(t, dir, program, values, flags)
				} else if _, err := render(t, dir, values); err == nil || !slices.ContainsFunc(lacking, func(why string) bool { return strings.Contains(err.Error(), why) }) {
					t.Errorf("got %v, want one of %q", err, lacking)
				}
			})
		}
	}
	t.Run("image and replicas", func(t *testing.T) {
		compare(t, dir, program, map[string]any{"image": "example.com/mine:v2", "replicas": 1}, []string{"--image=example.com/mine:v2", "--replicas=1"})
	})
	t.Run("resources", func(t *testing.T) {
		want := map[string]any{"limits": map[string]any{"memory": "1Gi"}}
		got, err := render(t, dir, map[string]any{"resources": map[string]any{"requests": nil, "limits": map[string]any{"memory": "1Gi", "cpu": nil}}})
		if err != nil {
			t.Fatal(err)
		}
		text, err := yaml.Marshal(got["Deployment kopf-manager"])
		if err != nil {
			t.Fatal(err)
		}
		deployment := struct {
			Spec struct {
				Template struct {
					Spec struct {
						Containers []struct{ Resources map[string]any }
					}
				}
			}
		}{}
		if err := yaml.Unmarshal(text, &deployment); err != nil {
			t.Fatal(err)
		}
		if resources := deployment.Spec.Template.Spec.Containers[0].Resources; !reflect.DeepEqual(resources, want) {
			t.Errorf("got %v, want %v", resources, want)
		}
	})
}
