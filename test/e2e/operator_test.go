package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	"github.com/kopf-go/kopf/hack/envtest/guard"
)

// operator is an example that runs.
type operator struct {
	t       *testing.T
	session *gexec.Session
	stopped bool
}

// start runs the example for its namespace, with additional variables of the
// environment. It is stopped with the test, if not before.
func (e *example) start(t *testing.T, environment ...string) *operator {
	t.Helper()
	return e.startWith(t, nil, environment...)
}

// startWith is start with more arguments.
func (e *example) startWith(t *testing.T, arguments []string, environment ...string) *operator {
	t.Helper()
	watch, err := guard.New() // or the operator would outlive a test that is killed
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
	command := exec.Command(script, append([]string{"-n", e.namespace}, arguments...)...)
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

// output is everything that the operator has said until now.
func (o *operator) output() string { return string(o.session.Err.Contents()) }

// says waits until each of the texts is in the output.
func (o *operator) says(texts ...string) {
	o.t.Helper()
	for _, text := range texts {
		gomega.NewWithT(o.t).Eventually(o.output).Should(gomega.ContainSubstring(text))
	}
}

// saidTimes is how many lines have all the texts.
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

// stop interrupts the operator as Kubernetes does, and expects an orderly end,
// of it and of all processes that it may have started.
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
