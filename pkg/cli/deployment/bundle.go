package deployment

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/kopf-go/kopf/internal/manifests"
	"github.com/kopf-go/kopf/pkg/rbac"
	"github.com/kopf-go/kopf/pkg/webhook"
	"github.com/kopf-go/kopf/pkg/webhook/configurations"
)

// minKubernetes is the oldest supported version of Kubernetes.
const minKubernetes = "1.34.0"

// lifecycleCertificates is the folder to which the Operator Lifecycle Manager mounts the certificate of webhooks.
const lifecycleCertificates = "/tmp/k8s-webhook-server/serving-certs"

// outsideOfBundles says what to do with components that cannot be a part of a bundle.
var outsideOfBundles = map[string]string{
	"network-policy": "apply the policy yourself",
	"certmanager":    "the Operator Lifecycle Manager makes the certificate",
}

// WriteBundle writes a bundle for the Operator Lifecycle Manager to a folder. What people read about the operator is taken
// from the file about.yaml in that folder; if there is none, it is written, too. The samples are examples of the owned
// resources.
func (d *Deployment) WriteBundle(dir string, samples []*unstructured.Unstructured) error {
	a, isNew, err := d.readAbout(dir)
	if err != nil {
		return err
	}
	bundle, err := d.bundle(a, samples)
	if err != nil {
		return err
	}
	if isNew {
		starter, err := d.fromTemplate(aboutFile, "about.yaml")
		if err != nil {
			return err
		}
		bundle = append(bundle, starter)
	}
	return write(dir, bundle)
}

// bundle returns the files of the bundle.
func (d *Deployment) bundle(a about, samples []*unstructured.Unstructured) ([]part, error) {
	if err := d.checkBundle(); err != nil {
		return nil, err
	}
	version, err := d.csv(a, samples)
	if err != nil {
		return nil, err
	}
	all := []part{{"manifests/" + d.Name + ".clusterserviceversion.yaml", version}}
	definitions, err := bundledDefinitions(d.Definitions)
	if err != nil {
		return nil, err
	}
	all = append(all, definitions...)
	further, err := d.bundledParts()
	if err != nil {
		return nil, err
	}
	for _, one := range further {
		objects, err := documentsOf(one.text)
		if err != nil {
			return nil, err
		}
		for _, text := range objects {
			object, err := manifests.Objects([]byte(text))
			if err != nil {
				return nil, err
			}
			// The namespace is that of the installation.
			text = strings.Replace(text, "  namespace: "+d.Namespace+"\n", "", 1)
			all = append(all, part{"manifests/" + object[0].GetName() + "_" + strings.ToLower(object[0].GetKind()) + ".yaml", text})
		}
	}
	return append(all, d.bundleAnnotations(a)...), nil
}

// checkBundle returns what keeps the deployment from being a bundle.
func (d *Deployment) checkBundle() error {
	for _, component := range d.Components {
		if instead, ok := outsideOfBundles[component]; ok {
			return fmt.Errorf("the component %s cannot be a part of a bundle: leave it out; %s", component, instead)
		}
	}
	if d.isCalled() && d.program.Settings.Admission.Managed != "" {
		return errors.New("the Operator Lifecycle Manager writes the webhook configurations, and so does the program: " +
			"leave Settings.Admission.Managed empty if the variable WEBHOOK_MANAGED is false")
	}
	if d.Namespaced && len(d.program.Conversions) > 0 {
		return errors.New("the Operator Lifecycle Manager does not let an operator of one namespace convert objects: leave out --namespaced")
	}
	return d.checkOneNamespace("a bundle")
}

// bundledParts are the manifests of a bundle besides the ClusterServiceVersion and the definitions.
func (d *Deployment) bundledParts() ([]part, error) {
	var all []part
	if !d.Namespaced {
		users, err := d.userParts()
		if err != nil {
			return nil, err
		}
		all = append(all, users...)
	}
	manager, err := d.managerParts()
	if err != nil {
		return nil, err
	}
	all = append(all, manager[1:]...) // without the deployment
	if d.Has("metrics") {
		metrics, err := d.componentParts("metrics")
		if err != nil {
			return nil, err
		}
		all = append(all, slices.DeleteFunc(metrics, func(one part) bool { return path.Base(one.path) == "roles.yaml" })...)
	}
	if d.Has("prometheus") {
		monitoring, err := d.componentParts("prometheus")
		if err != nil {
			return nil, err
		}
		board, err := d.dashboardPart()
		if err != nil {
			return nil, err
		}
		all = append(all, monitoring...)
		all = append(all, board...)
	}
	return all, nil
}

// documentsOf returns the documents of a text, without comments that stand alone.
func documentsOf(text string) ([]string, error) {
	var found []string
	for document := range strings.SplitSeq("\n"+text, "\n---\n") {
		objects, err := manifests.Objects([]byte(document))
		if err != nil {
			return nil, err
		}
		if len(objects) > 0 {
			found = append(found, strings.Trim(document, "\n")+"\n")
		}
	}
	return found, nil
}

// bundledDefinitions are the definitions, each in its own file.
func bundledDefinitions(definitions []manifests.Definition) ([]part, error) {
	var parts []part
	for _, definition := range definitions {
		files, err := definitionParts([]manifests.Definition{definition})
		if err != nil {
			return nil, err
		}
		text := files[0].text
		if alone, err := manifests.Objects([]byte(text)); err != nil || len(alone) != 1 {
			marshaled, err := yaml.Marshal(definition.Object)
			if err != nil {
				return nil, err
			}
			text = string(marshaled)
		}
		parts = append(parts, part{"manifests/" + definition.GetName() + ".crd.yaml", text})
	}
	return parts, nil
}

// bundleAnnotations are the file that says what the bundle is, and the Dockerfile that says the same of its image.
func (d *Deployment) bundleAnnotations(a about) []part {
	labels := [][2]string{
		{"operators.operatorframework.io.bundle.mediatype.v1", "registry+v1"},
		{"operators.operatorframework.io.bundle.manifests.v1", "manifests/"},
		{"operators.operatorframework.io.bundle.metadata.v1", "metadata/"},
		{"operators.operatorframework.io.bundle.package.v1", d.Name},
		{"operators.operatorframework.io.bundle.channels.v1", strings.Join(a.Channels, ",")},
		{"operators.operatorframework.io.bundle.channel.default.v1", cmp.Or(a.DefaultChannel, a.Channels[0])},
	}
	var annotations, image strings.Builder
	annotations.WriteString("annotations:\n")
	image.WriteString("# The image of the bundle: docker build -f bundle.Dockerfile --tag registry.example.com/" + d.Name + "-bundle:v" + d.Version + " .\nFROM scratch\n")
	for _, label := range labels {
		fmt.Fprintf(&annotations, "  %s: %s\n", label[0], label[1])
		fmt.Fprintf(&image, "LABEL %s=%s\n", label[0], label[1])
	}
	image.WriteString("COPY manifests /manifests/\nCOPY metadata /metadata/\n")
	return []part{{"metadata/annotations.yaml", annotations.String()}, {"bundle.Dockerfile", image.String()}}
}

// serviceVersion is what the template of a ClusterServiceVersion needs.
type serviceVersion struct {
	*Deployment

	MinKubernetes string
	Annotations   string
	About         string
	Owned         string
	Cluster       string // the rules in the cluster
	Own           string // those in the namespace of the operator
	Spec          string // of the deployment
	Webhooks      string
	Images        string
}

// csv returns the ClusterServiceVersion.
func (d *Deployment) csv(a about, samples []*unstructured.Unstructured) (string, error) {
	v := serviceVersion{Deployment: d, MinKubernetes: minKubernetes}
	var webhooks []webhookDefinition
	owned, err := d.ownedDefinitions()
	if err != nil {
		return "", err
	}
	annotations, err := d.csvAnnotations(a, owned, samples)
	if err != nil {
		return "", err
	}
	if webhooks, err = d.webhookDefinitions(); err != nil {
		return "", err
	}
	images := append([]image{{Name: d.Name, Image: d.Image}}, a.RelatedImages...)
	for _, section := range []struct {
		text  *string
		value any
	}{
		{&v.Annotations, annotations},
		{&v.About, a.entry},
		{&v.Owned, owned},
		{&v.Webhooks, webhooks},
		{&v.Images, images},
	} {
		text, err := yaml.Marshal(section.value)
		if err != nil {
			return "", err
		}
		*section.text = string(text)
	}
	if len(webhooks) == 0 {
		v.Webhooks = ""
	}
	for _, role := range d.allRoles() {
		for _, rule := range role.Rules {
			if role.Namespace == "" {
				v.Cluster += rule.YAML()
			} else {
				v.Own += rule.YAML()
			}
		}
	}
	deployment, err := d.fromTemplate("", "deployment.yaml")
	if err != nil {
		return "", err
	}
	_, v.Spec, _ = strings.Cut(deployment.text, "\nspec:\n")
	return executed("clusterserviceversion.yaml", v)
}

// allRoles returns the roles of the operator with its components.
func (d *Deployment) allRoles() []rbac.Role {
	all := slices.Concat(d.operatorRoles(d.Namespaced), d.leaseRoles(), d.webhookRoles())
	if d.Has("metrics") {
		all = append(all, d.metricsRoles()...)
	}
	if d.Has("page") {
		all = append(all, d.pageRoles(d.Namespaced)...)
	}
	return all
}

// ownedDefinition describes a version of a custom resource.
type ownedDefinition struct {
	Name        string `json:"name"`
	Version     string `json:"version"`
	Kind        string `json:"kind"`
	DisplayName string `json:"displayName"`
	Description string `json:"description"`
	group       string
}

// ownedDefinitions returns the served versions of the definitions.
func (d *Deployment) ownedDefinitions() ([]ownedDefinition, error) {
	owned := []ownedDefinition{}
	for _, definition := range d.Definitions {
		var typed apiextensionsv1.CustomResourceDefinition
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(definition.Object, &typed); err != nil {
			return nil, fmt.Errorf("%s: %w", definition.Path, err)
		}
		kind := typed.Spec.Names.Kind
		for _, version := range typed.Spec.Versions {
			if !version.Served {
				continue
			}
			one := ownedDefinition{
				Name: typed.Name, Version: version.Name, Kind: kind, DisplayName: kind, group: typed.Spec.Group,
				Description: fmt.Sprintf("The operator %s handles objects of the kind %s.", d.Name, kind),
			}
			if version.Schema != nil && version.Schema.OpenAPIV3Schema != nil {
				one.Description = cmp.Or(version.Schema.OpenAPIV3Schema.Description, one.Description)
			}
			owned = append(owned, one)
		}
	}
	return owned, nil
}

// csvAnnotations returns the annotations of the ClusterServiceVersion, with the samples of owned resources.
func (d *Deployment) csvAnnotations(a about, owned []ownedDefinition, samples []*unstructured.Unstructured) (map[string]string, error) {
	annotations := map[string]string{"capabilities": "Basic Install", "containerImage": d.Image}
	examples := []map[string]any{}
	for _, sample := range samples {
		kind := sample.GroupVersionKind()
		isOwned := func(o ownedDefinition) bool {
			return o.group == kind.Group && o.Version == kind.Version && o.Kind == kind.Kind
		}
		if slices.ContainsFunc(owned, isOwned) {
			examples = append(examples, sample.Object)
		}
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(examples); err != nil {
		return nil, err
	}
	annotations["alm-examples"] = strings.TrimSpace(text.String())
	for name, value := range a.Annotations {
		annotations[name] = value
	}
	return annotations, nil
}

// webhookDefinition says how API servers call the operator.
type webhookDefinition struct {
	GenerateName            string                                       `json:"generateName"`
	Type                    string                                       `json:"type"`
	DeploymentName          string                                       `json:"deploymentName"`
	ContainerPort           int32                                        `json:"containerPort"` // of the service
	TargetPort              intstr.IntOrString                           `json:"targetPort"`
	WebhookPath             string                                       `json:"webhookPath"`
	ConversionCRDs          []string                                     `json:"conversionCRDs,omitempty"`
	Rules                   []admissionregistrationv1.RuleWithOperations `json:"rules,omitempty"`
	ObjectSelector          any                                          `json:"objectSelector,omitempty"`
	FailurePolicy           *admissionregistrationv1.FailurePolicyType   `json:"failurePolicy,omitempty"`
	MatchPolicy             *admissionregistrationv1.MatchPolicyType     `json:"matchPolicy,omitempty"`
	SideEffects             admissionregistrationv1.SideEffectClass      `json:"sideEffects"`
	TimeoutSeconds          *int32                                       `json:"timeoutSeconds,omitempty"`
	AdmissionReviewVersions []string                                     `json:"admissionReviewVersions"`
}

// webhookDefinitions returns the webhooks of the handlers and of the conversions.
func (d *Deployment) webhookDefinitions() ([]webhookDefinition, error) {
	if !d.isCalled() {
		return nil, nil
	}
	var problems []string
	for _, h := range d.program.Handlers.Admission() {
		if _, err := h.Selector.Resolve(d.known.Resources); err != nil || !h.Selector.Specific() {
			problems = append(problems, fmt.Sprintf("%s: %q", h.DeclaredAt, h.Selector))
		}
	}
	if len(problems) > 0 {
		return nil, &UnknownError{problems}
	}
	hooks, failed := webhook.NewHooks(d.program.Handlers, d.known.Resources)
	if len(failed) > 0 {
		return nil, errors.Join(failed...)
	}
	config := admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{}}
	options := configurations.Options{Name: cmp.Or(leaseNameOf(d.program.Settings.Name), d.Name), Timeout: d.program.Settings.Admission.Timeout}
	validating, mutating := configurations.Build(hooks, config, options)
	common := webhookDefinition{DeploymentName: d.Name, ContainerPort: 443, TargetPort: intstr.FromString("webhook"), SideEffects: admissionregistrationv1.SideEffectClassNone}
	var all []webhookDefinition
	add := func(kind string, webhooks []admissionregistrationv1.ValidatingWebhook) {
		for _, w := range webhooks {
			one := common
			one.GenerateName = w.Name
			one.Type = kind
			one.WebhookPath = *w.ClientConfig.Service.Path
			one.Rules = w.Rules
			if w.ObjectSelector != nil {
				one.ObjectSelector = w.ObjectSelector
			}
			one.FailurePolicy = w.FailurePolicy
			one.MatchPolicy = w.MatchPolicy
			one.SideEffects = *w.SideEffects
			one.TimeoutSeconds = w.TimeoutSeconds
			one.AdmissionReviewVersions = w.AdmissionReviewVersions
			all = append(all, one)
		}
	}
	add("ValidatingAdmissionWebhook", validating)
	add("MutatingAdmissionWebhook", mutating)
	for _, definition := range d.convertedDefinitions() {
		one := common
		one.GenerateName = definition
		one.Type = "ConversionWebhook"
		one.WebhookPath = *configurations.NewConversion(definition, config).Webhook.ClientConfig.Service.Path
		one.ConversionCRDs = []string{definition}
		one.AdmissionReviewVersions = []string{"v1"}
		all = append(all, one)
	}
	for _, one := range all {
		if faults := validation.IsValidLabelValue(one.GenerateName); len(faults) > 0 {
			return nil, fmt.Errorf("the Operator Lifecycle Manager cannot use the name %q of a webhook: %s: shorten the id of the handler, or the name of the operator", one.GenerateName, faults[0])
		}
	}
	return all, nil
}

// convertedDefinitions returns the names of the definitions whose objects the operator converts.
func (d *Deployment) convertedDefinitions() []string {
	var names []string
	for _, c := range d.program.Conversions {
		found, err := c.Selector.Resolve(d.known.Resources)
		if err != nil {
			continue // said as a problem of the roles
		}
		for _, r := range found {
			if name := r.GVR().GroupResource().String(); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}
