package deployment

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/template"

	"github.com/kopf-go/kopf/internal/manifests"
	"github.com/kopf-go/kopf/pkg/rbac"
	"github.com/kopf-go/kopf/pkg/settings"
)

//go:embed templates
var files embed.FS

// dashboard is the file with the dashboard for Grafana.
const dashboard = "dashboard.json"

// part is a file with manifests. In the text of all manifests, it is a document.
type part struct {
	path string // in a kustomization
	text string
}

// fromTemplate returns a part that is a template.
func (d *Deployment) fromTemplate(path, name string) (part, error) {
	text, err := executed(name, d)
	return part{path, text}, err
}

// executed returns the text that a template makes of a value.
func executed(name string, value any) (string, error) {
	// Alerts and conditions of Kubernetes use the usual delimiters themselves.
	parsed, err := template.New(name).Delims("<<", ">>").Funcs(template.FuncMap{"indent": indent}).ParseFS(files, "templates/"+name)
	if err != nil {
		return "", err
	}
	var text bytes.Buffer
	err = parsed.Execute(&text, value)
	return text.String(), err
}

// indent returns a text with spaces before each line, and without a line break at the end.
func indent(spaces int, text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line != "\n" {
			b.WriteString(strings.Repeat(" ", spaces))
		}
		b.WriteString(line)
	}
	return strings.TrimRight(b.String(), "\n")
}

// roles returns a part with roles and their bindings to the account of the operator, if there are any. The comment says
// what they are for.
func (d *Deployment) roles(path, name, comment string, roles []rbac.Role) []part {
	if len(roles) == 0 {
		return nil
	}
	account := rbac.Account{Namespace: d.Namespace, Name: d.Name}
	return []part{{path, commented(comment) + rbac.YAML(name, roles, account)}}
}

// commented returns the lines of a text as comments.
func commented(text string) string { return "# " + strings.ReplaceAll(text, "\n", "\n# ") + "\n" }

// operatorRoles returns the roles of the operator, for the cluster or for a namespace.
func (d *Deployment) operatorRoles(namespaced bool) []rbac.Role {
	roles, _ := rbac.Derive(d.scoped(namespaced))
	return roles
}

// scoped returns the input for the core of the operator, for the cluster or for a namespace.
func (d *Deployment) scoped(namespaced bool) rbac.Input {
	in := d.core()
	if namespaced {
		in.Settings.Scope.Namespaces = []string{d.Namespace}
	}
	return in
}

// leaseRoles returns the roles for the leases of the replicas.
func (d *Deployment) leaseRoles() []rbac.Role {
	return d.added(func(in *rbac.Input) { in.Settings.Replicas = d.program.Settings.Replicas })
}

// metricsRoles returns the roles for asking who may read the metrics.
func (d *Deployment) metricsRoles() []rbac.Role {
	return d.added(func(in *rbac.Input) { in.Settings.Metrics = settings.Metrics{Address: ":", Secure: true} })
}

// pageRoles returns the roles for asking who may look at the page, and for what only the page reads in the cluster or in a
// namespace.
func (d *Deployment) pageRoles(namespaced bool) []rbac.Role {
	in := d.scoped(namespaced)
	in.Settings.Replicas = d.program.Settings.Replicas // whose leases it shows
	return addedTo(in, func(in *rbac.Input) { in.Settings.Page = settings.Page{Address: ":"} })
}

// webhookRoles returns the roles for telling the API servers about the handlers, and for a shared certificate.
func (d *Deployment) webhookRoles() []rbac.Role {
	return d.added(func(in *rbac.Input) {
		in.Handlers = d.program.Handlers
		in.Conversions = d.program.Conversions
		in.Settings.Admission = d.program.Settings.Admission
	})
}

// The comments of the roles.
const (
	operatorComment = "The permissions that the operator and its handlers need, and no others. They are derived from the\n" +
		"handlers: make them again after a change."
	namespaceComment = "The permissions of the operator in its namespace. Resources that are installed later are noticed\nwithin a minute."
	electionComment  = "With this role, the replicas elect their leader, in the namespace where they run."
	shardsComment    = "With this role, the replicas agree on who handles which shard, in the namespace where they run."
	guardComment     = "With this role, the operator authenticates and authorizes readers of the metrics."
	pageComment      = "With this role, the operator authenticates and authorizes people who look at the page, and reads what the\npage shows."
	webhookComment   = "These roles are for the webhook configurations, which tell the API servers about the handlers, and for\n" +
		"the certificate that the replicas share."
	usersComment = "Roles for people who work with the objects. Bind them to users or groups, in a namespace or in\n" +
		"the cluster. To add them to the roles admin, edit, and view of Kubernetes, label them\n" +
		"rbac.authorization.k8s.io/aggregate-to-admin: \"true\", and so on."
)

// accountParts are the service account and the role for leases.
func (d *Deployment) accountParts() ([]part, error) {
	account, err := d.fromTemplate("rbac/base/service_account.yaml", "service_account.yaml")
	name, comment := "leader-election", electionComment
	if d.Shards > 0 {
		name, comment = "shards", shardsComment
	}
	file := "rbac/base/" + strings.ReplaceAll(name, "-", "_") + ".yaml"
	return append([]part{account}, d.roles(file, d.Name+"-"+name, comment, d.leaseRoles())...), err
}

// operatorParts are the roles of the operator, in one file.
func (d *Deployment) operatorParts(namespaced bool) []part {
	path, comment := "rbac/cluster/role.yaml", operatorComment
	if namespaced {
		path, comment = "rbac/namespaced/role.yaml", namespaceComment
	}
	return d.roles(path, d.Name, comment, d.operatorRoles(namespaced))
}

// managerParts are the deployment and its disruption budget, which a single replica does not have: it would
// keep nodes from being drained.
func (d *Deployment) managerParts() ([]part, error) {
	deployment, err := d.fromTemplate("manager/deployment.yaml", "deployment.yaml")
	if err != nil || d.Replicas == 1 {
		return []part{deployment}, err
	}
	budget, err := d.fromTemplate("manager/disruption_budget.yaml", "disruption_budget.yaml")
	return []part{deployment, budget}, err
}

// componentParts are the manifests of a component.
func (d *Deployment) componentParts(component string) ([]part, error) {
	var parts []part
	var names [][2]string // files and templates
	switch component {
	case "metrics":
		parts = d.roles("metrics/roles.yaml", d.Name+"-metrics-guard", guardComment, d.metricsRoles())
		names = [][2]string{{"reader.yaml", "metrics_reader.yaml"}, {"service.yaml", "metrics_service.yaml"}}
	case "page":
		parts = d.pageParts(d.Namespaced)
		names = [][2]string{{"reader.yaml", "page_reader.yaml"}, {"service.yaml", "page_service.yaml"}}
	case "webhook":
		parts = d.roles("webhook/roles.yaml", d.Name+"-webhook", webhookComment, d.webhookRoles())
		names = [][2]string{{"service.yaml", "webhook_service.yaml"}}
	case "network-policy":
		names = [][2]string{{"policy.yaml", "network_policy.yaml"}}
	case "prometheus":
		names = [][2]string{{"monitor.yaml", "monitor.yaml"}, {"rules.yaml", "rules.yaml"}}
	case "certmanager":
		names = [][2]string{{"certificate.yaml", "certificate.yaml"}}
	}
	for _, name := range names {
		one, err := d.fromTemplate(component+"/"+name[0], name[1])
		if err != nil {
			return nil, err
		}
		parts = append(parts, one)
	}
	return parts, nil
}

// pageParts are the roles of the page, in one file.
func (d *Deployment) pageParts(namespaced bool) []part {
	return d.roles("page/roles.yaml", d.Name+"-page", pageComment, d.pageRoles(namespaced))
}

// userParts are the roles for people, if there are resources of the operator.
func (d *Deployment) userParts() ([]part, error) {
	if len(d.Owned()) == 0 {
		return nil, nil
	}
	roles, err := d.fromTemplate("rbac/users/roles.yaml", "user_roles.yaml")
	return []part{roles}, err
}

// Text returns the manifests of the selected components, for kubectl apply.
func (d *Deployment) Text() (string, error) {
	var all []part
	var failed error
	add := func(parts []part, err error) {
		all = append(all, parts...)
		if failed == nil {
			failed = err
		}
	}
	if !d.Namespaced {
		namespace, err := d.fromTemplate("", "namespace.yaml")
		add([]part{namespace}, err)
		add(definitionParts(d.Definitions))
	}
	add(d.accountParts())
	add(d.operatorParts(d.Namespaced), nil)
	if !d.Namespaced {
		users, err := d.userParts()
		for i := range users {
			users[i].text = commented(usersComment) + "#\n" + users[i].text
		}
		add(users, err)
	}
	add(d.managerParts())
	for _, component := range Components {
		if !d.Has(component) {
			continue
		}
		add(d.componentParts(component))
		if component == "prometheus" {
			add(d.dashboardPart())
		}
	}
	if failed != nil {
		return "", failed
	}
	var b strings.Builder
	b.WriteString(d.head())
	for _, one := range all {
		b.WriteString("---\n" + one.text)
	}
	return b.String(), nil
}

// head says what the manifests are, and what is not known about them.
func (d *Deployment) head() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# This deploys the operator %s. The command manifests of its program has made it.\n", d.Name)
	for _, problem := range d.Problems() {
		text, code, _ := strings.Cut(problem.Error(), "\n")
		b.WriteString("#\n" + rbac.Comment("Not derived: "+text))
		for line := range strings.Lines(code) { // not wrapped, to be copied
			b.WriteString("#     " + strings.TrimSuffix(line, "\n") + "\n")
		}
	}
	return b.String()
}

// dashboardPart is the ConfigMap with the dashboard. In a kustomization, a generator makes it of the file.
func (d *Deployment) dashboardPart() ([]part, error) {
	content, err := files.ReadFile("templates/" + dashboard)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s-dashboard\n  namespace: %s\n  labels:\n"+
		"    # The sidecar of Grafana looks for it.\n    grafana_dashboard: \"1\"\ndata:\n  kopf-operators.json: |\n", d.Name, d.Namespace)
	for line := range strings.Lines(string(content)) {
		b.WriteString("    " + line)
	}
	return []part{{text: b.String()}}, nil
}

// definitionParts are the files with definitions, as they are.
func definitionParts(definitions []manifests.Definition) ([]part, error) {
	var parts []part
	for _, path := range slices.Sorted(slices.Values(manifests.Files(definitions))) {
		text, err := os.ReadFile(path) //nolint:gosec // named by the developer
		if err != nil {
			return nil, err
		}
		parts = append(parts, part{path, strings.TrimPrefix(strings.TrimRight(string(text), "\n")+"\n", "---\n")})
	}
	return parts, nil
}
