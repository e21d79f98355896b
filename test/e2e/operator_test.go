package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	"github.com/kopf-go/kopf/internal/guard"
)

// operator is a running example.
type operator struct {
	t       testing.TB
	session *gexec.Session
	stopped bool
}

// start runs the example for its namespace, with additional environment variables. The end of
// the test stops it.
func (e *example) start(t testing.TB, environment ...string) *operator {
	t.Helper()
	return e.startWith(t, nil, environment...)
}

// startWith is like start, with additional arguments.
func (e *example) startWith(t testing.TB, arguments []string, environment ...string) *operator {
	t.Helper()
	return e.startAs(t, append(e.scope(), arguments...), environment...)
}

// startAs runs the example with the arguments alone.
func (e *example) startAs(t testing.TB, arguments []string, environment ...string) *operator {
	t.Helper()
	watch, err := guard.New() // otherwise, the operator would survive a killed test
	if err != nil {
		t.Fatal(err)
	}
	script, err := watch.Wrap(e.binary())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := watch.Release(); err != nil {
			t.Error(err)
		}
	})
	command := exec.Command(script, arguments...)
	command.Env = append(append(os.Environ(), "KUBECONFIG="+e.kubeconfig()), environment...)
	separate(command)
	session, err := gexec.Start(command, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	o := &operator{t: t, session: session}
	t.Cleanup(o.stop)
	return o
}

// scope returns the arguments of the operator.
func (e *example) scope() []string {
	if e.wide {
		return append([]string{"--all-namespaces"}, e.flags...)
	}
	return append([]string{"-n", e.namespace}, e.flags...)
}

// output returns the output of the operator so far.
func (o *operator) output() string { return string(o.session.Err.Contents()) }

// says waits until the output contains each of the texts.
func (o *operator) says(texts ...string) {
	o.t.Helper()
	for _, text := range texts {
		gomega.NewWithT(o.t).Eventually(o.output).Should(gomega.ContainSubstring(text))
	}
}

// saidTimes returns the number of lines that contain all of the texts.
func (o *operator) saidTimes(texts ...string) int {
	count := 0
line:
	for line := range strings.Lines(o.output()) {
		for _, text := range texts {
			if !strings.Contains(line, text) {
				continue line
			}
		}
		count++
	}
	return count
}

// stop interrupts the operator as Kubernetes does, and expects a graceful exit of the operator
// and all processes that it has started.
func (o *operator) stop() {
	o.t.Helper()
	if o.stopped {
		return
	}
	o.stopped = true
	group := o.session.Command.Process.Pid
	defer func() {
		if o.t.Failed() {
			o.t.Logf("The operator said:\n%s", o.output())
		}
		if alive(group) {
			kill(group)
		}
	}()
	g := gomega.NewWithT(o.t)
	o.session.Terminate()
	g.Eventually(o.session).Should(gexec.Exit(0))
	g.Expect(alive(group)).To(gomega.BeFalse(), "a process of the operator is left")
}

// kill ends the operator as the system does when it is out of memory.
func (o *operator) kill() {
	o.t.Helper()
	o.stopped = true
	gomega.NewWithT(o.t).Eventually(o.session.Kill()).Should(gexec.Exit())
}
