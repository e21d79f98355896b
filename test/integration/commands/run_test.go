package commands

import (
	"os"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/test/testenv"
)

// created creates an object for the handlers.
func created(t *testing.T, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	object := testenv.NewObject("KopfExample", namespace, name, nil)
	gomega.NewWithT(t).Expect(cluster.Client().Create(t.Context(), object)).To(gomega.Succeed())
	return object
}

func testRunOfAProgram(t *testing.T, p programs) {
	namespace := cluster.Namespace(t)
	created(t, namespace, "one")
	operator := start(t, nil, p.kopf, "run", "../../../examples/01-minimal", "-n", namespace, "--kubeconfig", kubeconfig(t), "--log-format=plain")
	operator.says("[" + namespace + "/one] And here we are!")
	operator.session.Terminate()
	operator.ends(0)
}

func testRunOfPackages(t *testing.T, p programs) {
	g := gomega.NewWithT(t)
	namespace := cluster.Namespace(t)
	object := created(t, namespace, "one")
	operator := start(t, []string{"KUBECONFIG=" + kubeconfig(t), "KOPF_LOG_FORMAT=json"},
		p.kopf, "run", "./testdata/handlers", "./testdata/more/internal/secret", "-v", "--", "--namespace", namespace, "--log-refkey=who")
	g.Eventually(cluster.Current(object)).Should(gomega.And(
		testenv.HavePath("status.greet", "hello"), testenv.HavePath("status.whisper", "psst")))
	operator.says(`"message":"Hello."`)
	operator.says(`"who":{"apiVersion":"kopf.dev/v1","kind":"KopfExample","name":"one","uid":"` + string(object.GetUID()) + `","namespace":"` + namespace + `"}`)
	operator.session.Interrupt()
	operator.ends(0)
	for line := range strings.Lines(operator.log()) {
		g.Expect(line).To(gomega.HavePrefix(`{"severity":`))
	}
	left, err := os.ReadDir("testdata/handlers")
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(left).To(gomega.HaveLen(1), "something was left in the user's tree")
}

func testRefusedRuns(t *testing.T, p programs) {
	tests := map[string]struct {
		packages  []string
		variables []string
		want      []string
	}{
		"a missing package":        {[]string{"./testdata/nothing"}, nil, []string{"kopf: the package ./testdata/nothing cannot be found: "}},
		"a broken package":         {[]string{"./testdata/broken"}, nil, []string{"broken.go:6:", "undefined: nonsense", "\nkopf: building the package ./testdata/broken failed: "}},
		"no handlers":              {[]string{"./testdata/useless"}, nil, []string{"testdata/useless declares no handlers: it does not import github.com/kopf-go/kopf/pkg/kopf\n"}},
		"a program among packages": {[]string{"./testdata/handlers", "../../../examples/01-minimal"}, nil, []string{"examples/01-minimal is a program: run it without other packages\n"}},
		"a file":                   {[]string{"./testdata/handlers/handlers.go"}, nil, []string{"is not in a module: add a go.mod, and pass the directory instead of files\n"}},
		"a flag without effect":    {[]string{"./testdata/settled", "--workers=5", "--kubeconfig=nowhere"}, nil, []string{"A flag has no effect, because the program sets something else in its code.", "--workers", "nowhere"}},
		"no go":                    {[]string{"./testdata/handlers"}, []string{"PATH=/bin/nowhere"}, []string{"kopf: the go command, which builds the packages, is not installed or not in the PATH"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			run := start(t, test.variables, p.kopf, append([]string{"run"}, test.packages...)...)
			run.ends(1)
			for _, want := range test.want {
				gomega.NewWithT(t).Expect(run.log()).To(gomega.ContainSubstring(want))
			}
		})
	}
}

// The operator logs how it has ended, and the command adds nothing.
func testExitCode(t *testing.T, p programs) {
	operator := start(t, nil, p.kopf, "run", "./testdata/handlers", "--kubeconfig", "/dev/null/nonsense")
	operator.ends(1)
	gomega.NewWithT(t).Expect(operator.log()).To(gomega.HavePrefix("kopf: no cluster to connect to"))
	gomega.NewWithT(t).Expect(strings.Count(operator.log(), "\n")).To(gomega.Equal(1))
}
