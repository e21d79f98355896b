package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kopf-go/kopf/pkg/cli/launch"
)

// example is a built example operator with a namespace for its objects.
type example struct {
	name      string
	dir       string // the directory of its sources
	work      string // the directory of the test, which is deleted with it
	namespace string
	wide      bool     // it handles all namespaces
	flags     []string // of the operator, besides the scope
}

// build compiles an example, with the race detector if the test uses it. Another test may have
// compiled it.
func build(t testing.TB, name string) *example {
	t.Helper()
	dir := filepath.Dir(files(t, "examples/"+name+"/main.go")[0])
	e := &example{name: name, dir: dir, work: t.TempDir(), namespace: cluster.Namespace(t), flags: flags[name]}
	if _, err := os.Stat(e.binary()); err == nil {
		return e
	}
	arguments := launch.BuildArguments(".", e.binary(), append([]string{"-ldflags=-s -w"}, raceFlags...)...) // links a quarter faster
	command := exec.CommandContext(t.Context(), "go", arguments...)
	command.Dir = dir
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", dir, err, output)
	}
	return e
}

func (e *example) binary() string     { return filepath.Join(suite.Dir, e.name) }
func (e *example) kubeconfig() string { return filepath.Join(e.work, "kubeconfig") }

// sample returns the object of obj.yaml in the namespace of the test.
func (e *example) sample(t testing.TB) *unstructured.Unstructured {
	t.Helper()
	sample := e.read(t, "obj.yaml")
	sample.SetNamespace(e.namespace)
	return sample
}

// read returns the object of a file next to the sources.
func (e *example) read(t testing.TB, file string) *unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(e.dir, file))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict(content, &object.Object); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return object
}

// create creates the sample in the cluster.
func (e *example) create(t testing.TB) *unstructured.Unstructured {
	t.Helper()
	return created(t, e.sample(t))
}

func created(t testing.TB, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	if err := cluster.Client().Create(t.Context(), object); err != nil {
		t.Fatalf("creating %s: %v", object.GetName(), err)
	}
	return object
}

// merge changes an object like `kubectl patch --type merge`.
func merge(t testing.TB, object client.Object, patch string) {
	t.Helper()
	if err := cluster.Client().Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatalf("patching %s with %s: %v", object.GetName(), patch, err)
	}
}
