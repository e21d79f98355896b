package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/webhook/configurations"
)

type webhooksFile struct {
	selectorsFile
	Vectors []vector[webhooksInput, webhooksExpect] `json:"vectors"`
}

type webhooksInput struct {
	ClientConfig admissionregistrationv1.WebhookClientConfig `json:"clientConfig"`
	Handlers     []struct {
		Args      []string `json:"args"`
		Decorator string   `json:"decorator"`
		Options   struct {
			ID             string            `json:"id"`
			Field          string            `json:"field"`
			Operations     []string          `json:"operations"`
			Subresource    string            `json:"subresource"`
			Labels         map[string]string `json:"labels"`
			Persistent     bool              `json:"persistent"`
			SideEffects    bool              `json:"side_effects"`
			IgnoreFailures bool              `json:"ignore_failures"`
		} `json:"options"`
	} `json:"handlers"`
}

type webhooksExpect struct {
	Validating           json.RawMessage `json:"validating"`
	Mutating             json.RawMessage `json:"mutating"`
	ValidatingPersistent json.RawMessage `json:"validating_persistent"`
	MutatingPersistent   json.RawMessage `json:"mutating_persistent"`
}

func TestWebhookConfigurations(t *testing.T) {
	var file webhooksFile
	loadFile(t, "webhook_configurations", &file)
	resources := file.cluster()
	if len(file.Vectors) == 0 || len(resources) == 0 {
		t.Fatal("there are no vectors of webhook configurations")
	}
	for i, v := range file.Vectors {
		name := fmt.Sprint(i)
		t.Run(name, func(t *testing.T) {
			if excepted(t, "webhook_configurations", name) {
				return
			}
			hooks := v.Input.hooks(resources)
			options := configurations.Options{Name: "auto.kopf.dev"}
			validating, mutating := configurations.Build(hooks, v.Input.ClientConfig, options)
			compareWebhooks(t, "validating", validating, v.Expect.Validating)
			compareWebhooks(t, "mutating", mutating, v.Expect.Mutating)
			validating, mutating = configurations.Build(configurations.Persistent(hooks), v.Input.ClientConfig, options)
			compareWebhooks(t, "validating, persistent", validating, v.Expect.ValidatingPersistent)
			compareWebhooks(t, "mutating, persistent", mutating, v.Expect.MutatingPersistent)
		})
	}
}

// hooks returns the hooks of the vector's declarations in the cluster.
func (i webhooksInput) hooks(resources []selector.Resource) []configurations.Hook {
	var hooks []configurations.Hook
	for _, h := range i.Handlers {
		id := h.Options.ID
		if h.Options.Field != "" {
			id += "/" + h.Options.Field
		}
		selected := selector.New(selectorInput{Args: h.Args}.parts()...)
		for _, resource := range resources {
			if !selected.Match(resource) { // webhooks can be for all matching resources, because they do not watch them
				continue
			}
			hooks = append(hooks, configurations.Hook{
				ID: id, Validating: h.Decorator == "validate", Resource: resource,
				Operations: h.Options.Operations, Subresource: h.Options.Subresource, LabelSelector: labelSelector(h.Options.Labels),
				Persistent: h.Options.Persistent, SideEffects: h.Options.SideEffects, IgnoreFailures: h.Options.IgnoreFailures,
			})
		}
	}
	return hooks
}

func labelSelector(labels map[string]string) *metav1.LabelSelector {
	if len(labels) == 0 {
		return nil
	}
	result := &metav1.LabelSelector{}
	for key, value := range labels {
		requirement := metav1.LabelSelectorRequirement{Key: key}
		switch value {
		case "*PRESENT*":
			requirement.Operator = metav1.LabelSelectorOpExists
		case "*ABSENT*":
			requirement.Operator = metav1.LabelSelectorOpDoesNotExist
		default:
			requirement.Operator, requirement.Values = metav1.LabelSelectorOpIn, []string{value}
		}
		result.MatchExpressions = append(result.MatchExpressions, requirement)
	}
	return result
}

// compareWebhooks compares the webhooks as JSON, except for two things that Kopf writes and
// Kubernetes rejects: capital letters in names, and path segments of services that are not
// lower-case names.
func compareWebhooks(t *testing.T, what string, got []admissionregistrationv1.ValidatingWebhook, expected json.RawMessage) {
	t.Helper()
	var want []map[string]any
	if err := decode(expected, &want); err != nil {
		t.Fatal(err)
	}
	for _, webhook := range want {
		webhook["name"] = strings.ToLower(webhook["name"].(string))
		if webhook["objectSelector"] == nil {
			delete(webhook, "objectSelector") // null means absent
		}
	}
	for i := range got {
		if i < len(want) {
			adoptPath(&got[i], want[i])
		}
	}
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var have []map[string]any
	if err := decode(bytes.ReplaceAll(text, []byte("null"), []byte("[]")), &have); err != nil {
		t.Fatal(err)
	}
	if len(want) == 0 && len(have) == 0 {
		return
	}
	if difference := cmp.Diff(want, have); difference != "" {
		t.Errorf("%s, - what Kopf writes, + what is written here:\n%s", what, difference)
	}
}

// adoptPath copies the path of Kopf if Kubernetes rejects it and our path therefore differs.
func adoptPath(got *admissionregistrationv1.ValidatingWebhook, want map[string]any) {
	config, _ := want["clientConfig"].(map[string]any)
	service, _ := config["service"].(map[string]any)
	path, _ := service["path"].(string)
	if path != "" && (path != strings.ToLower(path) || strings.ContainsAny(path, "%_")) {
		got.ClientConfig.Service.Path = &path
	}
}
