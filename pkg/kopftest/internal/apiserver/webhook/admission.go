package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kopf-go/kopf/pkg/kopftest/internal/apiserver/resource"
	"github.com/kopf-go/kopf/pkg/kopftest/internal/apiserver/store"
)

// Review is a request to change an object, before it is accepted.
type Review struct {
	Resource    *resource.Resource
	Operation   admissionv1.Operation
	Key         types.NamespacedName
	Subresource string
	Object, Old *unstructured.Unstructured // nil for deletions, and creations
	DryRun      bool
	Headers     http.Header // receives warnings
}

// Admission calls webhooks. It is safe for concurrent use.
type Admission struct {
	store     *store.Store
	transport http.RoundTripper
	conditions
}

// New returns the admission of an API server. Without a transport, no webhook is reachable.
func New(objects *store.Store, transport http.RoundTripper) *Admission {
	return &Admission{store: objects, transport: transport}
}

// Mutate lets the mutating webhooks change the object, and returns it.
func (a *Admission) Mutate(ctx context.Context, r Review) (*unstructured.Unstructured, error) {
	for _, hook := range a.hooks("mutatingwebhookconfigurations") {
		response, err := a.review(ctx, hook, r)
		if err != nil || response == nil || len(response.Patch) == 0 || r.Object == nil {
			if err != nil {
				return nil, err
			}
			continue
		}
		r.Object, err = patched(r.Object, response.Patch)
		if err != nil {
			return nil, apierrors.NewInternalError(fmt.Errorf("the patch of webhook %q cannot be applied: %w", hook.Name, err))
		}
	}
	return r.Object, nil
}

// Validate asks the validating webhooks whether they accept the change.
func (a *Admission) Validate(ctx context.Context, r Review) error {
	for _, hook := range a.hooks("validatingwebhookconfigurations") {
		if _, err := a.review(ctx, hook, r); err != nil {
			return err
		}
	}
	return nil
}

// hooks returns the webhooks of one kind of configuration. Mutating ones have the same
// fields as validating ones, and more.
func (a *Admission) hooks(plural string) []registrationv1.ValidatingWebhook {
	objects, _, err := a.store.List(schema.GroupResource{Group: registrationv1.GroupName, Resource: plural}, 0)
	if err != nil {
		return nil
	}
	var found []registrationv1.ValidatingWebhook
	for _, object := range objects {
		var configuration registrationv1.ValidatingWebhookConfiguration
		if runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &configuration) == nil {
			found = append(found, configuration.Webhooks...)
		}
	}
	return found
}

// review calls a webhook if it is for the request. It returns nil if not, or if its failure
// is ignored.
func (a *Admission) review(ctx context.Context, hook registrationv1.ValidatingWebhook, r Review) (*admissionv1.AdmissionResponse, error) {
	if !a.matches(hook, r) {
		return nil, nil //nolint:nilnil // documented
	}
	if holds, err := a.match(ctx, hook, r); !holds || err != nil {
		return nil, err
	}
	hasSideEffects := hook.SideEffects == nil ||
		*hook.SideEffects != registrationv1.SideEffectClassNone && *hook.SideEffects != registrationv1.SideEffectClassNoneOnDryRun
	if hasSideEffects && r.DryRun {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("admission webhook %q does not support dry run", hook.Name))
	}
	response, err := a.call(ctx, hook, r.request())
	switch {
	case err != nil && hook.FailurePolicy != nil && *hook.FailurePolicy == registrationv1.Ignore:
		return nil, nil //nolint:nilnil // documented
	case err != nil:
		return nil, apierrors.NewInternalError(fmt.Errorf("failed calling webhook %q: %w", hook.Name, err))
	}
	for _, warning := range response.Warnings {
		r.Headers.Add("Warning", fmt.Sprintf("299 - %q", warning))
	}
	if !response.Allowed {
		return nil, denial(hook.Name, response.Result)
	}
	return response, nil
}

// denial returns the answer to a request that a webhook does not accept.
func denial(name string, result *metav1.Status) error {
	status := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden}
	message := "without explanation"
	if result != nil {
		if result.Code > 0 {
			status.Code = result.Code
			status.Reason = result.Reason
		}
		status.Details = result.Details
		if result.Message != "" {
			message = result.Message
		} else if result.Reason != "" {
			message = string(result.Reason)
		}
	}
	deny := fmt.Sprintf("admission webhook %q denied the request: %s", name, message)
	if message == "without explanation" {
		deny = fmt.Sprintf("admission webhook %q denied the request without explanation", name)
	}
	status.Message = deny
	return &apierrors.StatusError{ErrStatus: status}
}

func patched(object *unstructured.Unstructured, patch []byte) (*unstructured.Unstructured, error) {
	decoded, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, err
	}
	before, err := json.Marshal(object.Object)
	if err != nil {
		return nil, err
	}
	after, err := decoded.Apply(before)
	if err != nil {
		return nil, err
	}
	changed := &unstructured.Unstructured{}
	return changed, utiljson.Unmarshal(after, &changed.Object)
}
