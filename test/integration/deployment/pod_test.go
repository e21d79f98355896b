package deployment

import (
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kopf-go/kopf/internal/guard"
	"github.com/kopf-go/kopf/test/testenv"
)

// pod is a process that represents a pod of the deployment.
type pod struct {
	t         *testing.T
	name      string
	container corev1.Container
	patience  time.Duration  // the termination grace period
	ports     map[string]int // on the loopback interface, by name
	session   *gexec.Session
}

// start runs the program as the container of a pod of the deployment. It gets a kubeconfig,
// because there is no mounted token.
func start(t *testing.T, name, program, kubeconfig string, from *appsv1.Deployment) *pod {
	t.Helper()
	spec := from.Spec.Template.Spec
	p := &pod{
		t: t, name: name, container: spec.Containers[0], ports: map[string]int{},
		patience: time.Duration(*spec.TerminationGracePeriodSeconds) * time.Second,
	}
	environment := p.environment(from.Namespace)
	arguments := p.arguments(environment)
	p.listens(arguments, environment)
	watch, err := guard.New()
	if err != nil {
		t.Fatal(err)
	}
	script, err := watch.Wrap(program)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(script, arguments...)
	// Nothing else: neither a home directory nor a directory for temporary files.
	command.Env, command.Dir = append(flatten(environment), "KUBECONFIG="+kubeconfig, "TMPDIR=/nonexistent"), filepath.Dir(program)
	if p.session, err = gexec.Start(command, nil, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.session.Kill()
		<-p.session.Exited
		if t.Failed() {
			t.Logf("%s %q said:\n%s", name, arguments, p.output())
		}
		if err := watch.Release(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func (p *pod) output() string { return string(p.session.Err.Contents()) }

// environment returns the environment of the container, including the downward API. Variables
// can refer to earlier ones.
func (p *pod) environment(namespace string) map[string]string {
	p.t.Helper()
	fields := map[string]string{"metadata.name": p.name, "metadata.namespace": namespace}
	limits := map[string]string{"limits.memory": fmt.Sprint(p.container.Resources.Limits.Memory().Value())} // in bytes
	all := map[string]string{}
	for _, variable := range p.container.Env {
		value, known := p.expanded(variable.Value, all), true
		switch from := variable.ValueFrom; {
		case from == nil:
		case from.FieldRef != nil:
			value, known = fields[from.FieldRef.FieldPath]
		case from.ResourceFieldRef != nil:
			value, known = limits[from.ResourceFieldRef.Resource]
		default:
			known = false
		}
		if !known {
			p.t.Fatalf("the value of the variable %s is unknown: %v", variable.Name, variable.ValueFrom)
		}
		all[variable.Name] = value
	}
	return all
}

func flatten(environment map[string]string) (all []string) {
	for name, value := range environment {
		all = append(all, name+"="+value)
	}
	return all
}

var reference = regexp.MustCompile(`\$\((\w+)\)`)

// expanded replaces the variables in a text of the manifest.
func (p *pod) expanded(text string, environment map[string]string) string {
	p.t.Helper()
	return reference.ReplaceAllStringFunc(text, func(found string) string {
		value, known := environment[reference.FindStringSubmatch(found)[1]]
		if !known {
			p.t.Fatalf("%s has no value", found)
		}
		return value
	})
}

// arguments returns the arguments of the container.
func (p *pod) arguments(environment map[string]string) (all []string) {
	p.t.Helper()
	for _, argument := range p.container.Args {
		all = append(all, p.expanded(argument, environment))
	}
	return all
}

// listens replaces the addresses of the pod in the arguments and the environment by loopback
// addresses.
func (p *pod) listens(arguments []string, environment map[string]string) {
	p.t.Helper()
	for _, port := range p.container.Ports {
		p.ports[port.Name] = testenv.FreePort(p.t)
		declared, given := fmt.Sprintf(":%d", port.ContainerPort), fmt.Sprintf("127.0.0.1:%d", p.ports[port.Name])
		served := false
		moved := func(text string) string {
			served = served || strings.Contains(text, declared)
			return strings.Replace(text, declared, given, 1)
		}
		for i := range arguments {
			arguments[i] = moved(arguments[i])
		}
		for name := range environment {
			environment[name] = moved(environment[name])
		}
		if !served {
			p.t.Errorf("nothing is served at the port %s", port.Name)
		}
	}
}

// passes returns a function that reports whether the probe succeeds.
func (p *pod) passes(probe *corev1.Probe) func() (bool, error) {
	p.t.Helper()
	address := fmt.Sprintf("http://127.0.0.1:%d%s", p.ports[probe.HTTPGet.Port.StrVal], probe.HTTPGet.Path)
	client := &http.Client{Timeout: time.Duration(max(1, probe.TimeoutSeconds)) * time.Second}
	return func() (bool, error) {
		response, err := client.Get(address)
		if err != nil {
			return false, err
		}
		defer func() { _ = response.Body.Close() }()
		return response.StatusCode == http.StatusOK, nil
	}
}

// ready waits until Kubernetes would consider the pod ready.
func (p *pod) ready() {
	p.t.Helper()
	g := gomega.NewWithT(p.t)
	for _, probe := range []*corev1.Probe{p.container.StartupProbe, p.container.LivenessProbe, p.container.ReadinessProbe} {
		g.Eventually(p.passes(probe)).Should(gomega.BeTrue(), "%s", probe.HTTPGet.Path)
	}
}

// stop ends the pod as Kubernetes does, and fails if it would have to be killed.
func (p *pod) stop() {
	p.t.Helper()
	p.session.Terminate()
	gomega.NewWithT(p.t).Eventually(p.session, p.patience).Should(gexec.Exit(0))
}
