package deployment

import (
	"fmt"
	"path"
	"strings"

	"github.com/kopf-go/kopf/pkg/rbac"
)

// WriteChart writes a chart for Helm to a folder. Its values are the image, the number of replicas, the resources, the
// scope, and the components. The namespace is that of the release; the names are those of the operator.
func (d *Deployment) WriteChart(dir string) error {
	chart, err := d.chart()
	if err != nil {
		return err
	}
	return write(dir, chart)
}

// conditionOf returns the condition of Helm under which a component is there.
func conditionOf(component string) string {
	if component == "namespaced" {
		return ".Values.namespaced"
	}
	return ".Values." + valueOf(component) + ".enabled"
}

// valueOf returns the name of a component among the values.
func valueOf(component string) string {
	if component == "network-policy" {
		return "networkPolicy"
	}
	return component
}

// chart returns the files of the chart.
func (d *Deployment) chart() ([]part, error) {
	if err := d.checkNamespaces(); err != nil {
		return nil, err
	}
	all := []part{{"Chart.yaml", d.chartFile()}, {"values.yaml", d.values()}, {"templates/checks.yaml", d.checks()}}
	definitions, err := definitionParts(d.Definitions)
	if err != nil {
		return nil, err
	}
	for _, one := range definitions {
		all = append(all, part{"crds/" + path.Base(one.path), one.text})
	}
	templates, err := d.chartTemplates()
	if err != nil {
		return nil, err
	}
	for _, each := range templates {
		for _, one := range each.parts {
			all = append(all, part{path.Join("templates", each.folder, path.Base(one.path)), d.inRelease(each.text(one.text))})
		}
	}
	return all, nil
}

// chartTemplates are files of a chart that are there under a condition, or always.
type chartTemplates struct {
	folder, condition string
	parts             []part
	isTemplate        bool // for Helm; other texts are escaped
}

// text returns the text of a file.
func (t chartTemplates) text(of string) string {
	if !t.isTemplate {
		of = escaped(of)
	}
	if t.condition != "" {
		of = "{{- if " + t.condition + " }}\n" + of + "{{- end }}\n"
	}
	return of
}

// chartTemplates returns all templates of the chart.
func (d *Deployment) chartTemplates() ([]chartTemplates, error) {
	account, err := d.accountParts()
	if err != nil {
		return nil, err
	}
	users, err := d.userParts()
	if err != nil {
		return nil, err
	}
	manager, err := d.chartDeployment()
	if err != nil {
		return nil, err
	}
	all := []chartTemplates{
		{folder: "rbac", parts: account},
		{folder: "rbac/cluster", condition: "not .Values.namespaced", parts: d.operatorParts(false)},
		{folder: "rbac/namespaced", condition: ".Values.namespaced", parts: d.operatorParts(true)},
		{folder: "rbac/users", condition: "not .Values.namespaced", parts: users},
		{parts: manager, isTemplate: true},
	}
	for _, component := range d.available() {
		more, err := d.chartComponent(component)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

// chartComponent returns the templates of a component.
func (d *Deployment) chartComponent(component string) ([]chartTemplates, error) {
	parts, err := d.complete().componentParts(component)
	if err != nil {
		return nil, err
	}
	enabled := conditionOf(component)
	of := func(condition string, parts []part) chartTemplates {
		return chartTemplates{folder: component, condition: condition, parts: parts}
	}
	switch component {
	case "page": // with its roles first, which depend on the scope
		namespaced := d.pageParts(true)
		namespaced[0].path = "namespaced_roles.yaml"
		return []chartTemplates{
			of("and "+enabled+" (not .Values.namespaced)", parts[:1]),
			of("and "+enabled+" .Values.namespaced", namespaced),
			of(enabled, parts[1:]),
		}, nil
	case "network-policy": // which opens the ports of other components
		policy, err := d.inChart().componentParts(component)
		return []chartTemplates{{folder: component, condition: enabled, parts: policy, isTemplate: true}}, err
	case "webhook":
		if len(parts) == 1 { // there are no roles
			break
		}
		var own, shared []rbac.Role // those for a Secret are not needed with cert-manager
		for _, role := range d.webhookRoles() {
			if role.Namespace == "" {
				shared = append(shared, role)
			} else {
				own = append(own, role)
			}
		}
		return []chartTemplates{
			of("and "+enabled+" (not "+conditionOf("certmanager")+")", d.roles("certificate_role.yaml", d.Name+"-webhook", certificateComment, own)),
			of(enabled, append(d.roles("roles.yaml", d.Name+"-webhook", webhookComment, shared), parts[1:]...)),
		}, nil
	case "prometheus":
		board, err := d.dashboardPart()
		if err != nil {
			return nil, err
		}
		parts = append(parts, part{"dashboard.yaml", board[0].text})
	}
	return []chartTemplates{of(enabled, parts)}, nil
}

const certificateComment = "This role is for the certificate that the replicas share."

// escaped returns a text that Helm leaves as it is: alerts and dashboards have templates of their own.
func escaped(text string) string {
	return strings.NewReplacer("{{", "{{ `{{` }}", "}}", "{{ `}}` }}").Replace(text)
}

// inRelease puts the namespace of the release in place of the given one.
func (d *Deployment) inRelease(text string) string {
	const release = "{{ .Release.Namespace }}"
	return strings.NewReplacer("namespace: "+d.Namespace+"\n", "namespace: "+release+"\n", "."+d.Namespace+".svc", "."+release+".svc").Replace(text)
}

// inChart returns the deployment with all components, each under its condition.
func (d *Deployment) inChart() *Deployment {
	chart := d.complete()
	chart.IsChart = true
	chart.Image = "{{ .Values.image }}"
	return chart
}

// chartDeployment returns the deployment with all components, each under its condition, and the disruption budget.
func (d *Deployment) chartDeployment() ([]part, error) {
	chart := d.inChart()
	deployment, err := chart.fromTemplate("templates/deployment.yaml", "deployment.yaml")
	if err != nil {
		return nil, err
	}
	budget, err := d.fromTemplate("templates/disruption_budget.yaml", "disruption_budget.yaml")
	budget.text = "{{- if gt (int .Values.replicas) 1 }}\n" + budget.text + "{{- end }}\n"
	return []part{deployment, budget}, err
}

// chartFile returns what the chart says about itself.
func (d *Deployment) chartFile() string {
	version := "latest"
	if at := strings.LastIndex(d.Image, ":"); at > strings.LastIndex(d.Image, "/") {
		version = d.Image[at+1:]
	}
	return fmt.Sprintf("# The chart of the operator, made by the command manifests. Increase the version with every change.\n"+
		"apiVersion: v2\nname: %s\ndescription: The operator %s\ntype: application\nversion: %s\nappVersion: %q\n", d.Name, d.Name, d.Version, version)
}

// values returns the values of the chart.
func (d *Deployment) values() string {
	var b strings.Builder
	fmt.Fprintf(&b, "image: %s\n", d.Image)
	fmt.Fprintf(&b, "# Without shards, the leader handles the objects, and the others take over at once.\nreplicas: %d\n", d.Replicas)
	b.WriteString("# Handle only the namespace of the release. The definitions must be installed: helm install --skip-crds.\nnamespaced: false\n")
	b.WriteString("# A few kilobytes for each object, and some for each daemon. Measure your operator.\n" +
		"resources:\n  requests:\n    cpu: 20m\n    memory: 64Mi\n  limits:\n    cpu: 500m\n    memory: 256Mi\n")
	for _, component := range d.available() {
		b.WriteString(commented(d.purpose(component)))
		fmt.Fprintf(&b, "%s:\n  enabled: %t\n", valueOf(component), d.Has(component))
	}
	return b.String()
}

// checks returns a template without objects, which fails if a component lacks another one.
func (d *Deployment) checks() string {
	var b strings.Builder
	for _, component := range d.available() {
		for _, needed := range neededBy[component] {
			fmt.Fprintf(&b, "{{- if and %s (not %s) }}{{ fail \"%s needs %s\" }}{{ end }}\n", conditionOf(component), conditionOf(needed), valueOf(component), valueOf(needed))
		}
	}
	return b.String()
}
