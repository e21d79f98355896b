package deployment

import (
	"fmt"
	"slices"
)

// Components are the names of what can be added to an operator, in their order.
var Components = []string{"metrics", "webhook", "network-policy", "prometheus", "certmanager"}

// neededBy are the components that others need.
var neededBy = map[string][]string{"prometheus": {"metrics"}, "certmanager": {"webhook"}}

// purpose says what a component is for, and what it needs.
func (d *Deployment) purpose(component string) string {
	return map[string]string{
		"metrics": "Metrics for Prometheus over HTTPS, for authorized readers only.",
		"webhook": "Admission handlers and conversions: a service through which the API servers call the operator, and\n" +
			"the permissions for that.",
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
		return []addition{
			{"env", "{name: WEBHOOK_SERVICE, value: $(POD_NAMESPACE)/" + w.Service + "}", "The service; a certificate that the replicas share can be in a Secret of the same name."},
			{"env", fmt.Sprintf(`{name: WEBHOOK_ADDRESS, value: ":%d"}`, w.Port), "The service leads to the same port."},
			{field: "ports", value: fmt.Sprintf("{name: webhook, containerPort: %d}", w.Port)},
			{"lifecycle", "{preStop: {sleep: {seconds: 3}}}", "Until all nodes have noticed that a pod stops, they still send requests to it."},
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
			added := Addition{Value: a.value, Why: a.why}
			if d.IsChart && component != "" {
				added.Begin = "\n            {{- if " + conditionOf(component) + " }}"
				added.End = "\n            {{- end }}"
			}
			found = append(found, added)
		}
	}
	return found
}

// available returns the components that the program can have.
func (d *Deployment) available() []string {
	if d.isCalled() {
		return Components
	}
	return slices.DeleteFunc(slices.Clone(Components), func(name string) bool { return name == "webhook" || name == "certmanager" })
}
