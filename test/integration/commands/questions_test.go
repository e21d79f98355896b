package commands

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/test/testenv"
)

// ask runs a command until it ends, and returns its output.
func ask(t *testing.T, variables []string, program string, arguments ...string) string {
	t.Helper()
	run := start(t, variables, program, arguments...)
	run.ends(0)
	return run.out()
}

// Packages of handlers are built and asked, with and without an operator.
func testQuestionsToPackages(t *testing.T, p programs) {
	g, namespace := gomega.NewWithT(t), cluster.Namespace(t)
	variables := []string{"KUBECONFIG=" + kubeconfig(t)}
	object := created(t, namespace, "one")
	about := func(command string, more ...string) []string {
		return append([]string{command, "./testdata/handlers", "kopfexample/one", "-n", namespace}, more...)
	}
	g.Expect(ask(t, variables, p.kopf, about("explain")...)).To(gomega.And(
		gomega.HavePrefix("kopfexamples.kopf.dev/one in the namespace "+namespace+"\n  It was never handled: an operator handles it as a creation.\n"),
		gomega.ContainSubstring("\n  - greet (create) will run, if an operator is running\n      declared at handlers/handlers.go:")))

	operator := start(t, variables, p.kopf, "run", "./testdata/handlers", "-n", namespace, "--standalone", "--log-format=plain")
	g.Eventually(cluster.Current(object)).Should(testenv.HavePath("status.greet", "hello"))
	g.Expect(ask(t, variables, p.kopf, about("explain", "-o", "json")...)).To(gomega.ContainSubstring(`"state": "It was handled, and has not changed since."`))

	refused := start(t, variables, p.kopf, about("retry", "greet")...)
	refused.ends(1)
	g.Expect(refused.log()).To(gomega.ContainSubstring("retry greet is refused, and nothing was written: greet does not wait for a retry. There is no handler to retry now. To call it again: " + p.kopf + " rerun ./testdata/handlers kopfexamples.kopf.dev/one -n " + namespace + " greet\n"))
	rerun := append([]string{"rerun", "./testdata/handlers", "kopfexample/one", "greet"}, "-n", namespace)
	g.Expect(ask(t, variables, p.kopf, rerun...)).To(gomega.Equal("Requested. A running operator will rerun the handler greet now.\n"))
	g.Eventually(func() int { return strings.Count(operator.log(), "Hello.") }).Should(gomega.Equal(2))

	until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	g.Expect(ask(t, variables, p.kopf, about("suspend", "--until", until)...)).To(gomega.ContainSubstring(" is suspended until " + until + ": "))
	_, suggested, _ := strings.Cut(ask(t, variables, p.kopf, about("explain")...), "To end that: ")
	suggested, _, _ = strings.Cut(suggested, "\n")
	ask(t, variables, "/bin/sh", "-c", suggested)
	g.Expect(ask(t, variables, p.kopf, about("explain")...)).NotTo(gomega.ContainSubstring("is suspended until"), suggested)
}

// The exit code of a plan tells pipelines apart what would happen, before and while an operator runs.
func testPlan(t *testing.T, p programs) {
	g, namespace := gomega.NewWithT(t), cluster.Namespace(t)
	variables := []string{"KUBECONFIG=" + kubeconfig(t)}
	plan := func(code int, more ...string) string {
		run := start(t, variables, p.kopf, append([]string{"plan", "./testdata/handlers", "-n", namespace}, more...)...)
		run.ends(code)
		return run.out() + run.log()
	}
	const none = "kopfexamples.kopf.dev: 0 objects\n  0 creations, 0 updates, and 0 deletions would be handled\n"
	g.Expect(plan(0, "--exit-code")).To(gomega.HavePrefix(none))
	object := created(t, namespace, "one")
	const one = "kopfexamples.kopf.dev: 1 object\n  1 creation, 0 updates, and 0 deletions would be handled\n  - greet would be called for 1 object\n"
	g.Expect(plan(0)).To(gomega.HavePrefix(one))
	g.Expect(plan(3, "--exit-code", "kopfexamples")).To(gomega.HavePrefix(one))
	g.Expect(plan(1, "--exit-code", "deployments")).To(gomega.HaveSuffix("this program declares no handlers for deployments.apps; it has handlers for kopfexamples.kopf.dev\n"))
	g.Expect(plan(2, "--exit-cod")).To(gomega.ContainSubstring("unknown flag: --exit-cod\n"))

	start(t, variables, p.kopf, "run", "./testdata/handlers", "-n", namespace, "--standalone")
	g.Eventually(cluster.Current(object)).Should(testenv.HavePath("status.greet", "hello"))
	g.Eventually(func() string { return plan(0) }).Should(gomega.HavePrefix("kopfexamples.kopf.dev: 1 object\n  0 creations, 0 updates, and 0 deletions would be handled\n"))
	plan(0, "--exit-code")
}

// The entries of a real peering object, of which one belongs to a running operator.
func testPeers(t *testing.T, p programs) {
	g, namespace := gomega.NewWithT(t), cluster.Namespace(t)
	variables := []string{"KUBECONFIG=" + kubeconfig(t)}
	object := testenv.NewObject("KopfPeering", namespace, "mine", nil)
	g.Expect(cluster.Client().Create(t.Context(), object)).To(gomega.Succeed())
	peers := func() string { return ask(t, variables, p.example, "peers", "--peering", "mine", "-n", namespace) }
	g.Expect(peers()).To(gomega.HaveSuffix("  - No operator has an entry: no operator pauses another one.\n"))
	g.Expect(ask(t, variables, p.example, "peers", "--peering", "mine")).To(gomega.Equal("ClusterKopfPeering \"mine\"\n" +
		"  - The object does not exist: operators with the flag --peering pause until it does, and others do not see each other.\n" +
		"\nNotes\n  - An operator with the flag --namespace uses the KopfPeering in that namespace: the command peers shows it with the same flag.\n"))

	start(t, append(variables, "POD_ID=alive"), p.example, "--peering", "mine", "-n", namespace, "--priority=1")
	const title = "KopfPeering \"mine\" in the namespace "
	g.Eventually(peers, time.Minute).Should(gomega.MatchRegexp("^" + title + "\"" + namespace + "\"\n  - alive \\(priority 1\\) was active [0-9ms]+ ago, and pauses no other\n$"))
	ask(t, variables, p.kopf, "freeze", "--lifetime=10m", "-m", "a migration", "-P", "mine", "-n", namespace, "--id", "me@here")
	g.Expect(peers()).To(gomega.MatchRegexp(`  - alive \(priority 1\) is paused by me@here, because of a higher priority\n  - me@here \(priority 100, a freeze: a migration\) pauses alive until \S+Z, or until kopf resume ends it\n`))
}

// The shell asks programs, and kubectl asks a plugin under another name.
func testCompletion(t *testing.T, p programs) {
	g, namespace := gomega.NewWithT(t), cluster.Namespace(t)
	variables := []string{"KUBECONFIG=" + kubeconfig(t)}
	created(t, namespace, "one")
	created(t, namespace, "other")
	plugin := filepath.Join(t.TempDir(), "kubectl_complete-kopf")
	g.Expect(os.Symlink(p.kopf, plugin)).To(gomega.Succeed())
	tests := map[string]struct {
		program   string
		arguments []string
		want      string
	}{
		"a kind of an operator":  {p.example, []string{"__complete", "explain", "ko"}, "kopfexamples.kopf.dev/\n:6\n"},
		"a name of an operator":  {p.example, []string{"__complete", "explain", "-n", namespace, "kopfexample/o"}, "kopfexample/one\nkopfexample/other\n:4\n"},
		"a handler":              {p.example, []string{"__complete", "rerun", "-n", namespace, "kopfexample/one", ""}, "createFn\n:4\n"},
		"an object to suspend":   {p.example, []string{"__complete", "suspend", "-n", namespace, "kopfexample/o"}, "kopfexample/one\nkopfexample/other\n:4\n"},
		"no handler to suspend":  {p.example, []string{"__complete", "suspend", "-n", namespace, "kopfexample/one", ""}, ":4\n"},
		"a kind to release":      {p.example, []string{"__complete", "release", "ko"}, "kopfexamples.kopf.dev\n:4\n"},
		"another kind":           {p.example, []string{"__complete", "release", "kopfexamples", "ko"}, "kopfexamples.kopf.dev\n:4\n"},
		"a kind of a plan":       {p.example, []string{"__complete", "plan", "ko"}, "kopfexamples.kopf.dev\n:4\n"},
		"nothing":                {p.example, []string{"__complete", "peers", ""}, ":4\n"},
		"a suspended object":     {p.example, []string{"__complete", "unsuspend", "-n", namespace, "kopfexample/on"}, "kopfexample/one\n:4\n"},
		"nothing to unsuspend":   {p.example, []string{"__complete", "unsuspend", "-n", namespace, "kopfexample/one", ""}, ":4\n"},
		"a handler to skip":      {p.example, []string{"__complete", "skip", "-n", namespace, "kopfexample", "one", "cr"}, "createFn\n:4\n"},
		"a missing kind":         {p.example, []string{"__complete", "skip", "-n", namespace, "nonsense/one", ""}, ":4\n"},
		"names of nothing":       {p.example, []string{"__complete", "unsuspend", "-n", namespace, "nonsense/"}, ":1\n"},
		"a package":              {p.kopf, []string{"__complete", "explain", "./te"}, ":16\n"},
		"an object of a package": {p.kopf, []string{"__complete", "explain", "./testdata/handlers", "-n", namespace, "kopfexample/ot"}, "kopfexample/other\n:4\n"},
		"a command of a plugin":  {plugin, []string{"fre"}, "freeze\tPause the operators of a peering for some time\n:4\n"},
		"an object for a plugin": {plugin, []string{"explain", "./testdata/handlers", "-n", namespace, "kopfexample/on"}, "kopfexample/one\n:4\n"},
	}
	for name, test := range tests {
		g.Expect(ask(t, variables, test.program, test.arguments...)).To(gomega.HavePrefix(test.want), name)
	}
	down := ask(t, []string{"KUBECONFIG=/none"}, p.example, "__complete", "explain", "ko")
	g.Expect(down).To(gomega.Equal(":1\n"))
}

// kubectl calls a plugin by its file.
func testPlugin(t *testing.T, p programs) {
	g := gomega.NewWithT(t)
	plugin := filepath.Join(t.TempDir(), "kubectl-kopf")
	g.Expect(os.Symlink(p.kopf, plugin)).To(gomega.Succeed())
	g.Expect(ask(t, nil, plugin, "--help")).To(gomega.ContainSubstring("Usage:\n  kubectl kopf COMMAND\n"))
	g.Expect(ask(t, nil, plugin, "explain", "--help")).To(gomega.ContainSubstring("  kubectl kopf explain ./handlers kopfexample/kopf-example-1\n"))
	missing := start(t, []string{"KUBECONFIG=/none"}, p.example, "explain", "kopfexample/one")
	missing.ends(1)
	g.Expect(missing.log()).To(gomega.HaveSuffix("no cluster to connect to: set KUBECONFIG or use --kubeconfig: the file in KUBECONFIG does not exist: /none\n"))
	unknown := start(t, nil, p.example, "explian")
	unknown.ends(2)
	g.Expect(unknown.log()).To(gomega.ContainSubstring(`unknown command "explian": did you mean explain?`))
}
