package deployment

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/kopf-go/kopf/internal/builtin"
	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/manifests"
	"github.com/kopf-go/kopf/pkg/inspect"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/rbac"
	"github.com/kopf-go/kopf/pkg/reconcile/discovery"
	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/webhook/servers"
)

// Options say how an operator is deployed.
type Options struct {
	// Name is the name of the operator's objects, and the beginning of the names of others.
	Name      string
	Namespace string
	Image     string
	// Namespaced restricts the operator to the namespace where it runs. The namespace exists, and so do
	// the definitions of its resources.
	Namespaced bool
	Replicas   int
	// Shards replace leader election.
	Shards     int
	Standalone bool
	// Components are what was asked for, by name: see Components.
	Components []string
	// Definitions are those of the operator's resources.
	Definitions []manifests.Definition
	// Variables are the names of variables that the operator passes on to programs and workers.
	Variables []string
	// Version is that of the chart or of the bundle.
	Version string
	// IsBundle is set if the operator is deployed by the Operator Lifecycle Manager, which names the service of
	// the webhooks, makes their certificate, and writes their configurations.
	IsBundle bool
}

// The ports of the pods, unless the program sets others.
const (
	probePort   = 8080
	metricsPort = 8443
	pagePort    = 8444
	webhookPort = servers.DefaultPort
)

// maxName leaves room for the longest end of a name, "-webhook-certificate".
const maxName = 63 - 20

// NameFor returns the name of the objects of an operator. It is that of the settings, or else that of the program.
func NameFor(s settings.Settings, program string) string {
	for _, name := range []string{s.Name, program} {
		name = strings.ReplaceAll(strings.ToLower(name), ".", "-")
		if CheckName(name) == nil {
			return name
		}
	}
	return "operator"
}

// CheckName returns an error if a name cannot be that of a Service with something behind it.
func CheckName(name string) error {
	if faults := validation.IsDNS1035Label(name); len(faults) > 0 {
		return fmt.Errorf("%q cannot be the beginning of the names of services: %s", name, faults[0])
	}
	if len(name) > maxName {
		return fmt.Errorf("%q has more than %d characters, and something is put behind it", name, maxName)
	}
	return nil
}

// Validate returns the first mistake in the options.
func (o Options) Validate() error {
	if err := CheckName(o.Name); err != nil {
		return err
	}
	if faults := validation.IsDNS1123Label(o.Namespace); len(faults) > 0 {
		return fmt.Errorf("%q is not a name of a namespace: %s", o.Namespace, faults[0])
	}
	if o.Image == "" || strings.ContainsAny(o.Image, " \t\n'\"#{}[],&*!|>%`") {
		return fmt.Errorf("%q is not a name of an image", o.Image)
	}
	if o.Replicas < 1 {
		return fmt.Errorf("there are %d replicas: use at least 1", o.Replicas)
	}
	if _, err := version.ParseSemantic(o.Version); err != nil || strings.HasPrefix(o.Version, "v") {
		return fmt.Errorf("%q is not a version: use a form such as 1.2.3", o.Version)
	}
	for _, name := range o.Components {
		if !slices.Contains(Components, name) {
			return fmt.Errorf("there is no component %q: use %s", name, strings.Join(Components, ", "))
		}
		for _, needed := range neededBy[name] {
			if !slices.Contains(o.Components, needed) {
				return fmt.Errorf("the component %s needs %s: add it", name, needed)
			}
		}
	}
	return nil
}

// Environment returns the variables of the pods with these components, from which a program can take its settings.
func (o Options) Environment(components ...string) map[string]string {
	variables := map[string]string{"POD_NAMESPACE": o.Namespace}
	if slices.Contains(components, "webhook") {
		variables["WEBHOOK_SERVICE"] = o.Namespace + "/" + o.webhookService()
		variables["WEBHOOK_ADDRESS"] = fmt.Sprintf(":%d", webhookPort)
		if o.IsBundle {
			variables["WEBHOOK_CERT_DIR"] = lifecycleCertificates
			variables["WEBHOOK_MANAGED"] = "false"
		}
	}
	if slices.Contains(components, "certmanager") {
		variables["WEBHOOK_CERT_DIR"] = certificates
	}
	return variables
}

// certificates is the folder with the files of cert-manager.
const certificates = "/certificates"

func (o Options) webhookService() string {
	if o.IsBundle {
		return o.Name + "-service"
	}
	return o.Name + "-webhook"
}

// VersionOf returns the version in the tag of an image, or an empty text.
func VersionOf(image string) string {
	tag := strings.TrimPrefix(image[strings.LastIndex(image, ":")+1:], "v")
	if _, err := version.ParseSemantic(tag); err != nil {
		return ""
	}
	return tag
}

// Apply changes settings as the flags of the pods do.
func (o Options) Apply(s *settings.Settings) {
	s.Replicas.Shards = o.Shards
	s.Replicas.LeaderElection = o.Shards == 0
	s.Peering.Standalone = o.Standalone
	s.Health.Address = fmt.Sprintf(":%d", probePort)
	if o.Has("metrics") {
		s.Metrics = settings.Metrics{Address: fmt.Sprintf(":%d", metricsPort), Secure: true}
	}
	if o.Has("page") {
		s.Page.Address = fmt.Sprintf(":%d", pagePort)
	}
	if o.Namespaced {
		s.Scope.Namespaces = []string{o.Namespace}
	}
}

// Has reports whether a component is selected.
func (o Options) Has(component string) bool { return slices.Contains(o.Components, component) }

// Deployment is everything that deploys an operator.
type Deployment struct {
	Options

	// IsChart is set while the manifests are templates for Helm.
	IsChart bool

	program inspect.Program
	known   Known
	// problems say what could not be derived.
	problems []error
}

// New returns the deployment of a program, as it is with the Environment and with the settings of Apply.
func New(program inspect.Program, known Known, o Options) (*Deployment, error) {
	d := &Deployment{Options: o, program: program, known: known}
	// The program may set shards itself, or, in a manager, leave the election to that.
	replicas := &d.program.Settings.Replicas
	replicas.Shards = cmp.Or(replicas.Shards, o.Shards)
	replicas.LeaderElection = replicas.Shards == 0
	d.Shards = replicas.Shards
	replicas.LeaseName = cmp.Or(replicas.LeaseName, leaseNameOf(program.Settings.Name), o.Name)
	if !d.isCalled() && (o.Has("webhook") || o.Has("certmanager")) {
		return nil, errors.New("the program declares neither admission handlers nor conversions, which the component webhook is for")
	}
	_, d.problems = rbac.Derive(d.input())
	slices.SortFunc(d.problems, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return d, nil
}

// Problems say what could not be derived, and what was assumed.
func (d *Deployment) Problems() []error {
	problems := slices.Clone(d.problems)
	if d.isCalled() && d.program.Settings.Admission.Server == nil {
		problems = append(problems, errors.New("how the API servers reach the admission handlers or conversions: the program sets no Settings.Admission.Server, unless a startup handler or a manager does"))
	}
	if names := d.filledIn(); len(names) > 0 {
		problems = append(problems, fmt.Errorf("the values of variables that programs and workers get: kubectl create secret generic %s --namespace %s --from-literal=%s=…",
			d.environmentSecret(), d.Namespace, strings.Join(names, "=… --from-literal=")))
	}
	for _, r := range d.known.Assumed {
		problems = append(problems, fmt.Errorf("whether %s is namespaced and has a status subresource, as is assumed here: give its definition by --crds", r))
	}
	return problems
}

// leaseNameOf returns the name of the lease of an operator with a name, or an empty text if it cannot be one.
func leaseNameOf(name string) string {
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return ""
	}
	return name
}

// isCalled reports whether API servers call the operator.
func (d *Deployment) isCalled() bool {
	return len(d.program.Handlers.Admission()) > 0 || len(d.program.Conversions) > 0
}

// input returns what the permissions of the operator are derived from.
func (d *Deployment) input() rbac.Input {
	p := d.program
	return rbac.Input{Handlers: p.Handlers, Needs: p.Needs, Conversions: p.Conversions, Settings: p.Settings, Snapshot: d.known.Snapshot, Namespace: d.Namespace}
}

// core returns the input without what other parts add to it.
func (d *Deployment) core() rbac.Input {
	in := d.input()
	in.Handlers = in.Handlers.Watching()
	in.Conversions = nil
	in.Settings.Admission = settings.Admission{}
	in.Settings.Replicas.LeaderElection = false
	in.Settings.Replicas.Shards = 0
	in.Settings.Metrics = settings.Metrics{}
	in.Settings.Page = settings.Page{}
	return in
}

// added returns the rules that a change of the input adds.
func (d *Deployment) added(change func(in *rbac.Input)) []rbac.Role {
	return addedTo(d.core(), change)
}

// addedTo returns the rules that a change adds to those of an input.
func addedTo(in rbac.Input, change func(in *rbac.Input)) []rbac.Role {
	without, _ := rbac.Derive(in)
	change(&in)
	with, _ := rbac.Derive(in)
	var added []rbac.Role
	for _, role := range with {
		i := slices.IndexFunc(without, func(other rbac.Role) bool { return other.Namespace == role.Namespace })
		rules := role.Rules
		if i >= 0 {
			rules = slices.DeleteFunc(slices.Clone(rules), func(rule rbac.Rule) bool {
				return slices.ContainsFunc(without[i].Rules, rule.Equal)
			})
		}
		if len(rules) > 0 {
			added = append(added, rbac.Role{Namespace: role.Namespace, Rules: rules})
		}
	}
	return added
}

// Owned returns the resources whose objects people work with: custom resources with handlers.
func (d *Deployment) Owned() []selector.Resource {
	var selectors []selector.Selector // without those of children
	for _, h := range d.program.Handlers.Watching() {
		if h.Kind != handler.OnIndex {
			selectors = append(selectors, h.Selector)
		}
	}
	var owned []selector.Resource
	for _, found := range discovery.Resolve(selectors, d.known.Snapshot).Resources {
		isSame := func(other selector.Resource) bool { return other.GVR().GroupResource() == found.GVR().GroupResource() }
		if !isBuiltin(found.Resource) && !slices.ContainsFunc(owned, isSame) {
			owned = append(owned, found.Resource)
		}
	}
	return owned
}

func isBuiltin(r selector.Resource) bool {
	return slices.ContainsFunc(builtin.Resources(), func(b builtin.Resource) bool { return b.Version.Group == r.Group })
}

// The methods below are for the templates.

// GracePeriod returns how many seconds running handlers have.
func (d *Deployment) GracePeriod() int {
	return int(d.program.Settings.WithDefaults().Execution.GracePeriod.Seconds())
}

// TerminationGracePeriod returns how many seconds a pod has to stop.
func (d *Deployment) TerminationGracePeriod() int { return d.GracePeriod() + 20 }

// LivenessPath returns the path of the probe handlers.
func (d *Deployment) LivenessPath() string {
	return d.program.Settings.WithDefaults().Health.LivenessPath
}

// ReadinessPath returns the path of the state of the watches.
func (d *Deployment) ReadinessPath() string {
	return d.program.Settings.WithDefaults().Health.ReadinessPath
}

// ProbePort returns the port of the probes.
func (d *Deployment) ProbePort() int { return portOf(d.program.Settings.Health.Address, probePort) }

// MetricsPort returns the port of the metrics.
func (d *Deployment) MetricsPort() int {
	return portOf(d.program.Settings.Metrics.Address, metricsPort)
}

// PagePort returns the port of the page.
func (d *Deployment) PagePort() int { return portOf(d.program.Settings.Page.Address, pagePort) }

// portOf returns the port of an address to listen at.
func portOf(address string, otherwise int) int {
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		return otherwise
	}
	port, err := strconv.Atoi(text)
	if err != nil || port == 0 {
		return otherwise
	}
	return port
}

// Endpoint is how API servers call the operator.
type Endpoint struct {
	Service     string
	ServicePort int
	Port        int // of the pods
}

// Webhook returns the endpoint in the settings of the program, as far as they have any.
func (d *Deployment) Webhook() Endpoint {
	w := Endpoint{Service: d.webhookService(), ServicePort: webhookPort, Port: webhookPort}
	server, _ := d.program.Settings.Admission.Server.(servers.Server)
	if server.Port != 0 {
		w.Port = server.Port
		w.ServicePort = server.Port
	}
	if s := server.Service; s != nil {
		w.Service = cmp.Or(s.Name, w.Service)
		w.ServicePort = 443 // the default of Kubernetes
		if s.Port != nil {
			w.ServicePort = int(*s.Port)
		}
	}
	return w
}
