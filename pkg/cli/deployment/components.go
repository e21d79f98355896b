package deployment

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Components are the names of what can be added to an operator, in their order.
var Components = []string{"metrics", "webhook", "page", "network-policy", "prometheus", "certmanager"}

// neededBy are the components that others need.
var neededBy = map[string][]string{"prometheus": {"metrics"}, "certmanager": {"webhook"}}

// purpose says what a component is for, and what it needs.
func (d *Deployment) purpose(component string) string {
	return map[string]string{
		"metrics": "Metrics for Prometheus over HTTPS, for authorized readers only.",
		"webhook": "Admission handlers and conversions: a service through which the API servers call the operator, and\n" +
			"the permissions for that.",
		"page":           "The page of the operator, over HTTPS, for authorized people only: its objects and handlers in a browser.",
		"network-policy": "Only these connections reach the pods of the operator. It needs a network plugin that enforces\npolicies.",
		"prometheus": "Metrics for the Prometheus operator: a ServiceMonitor, alerts, and a dashboard in a ConfigMap, as\n" +
			"the sidecar of Grafana finds it. It needs the component metrics, and the definitions of the\nPrometheus operator.",
		"certmanager": "The certificate of the admission server comes from cert-manager, instead of from the operator\n" +
			"itself. It needs the component webhook, and the definitions of cert-manager.",
	}[component]
}

// addition is what a part adds to the pods.
type addition struct {
	field string // of the container, or volumes
	value string // YAML in one line
	why   string
}

// Addition is an addition for a template. In a chart, Begin and End make it depend on a value.
type Addition struct{ Value, Why, Begin, End string }

// additionsOf returns what a component adds to the pods. The empty component is the operator itself.
func (d *Deployment) additionsOf(component string) []addition {
	argument := func(value string) addition { return addition{field: "args", value: value} }
	switch component {
	case "":
		all := []addition{argument("--leader-elect")}
		if d.Shards > 0 {
			all = []addition{argument(fmt.Sprintf("--shards=%d", d.Shards))}
		}
		all = append(all,
			argument("--lease-name="+d.program.Settings.Replicas.LeaseName),
			argument("--lease-namespace=$(POD_NAMESPACE)"),
			argument(fmt.Sprintf("--liveness=http://:%d%s", d.ProbePort(), d.LivenessPath())),
			argument("--log-format=json"),
		)
		if d.Standalone {
			all = append(all, argument("--standalone"))
		}
		for _, name := range d.filledIn() {
			value := fmt.Sprintf("{name: %q, valueFrom: {secretKeyRef: {name: %s, key: %q, optional: true}}}", name, d.environmentSecret(), name)
			all = append(all, addition{"env", value, "For programs and workers. Without the Secret, it is that of the image, or missing."})
		}
		return all
	case "namespaced":
		return []addition{argument("--namespace=$(POD_NAMESPACE)")}
	case "metrics":
		return []addition{
			argument(fmt.Sprintf("--metrics=:%d", d.MetricsPort())),
			argument("--metrics-secure"),
			{field: "ports", value: fmt.Sprintf("{name: metrics, containerPort: %d}", d.MetricsPort())},
		}
	case "webhook":
		w := d.Webhook()
		service := addition{"env", "{name: WEBHOOK_SERVICE, value: $(POD_NAMESPACE)/" + w.Service + "}", "The service; a certificate that the replicas share can be in a Secret of the same name."}
		address := addition{"env", fmt.Sprintf(`{name: WEBHOOK_ADDRESS, value: ":%d"}`, w.Port), "The service leads to the same port."}
		both := []addition{service, address}
		if d.IsBundle {
			both[0].why = "The Operator Lifecycle Manager makes the service."
			both = append(both,
				addition{"env", "{name: WEBHOOK_CERT_DIR, value: " + lifecycleCertificates + "}", "It mounts the files tls.crt and tls.key."},
				addition{"env", `{name: WEBHOOK_MANAGED, value: "false"}`, "It writes the webhook configurations."},
			)
		}
		return append(both, []addition{
			{field: "ports", value: fmt.Sprintf("{name: webhook, containerPort: %d}", w.Port)},
			{"lifecycle", "{preStop: {sleep: {seconds: 3}}}", "Until all nodes have noticed that a pod stops, they still send requests to it."},
		}...)
	case "page":
		return []addition{
			argument(fmt.Sprintf("--page=:%d", d.PagePort())),
			{field: "ports", value: fmt.Sprintf("{name: page, containerPort: %d}", d.PagePort())},
		}
	case "certmanager":
		return []addition{
			{"env", "{name: WEBHOOK_CERT_DIR, value: " + certificates + "}", "The files tls.crt, tls.key, and ca.crt."},
			{field: "volumeMounts", value: "[{name: certificates, mountPath: " + certificates + ", readOnly: true}]"},
			{field: "volumes", value: "[{name: certificates, secret: {secretName: " + d.Webhook().Service + "-certificate}}]"},
		}
	default:
		return nil
	}
}

// filledIn returns the variables of programs and workers that people fill in: those that pods have anyway, or that cannot
// be in a Secret, are not among them.
func (d *Deployment) filledIn() []string {
	pods := d.Environment(Components...)
	var names []string
	for _, name := range d.Variables {
		_, isSet := pods[name]
		isOfContainer := slices.Contains([]string{"PATH", "HOME", "HOSTNAME", "POD_ID"}, name) || strings.HasPrefix(name, "KUBERNETES_SERVICE_")
		if !isSet && !isOfContainer && len(validation.IsConfigMapKey(name)) == 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// environmentSecret returns the name of the Secret with the variables of programs and workers.
func (d *Deployment) environmentSecret() string { return d.Name + "-environment" }

// Added returns what the operator and its components add to a field of the pods. The deployment of a
// kustomization has no components: they are patches. That of a chart has all of them.
func (d *Deployment) Added(field string) []Addition {
	selected := []string{""}
	if d.Namespaced || d.IsChart {
		selected = append(selected, "namespaced")
	}
	for _, component := range Components {
		if d.Has(component) {
			selected = append(selected, component)
		}
	}
	var found []Addition
	for _, component := range selected {
		for _, a := range d.additionsOf(component) {
			if a.field != field {
				continue
			}
			found = append(found, Addition{Value: a.value, Why: a.why, Begin: d.Begin(component), End: d.End(component)})
		}
	}
	return found
}

// Begin and End are what is around the lines of a component in a chart: its condition. Outside of charts, and around the
// lines of the operator itself, they are empty.
func (d *Deployment) Begin(component string) string {
	if !d.IsChart || component == "" {
		return ""
	}
	return "\n            {{- if " + conditionOf(component) + " }}"
}

// End ends what Begin begins.
func (d *Deployment) End(component string) string {
	if d.Begin(component) == "" {
		return ""
	}
	return "\n            {{- end }}"
}

// available returns the components that the program can have.
func (d *Deployment) available() []string {
	if d.isCalled() {
		return Components
	}
	return slices.DeleteFunc(slices.Clone(Components), func(name string) bool { return name == "webhook" || name == "certmanager" })
}
