package fidelity

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kopf-go/kopf/hack/envtest/assets"
	"github.com/kopf-go/kopf/internal/binaries"
)

const foreignTest = `package foreign

import (
	"testing"

	"k8s.io/client-go/discovery"

	"github.com/kopf-go/kopf/pkg/kopftest"
)

func TestCluster(t *testing.T) {
	client, err := discovery.NewDiscoveryClientForConfig(kopftest.Cluster(t))
	if err != nil {
		t.Fatal(err)
	}
	version, err := client.ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the server is %s", version.GitVersion)
}
`

// fakeBuild replaces the go command: it checks that it is called in the module of the pins, and
// takes the programs that are built already.
const fakeBuild = `#!/bin/sh
grep -q 'k8s.io/kubernetes v' go.mod && grep -q 'k8s.io/kubernetes v' go.sum || exit 1
while [ "$1" != -o ]; do shift; done
ln -s "$PROGRAMS/$(basename "$2")" "$2"
`

const brokenBuild = "#!/bin/sh\necho 'there is nothing to build' >&2\nexit 1\n"

// The modules of users do not contain this repository. On a machine without the programs of a
// cluster, these are built once, and found from then on.
func TestClusterInAnotherModule(t *testing.T) {
	programs, err := assets.Find()
	if err != nil {
		t.Fatal(err)
	}
	test, home := compileForeignTest(t), t.TempDir()
	run := func(goCommand string) string {
		bin := t.TempDir()
		write(t, filepath.Join(bin, "go"), goCommand)
		command := exec.Command(test, "-test.v", "-test.run=^TestCluster$")
		command.Dir = t.TempDir()
		command.Env = append(os.Environ(), "HOME="+home, "XDG_CACHE_HOME="+filepath.Join(home, "cache"), "XDG_DATA_HOME="+filepath.Join(home, "data"),
			"PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "PROGRAMS="+programs, binaries.Variable+"=")
		output, err := command.CombinedOutput()
		if err != nil || !strings.Contains(string(output), "the server is v1.") {
			t.Fatalf("%v\n%s", err, output)
		}
		return string(output)
	}
	if output := run(fakeBuild); !strings.Contains(output, "building kube-apiserver v1.") {
		t.Errorf("the build is not reported:\n%s", output)
	}
	run(brokenBuild)
}

// compileForeignTest makes a module that requires this one, and returns the program of its test.
func compileForeignTest(t *testing.T) string {
	t.Helper()
	root, err := assets.Root()
	if err != nil {
		t.Fatal(err)
	}
	module := t.TempDir()
	goMod := strings.Replace(read(t, filepath.Join(root, "go.mod")), "module github.com/kopf-go/kopf\n", "module example.com/foreign\n", 1)
	write(t, filepath.Join(module, "go.mod"), goMod+"\nrequire github.com/kopf-go/kopf v0.0.0\n\nreplace github.com/kopf-go/kopf => "+root+"\n")
	write(t, filepath.Join(module, "go.sum"), read(t, filepath.Join(root, "go.sum")))
	write(t, filepath.Join(module, "foreign_test.go"), foreignTest)
	program := filepath.Join(t.TempDir(), "foreign.test")
	command := exec.Command("go", "test", "-c", "-mod=mod", "-o", program, ".")
	command.Dir, command.Env = module, append(os.Environ(), "GOWORK=off", "GOPROXY=off")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return program
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o700); err != nil { //nolint:gosec // some are programs
		t.Fatal(err)
	}
}
