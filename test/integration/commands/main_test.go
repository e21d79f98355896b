// Package commands tests the command kopf and the programs that it runs from the user's point
// of view: their output, their exit codes, and their effects in a real cluster.
package commands

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/kopf-go/kopf/internal/guard"
	"github.com/kopf-go/kopf/pkg/cli/launch"
	"github.com/kopf-go/kopf/test/testenv"
)

var cluster *testenv.Cluster

func TestMain(m *testing.M) {
	testenv.Main(m, &cluster, testenv.Options{CRDs: []string{"config/crd/kopf.dev", testenv.ExampleCRDs, "examples/kubebuilder/config/crd/bases"}})
}

// TestCommands builds the commands once for all subtests.
func TestCommands(t *testing.T) {
	gomega.SetDefaultEventuallyTimeout(2 * time.Minute) // kopf compiles programs, possibly for the first time
	p := programs{kopf: build(t, ".", "cmd/kopf"), example: build(t, ".", "examples/01-minimal"), manager: build(t, "examples/kubebuilder", "cmd")}
	for name, test := range map[string]func(*testing.T, programs){
		"a program is run":                testRunOfAProgram,
		"packages of handlers are run":    testRunOfPackages,
		"a run with a cluster of its own": testRunWithCluster,
		"a cluster without an operator":   testCluster,
		"invalid runs fail":               testRefusedRuns,
		"the exit code is passed on":      testExitCode,
		"freeze and resume":               testFreezeAndResume,
		"freeze without peering fails":    testFreezeOfNothing,
		"troubles":                        testTroubles,
		"an operator without permission":  testNoPermission,
		"an operator without a resource":  testNoResource,
		"the environment":                 testEnvironment,
		"other commands":                  testOthers,
		"questions to packages":           testQuestionsToPackages,
		"peers":                           testPeers,
		"a plan":                          testPlan,
		"completion":                      testCompletion,
		"a plugin of kubectl":             testPlugin,
		"a release":                       testRelease,
		"a running operator":              testRunning,
		"a running operator with shards":  testShards,
		"a manager with commands":         testManagerWithCommands,
		"a new project":                   testInit,
	} {
		t.Run(name, func(t *testing.T) { test(t, p) })
	}
}

// programs contains the paths of the built programs.
type programs struct{ kopf, example, manager string }

// build builds a package of the module in a folder of the repository.
func build(t *testing.T, module, pkg string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), filepath.Base(pkg))
	command := exec.CommandContext(t.Context(), "go", launch.BuildArguments("./"+pkg, path, "-ldflags=-s -w")...) //nolint:gosec // no input from outside
	command.Dir = "../../../" + module
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("building %s: %v\n%s", pkg, err, output)
	}
	return path
}

// kubeconfig returns a file with the cluster and an administrator.
func kubeconfig(t *testing.T) string {
	t.Helper()
	return changed(t, func(*api.Cluster, *api.AuthInfo) {})
}

// changed returns a modified kubeconfig.
func changed(t *testing.T, change func(*api.Cluster, *api.AuthInfo)) string {
	t.Helper()
	config, err := clientcmd.Load(cluster.KubeConfig())
	if err != nil {
		t.Fatal(err)
	}
	current := config.Contexts[config.CurrentContext]
	change(config.Clusters[current.Cluster], config.AuthInfos[current.AuthInfo])
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// process is a running command.
type process struct {
	t       *testing.T
	session *gexec.Session
}

// start runs a command with environment variables. The end of the test terminates it.
func start(t *testing.T, variables []string, program string, arguments ...string) *process {
	t.Helper()
	watch, err := guard.New() // otherwise, the operator would survive a killed test
	if err != nil {
		t.Fatal(err)
	}
	script, err := watch.Wrap(program)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(script, arguments...)
	command.Env = append(append(os.Environ(), "KUBECONFIG=/dev/null"), variables...)
	session, err := gexec.Start(command, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t, session}
	t.Cleanup(func() {
		session.Terminate()
		gomega.NewWithT(t).Eventually(session).Should(gexec.Exit())
		if t.Failed() {
			t.Logf("It said:\n%s%s", p.out(), p.log())
		}
		if err := watch.Release(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func (p *process) out() string { return string(p.session.Out.Contents()) }
func (p *process) log() string { return string(p.session.Err.Contents()) }

// ends waits for the end and checks the exit code.
func (p *process) ends(code int) {
	p.t.Helper()
	gomega.NewWithT(p.t).Eventually(p.session).Should(gexec.Exit(code), "%s%s", p.out(), p.log())
}

// says waits for a text in the log.
func (p *process) says(text string) {
	p.t.Helper()
	gomega.NewWithT(p.t).Eventually(p.log).Should(gomega.ContainSubstring(text))
}
