package olm

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
	"github.com/operator-framework/api/pkg/validation/errors"
	interfaces "github.com/operator-framework/api/pkg/validation/interfaces"
)

const root = "../../.."

// validators are those of catalogs in general. The others are for formats that are no more, or are those of one catalog.
var validators = interfaces.Validators{
	validation.ClusterServiceVersionValidator, validation.CustomResourceDefinitionValidator, validation.BundleValidator,
	validation.OperatorHubV2Validator, validation.StandardCategoriesValidator, validation.StandardCapabilitiesValidator,
	validation.ObjectValidator, validation.OperatorGroupValidator, validation.AlphaDeprecatedAPIsValidator, validation.GoodPracticesValidator,
}

// load loads a bundle as the tools of the Operator Framework do.
func load(t *testing.T, dir string) *manifests.Bundle {
	t.Helper()
	bundle, err := manifests.GetBundleFromDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return bundle
}

// check returns the errors and the warnings about a bundle.
func check(bundle *manifests.Bundle) (problems []errors.Error) {
	for _, result := range validators.Validate(bundle.ObjectsToValidate()...) {
		problems = append(problems, result.Errors...)
		problems = append(problems, result.Warnings...)
	}
	return problems
}

func TestTheBundleIsValid(t *testing.T) {
	bundle := load(t, filepath.Join(root, "config", "olm"))
	for _, problem := range check(bundle) {
		t.Error(problem)
	}
	spec := bundle.CSV.Spec
	if bundle.Package != "kopf-manager" || bundle.DefaultChannel == "" || len(bundle.V1CRDs) != 1 || len(spec.WebhookDefinitions) != 2 ||
		len(spec.CustomResourceDefinitions.Owned) != 1 || len(spec.InstallStrategy.StrategySpec.ClusterPermissions[0].Rules) == 0 {
		t.Errorf("something is missing: %+v", bundle)
	}
}

// The validators see mistakes.
func TestABundleWithoutItsDefinitionIsNotValid(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "config", "olm"))); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "manifests", "kopfexamples.kopf.dev.crd.yaml")); err != nil {
		t.Fatal(err)
	}
	isError := func(problem errors.Error) bool { return problem.Level == errors.LevelError }
	if !slices.ContainsFunc(check(load(t, dir)), isError) {
		t.Error("there is no error")
	}
}

// A bundle without a description has no errors, and the warnings that about.yaml is for.
func TestOtherBundlesAreValid(t *testing.T) {
	program := filepath.Join(t.TempDir(), "manager")
	run := func(name string, arguments ...string) {
		t.Helper()
		command := exec.CommandContext(t.Context(), name, arguments...)
		command.Dir = root
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", arguments, err, output)
		}
	}
	run("go", "build", "-o", program, "./cmd/manager")
	for name, arguments := range map[string][]string{
		"plain":         nil,
		"for namespace": {"--namespaced"},
		"with shards":   {"--shards=4", "--standalone", "--replicas=1"},
		"complete":      {"--with=metrics,prometheus,webhook", "--image=registry.example.com/manager:v2.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "bundle")
			run(program, append([]string{"manifests", "--crds=config/crd/example", "--samples=config/samples", "--olm=" + dir}, arguments...)...)
			for _, problem := range check(load(t, dir)) {
				if problem.Level == errors.LevelError && !isForCatalogs(problem) {
					t.Error(problem)
				}
			}
			about, err := os.ReadFile(filepath.Join(dir, "about.yaml")) //nolint:gosec // it was just written
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(about, []byte("displayName: kopf-manager\n")) {
				t.Errorf("got %s", about)
			}
		})
	}
}

// isForCatalogs reports whether a problem is about what only a person can say.
func isForCatalogs(problem errors.Error) bool {
	return slices.ContainsFunc([]string{"csv.Spec.Provider.Name", "csv.Spec.Maintainers"}, func(field string) bool {
		return bytes.Contains([]byte(problem.Detail), []byte(field))
	})
}
