package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kopf-go/kopf/pkg/cli/launch"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// mistake is a command line with its exit code, and a part of the message.
type mistake struct {
	arguments string
	code      int
	want      string
}

func expectMistakes(t *testing.T, tests map[string]mistake) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := run(t, newKopfCommand(noCluster, nil), strings.Fields(test.arguments)...)
			if got.code != test.code || !strings.Contains(got.log, test.want) || got.out != "" || !strings.HasSuffix(got.log, "\n") {
				t.Errorf("got %+v, want %q", got, test.want)
			}
		})
	}
}

func TestInvalidCommands(t *testing.T) {
	hideCluster(t)
	expectMistakes(t, map[string]mistake{
		"an unknown command":                    {"nonsense", ExitUsage, "kopf: unknown command \"nonsense\"\nTry kopf --help.\n"},
		"a misspelled command":                  {"frezze", ExitUsage, "kopf: unknown command \"frezze\": did you mean freeze?\n"},
		"a freeze without a lifetime":           {"freeze", ExitUsage, "kopf: --lifetime is missing: set how long the operators pause, for example 10m\nTry kopf freeze --help.\n"},
		"a freeze with a zero lifetime":         {"freeze -t 0", ExitUsage, `kopf: --lifetime="0": expected a duration of at least a second, such as 60 or 10m`},
		"a freeze with an empty identity":       {"freeze -t 1h --id=", ExitUsage, "--id is empty"},
		"a freeze of patterns":                  {"freeze -t 1h -n team-*", ExitUsage, `--namespace is "team-*": use names instead of patterns`},
		"a freeze of one and of all namespaces": {"freeze -t 1h -n one -A", ExitUsage, "--all-namespaces and --namespace cannot be used together"},
		"a freeze with an argument":             {"freeze 10m", ExitUsage, `unexpected argument "10m"`},
		"a freeze without a cluster":            {"freeze -t 60", ExitError, "kopf: no cluster to connect to: set KUBECONFIG or use --kubeconfig"},
		"a resume without a cluster":            {"resume", ExitError, "kopf: no cluster to connect to"},
		"a resume with a lifetime":              {"resume -t 1h", ExitUsage, "unknown shorthand flag: 't' in -t"},
		"a run without a package":               {"run --dev", ExitUsage, "kopf: no package is given: use kopf run ./handlers\nTry kopf run --help.\n"},
		"a run with additional flags only":      {"run -- ./handlers", ExitUsage, "no package is given"},
		"a run with exclusive flags":            {"run ./handlers --standalone -P a", ExitUsage, "--standalone cannot be used"},
		"a run with definitions only":           {"run ./handlers --crds config", ExitUsage, "--crds is for --with-cluster"},
		"a run with two clusters":               {"run ./handlers --with-cluster --context prod", ExitUsage, "--with-cluster cannot be combined with --context"},
		"a run with samples only":               {"run ./handlers --samples config", ExitUsage, "--samples is for --with-cluster"},
		"an operator without a file":            {"serve --dev", ExitUsage, "kopf: no file is given: use kopf serve operator.yaml\nTry kopf serve --help.\n"},
		"a project without a folder":            {"init", ExitUsage, "kopf: no folder is given: use kopf init my-operator\nTry kopf init --help.\n"},
		"a project in two folders":              {"init one two", ExitUsage, `unexpected argument "two"`},
		"a project with a misnamed kind":        {"init greeter --kind greeting", ExitUsage, `kopf: the kind "greeting" is not a word such as Greeting`},
		"a project with a folder of no clone":   {"init greeter --replace testdata", ExitUsage, "testdata, which is not the folder of a clone of github.com/kopf-go/kopf\n"},
		"a project of a development build":      {"init greeter", ExitError, "kopf: this program was built without a version, which the project could require: name a clone of the library by --replace"},
		"a version with an argument":            {"version 5", ExitUsage, `unexpected argument "5"`},
		"completion for an unknown shell":       {"completion cmd", ExitUsage, `unknown command "cmd"`},
	})
}

func TestFirstArgumentsThatAreNoPackages(t *testing.T) {
	hideCluster(t)
	t.Chdir(t.TempDir())
	if err := os.Mkdir("handlers", 0o700); err != nil {
		t.Fatal(err)
	}
	const none = ` is a package, and kopfexample/one is not a package; use, for example: kopf `
	expectMistakes(t, map[string]mistake{
		"explain an object":      {"explain kopfexample/one -n ns", ExitUsage, "the first argument of explain" + none + "explain ./handlers kopfexample/one -n ns\n"},
		"retry a handler":        {"retry kopfexample/one fn", ExitUsage, "the first argument of retry" + none + "retry ./handlers kopfexample/one fn\n"},
		"plan a kind":            {"plan kopfexamples", ExitUsage, "kopf plan ./handlers kopfexamples\n"},
		"release a kind":         {"release kopfexamples", ExitUsage, "kopf release ./handlers kopfexamples\n"},
		"a kind with its group":  {"plan kopfexamples.kopf.dev", ExitUsage, "is not a package, says the go command: "},
		"a folder":               {"rbac handlers", ExitUsage, "use, for example: kopf rbac ./handlers\n"},
		"a folder that is run":   {"run handlers", ExitUsage, "use, for example: kopf run ./handlers\n"},
		"a package that is run":  {"run nothing", ExitError, "the package nothing cannot be found: "},
		"a folder that is none":  {"explain ./nothing kopfexample/one", ExitError, "the package ./nothing cannot be found: "},
		"one without handlers":   {"explain errors kopfexample/one", ExitError, "the package errors declares no handlers: it does not import github.com/kopf-go/kopf/pkg/kopf\n"},
		"peers without handlers": {"peers errors", ExitError, "the package errors declares no handlers: it does not import github.com/kopf-go/kopf/pkg/kopf\n"},
	})
}

func TestVersion(t *testing.T) {
	got := run(t, newKopfCommand(nil, nil), "version")
	if got.code != ExitOK || !regexp.MustCompile(`^kopf \S+ go1\.\S+ \w+/\w+\n$`).MatchString(got.out) {
		t.Errorf("got %+v", got)
	}
}

func TestVersionOfAnOperator(t *testing.T) {
	got := run(t, newShops(selector.New("pods")), "version")
	if got.code != ExitOK || !regexp.MustCompile(`^shops \S+ kopf \S+ go1\.\S+ \w+/\w+\n$`).MatchString(got.out) {
		t.Errorf("got %+v", got)
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if got := run(t, newKopfCommand(nil, nil), "completion", shell); got.code != ExitOK || !strings.Contains(got.out, "kopf") {
			t.Errorf("%s: got %+v", shell, got)
		}
	}
	if got := run(t, newKopfCommand(nil, nil), "__complete", "fr"); !strings.HasPrefix(got.out, "freeze\t") {
		t.Errorf("got %+v", got)
	}
}

func TestRunPassesItsFlagsToTheOperator(t *testing.T) {
	t.Setenv("KOPF_PRIORITY", "5")
	run := newRunCommand(nil)
	if err := run.ParseFlags([]string{"./handlers", "-n", "a,b", "-n", "c", "--dev=false", "--liveness", ":8080", "--log-format=json", "-v"}); err != nil {
		t.Fatal(err)
	}
	want := []string{"--namespace=a,b", "--namespace=c", "--dev=false", "--liveness=:8080", "--log-format=json", "--verbose=true"}
	if got := formatFlags(run.Flags()); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// noCluster starts no cluster, because no mistake may start one.
func noCluster(context.Context, []string, io.Writer) (*launch.Cluster, error) {
	return nil, errors.New("a cluster was started")
}

func TestKubectlCallsItsPluginByItsName(t *testing.T) {
	for program, want := range map[string]bool{"/usr/bin/kubectl-kopf": true, "kubectl-kopf.exe": true, "kopf": false, "bin/kubectl": false} {
		if isPlugin(program) != want {
			t.Errorf("%s: got %t", program, !want)
		}
	}
}
