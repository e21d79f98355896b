package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/kopf-go/kopf/hack/envtest/assets"
	"github.com/kopf-go/kopf/internal/guard"
	"github.com/kopf-go/kopf/internal/manifests"
	"github.com/kopf-go/kopf/pkg/cli/launch"
)

// fieldManager is the field manager of the sample objects.
const fieldManager = "kopf-go-dev"

// example is a folder with the main package of an operator.
type example struct {
	name string
	root string // the folder of all examples
	dir  string
}

// findExample finds a folder of examples/ by its name, or any other folder by its
// path.
func findExample(name string) (example, error) {
	root, err := assets.Root()
	if err != nil {
		return example{}, err
	}
	all := filepath.Join(root, "examples")
	dir := filepath.Join(all, name)
	if strings.ContainsRune(name, filepath.Separator) {
		dir = filepath.Clean(name)
	}
	if sources, _ := filepath.Glob(filepath.Join(dir, "*.go")); name == "" || len(sources) == 0 {
		return example{}, fmt.Errorf("no example %q; set EXAMPLE to one of: %s", name, strings.Join(exampleNames(all), " "))
	}
	return example{name: filepath.Base(dir), root: all, dir: dir}, nil
}

func exampleNames(root string) []string {
	sources, _ := filepath.Glob(filepath.Join(root, "*", "main.go"))
	for i, source := range sources {
		sources[i] = filepath.Base(filepath.Dir(source))
	}
	return sources
}

// build compiles the operator and returns a command that runs it under the guard.
func (e example) build(ctx context.Context, watch *guard.Guard, out *console) (string, error) {
	out.say("Building the operator in %s.", e.dir)
	binary := filepath.Join(watch.Dir(), "operator")
	command := exec.CommandContext(ctx, "go", launch.BuildArguments(".", binary, "-ldflags=-s -w")...) //nolint:gosec // as a developer wants it; it links a quarter faster
	command.Dir = e.dir
	command.Stdout, command.Stderr = out, out
	if err := command.Run(); err != nil {
		return "", errors.Join(fmt.Errorf("building %s: %w", e.dir, err), ctx.Err())
	}
	return watch.Wrap(binary)
}

// The packages of this module, and the one with servers for webhooks.
const (
	ownPackages    = "github.com/kopf-go/kopf/pkg/"
	serversPackage = ownPackages + "webhook/servers"
)

// registersWebhooks reports whether the operator has a server for its webhooks: whether the program, or
// a package that it imports, imports the servers. The packages of this module always do.
func (e example) registersWebhooks(ctx context.Context) (bool, error) {
	command := exec.CommandContext(ctx, "go", "list", "-deps", "-f", `{{.ImportPath}} {{join .Imports " "}}`, ".")
	command.Dir = e.dir
	listed, err := command.Output()
	if err != nil {
		return false, errors.Join(fmt.Errorf("listing the packages of %s: %w", e.dir, err), ctx.Err())
	}
	for line := range strings.Lines(string(listed)) {
		packages := strings.Fields(line)
		if !strings.HasPrefix(packages[0], ownPackages) && slices.Contains(packages, serversPackage) {
			return true, nil
		}
	}
	return false, nil
}

// install creates the definitions of all examples, and those of this example, in the
// cluster. It finds them as `kopf run --with-cluster` does.
func (e example) install(target *target, out *console) error {
	paths := append([]string{filepath.Join(e.root, "crd")}, launch.Definitions(e.dir)...)
	out.say("Installing the resource definitions from %s.", strings.Join(paths, ", "))
	found, err := manifests.Definitions(paths...)
	if err != nil {
		return err
	}
	_, err = envtest.InstallCRDs(target.config, envtest.CRDInstallOptions{Paths: manifests.Files(found)})
	return err
}

// sample returns the sample object, as it is in its file, with its namespace. It
// returns nil if the example has no sample object.
func (e example) sample(target *target, out *console) (*unstructured.Unstructured, error) {
	path := filepath.Join(e.dir, "obj.yaml")
	content, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		path = filepath.Join(e.root, "obj.yaml")
		content, err = os.ReadFile(path)
	}
	if errors.Is(err, os.ErrNotExist) {
		out.say("This example has no obj.yaml: create an object to see the operator work.")
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	sample, err := decode(content)
	if err != nil {
		return nil, fmt.Errorf("%s must contain exactly one object: %w", path, err)
	}
	if err := target.locate(sample); err != nil {
		return nil, err
	}
	out.say("Creating the sample object from %s.", path)
	return sample, nil
}

// decode reads an object as the API machinery does: whole numbers are int64.
func decode(text []byte) (*unstructured.Unstructured, error) {
	content, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(content); err != nil {
		return nil, err
	}
	return object, nil
}

// locate gives the sample its namespace.
func (t *target) locate(sample *unstructured.Unstructured) error {
	reader, err := client.New(t.config, client.Options{})
	if err != nil {
		return err
	}
	namespaced, err := reader.IsObjectNamespaced(sample)
	if err != nil {
		return err
	}
	if namespaced && sample.GetNamespace() == "" {
		sample.SetNamespace(t.namespace)
	}
	return nil
}

// apply creates the sample, or resets an existing one to its file.
func (t *target) apply(ctx context.Context, sample *unstructured.Unstructured) error {
	writer, err := client.New(t.config, client.Options{})
	if err != nil {
		return err
	}
	return writer.Apply(ctx, client.ApplyConfigurationFromUnstructured(sample), client.ForceOwnership, client.FieldOwner(fieldManager))
}
