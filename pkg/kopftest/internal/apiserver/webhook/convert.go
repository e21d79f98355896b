package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/kopf-go/kopf/pkg/kopftest/internal/apiserver/resource"
)

// conversionTimeout limits the conversion of the objects of one request.
const conversionTimeout = 30 * time.Second

// Convert returns stored objects in the version of a resource, in their order. Objects in another version are sent to the
// webhook of the definition, all in one request; without a webhook, only their version changes.
func (a *Admission) Convert(ctx context.Context, to *resource.Resource, stored ...*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	converted := make([]*unstructured.Unstructured, len(stored))
	var sent []int
	for i, object := range stored {
		if to.Conversion != nil && object.GetAPIVersion() != to.GroupVersion().String() {
			sent = append(sent, i)
			continue
		}
		converted[i] = to.Rules.Convert(object)
	}
	if len(sent) == 0 {
		return converted, nil
	}
	var objects []*unstructured.Unstructured
	for _, i := range sent {
		objects = append(objects, stored[i])
	}
	results, err := a.convert(ctx, to.Conversion, to.GroupVersion(), objects)
	if err != nil {
		return nil, err
	}
	for n, i := range sent {
		if _, err := to.Decode(results[n]); err != nil { // drops what the version does not have
			return nil, err
		}
		converted[i] = results[n]
	}
	return converted, nil
}

// Store returns an object as it is stored: in the storage version. The resource of that version is nil if it is not served.
func (a *Admission) Store(ctx context.Context, of, storage *resource.Resource, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if of.Conversion == nil || object.GetAPIVersion() == of.Stored.GroupVersion().String() {
		return of.Rules.Store(object), nil
	}
	results, err := a.convert(ctx, of.Conversion, of.Stored.GroupVersion(), []*unstructured.Unstructured{object})
	if err != nil {
		return nil, err
	}
	if storage == nil {
		return results[0], nil
	}
	_, err = storage.Decode(results[0])
	return results[0], err
}

// convert lets a webhook convert objects.
func (a *Admission) convert(ctx context.Context, by *apiextensionsv1.WebhookConversion, to schema.GroupVersion, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	request := &apiextensionsv1.ConversionRequest{UID: uuid.NewUUID(), DesiredAPIVersion: to.String()}
	for _, object := range objects {
		request.Objects = append(request.Objects, runtime.RawExtension{Object: object})
	}
	response, err := a.callConversion(ctx, by, request)
	if err != nil {
		return nil, fmt.Errorf("conversion webhook for %s failed: %w", objects[0].GroupVersionKind(), err)
	}
	if len(response) != len(objects) {
		return nil, fmt.Errorf("conversion webhook for %s returned %d objects, expected %d", objects[0].GroupVersionKind(), len(response), len(objects))
	}
	var results []*unstructured.Unstructured
	for i, raw := range response {
		result := &unstructured.Unstructured{}
		if err := utiljson.Unmarshal(raw.Raw, &result.Object); err != nil {
			return nil, err
		}
		from := objects[i]
		if result.GetAPIVersion() != to.String() || result.GetKind() != from.GetKind() || result.GetName() != from.GetName() ||
			result.GetNamespace() != from.GetNamespace() || result.GetUID() != from.GetUID() {
			return nil, fmt.Errorf("conversion webhook for %s returned another object at index %d", from.GroupVersionKind(), i)
		}
		restoreMetadata(result, from)
		results = append(results, result)
	}
	return results, nil
}

// restoreMetadata restores what a conversion cannot change: all but labels and annotations.
func restoreMetadata(result, from *unstructured.Unstructured) {
	labels := result.GetLabels()
	annotations := result.GetAnnotations()
	metadata, _ := from.Object["metadata"].(map[string]any)
	result.Object["metadata"] = runtime.DeepCopyJSON(metadata)
	result.SetLabels(labels)
	result.SetAnnotations(annotations)
}

// callConversion sends a conversion review to a webhook.
func (a *Admission) callConversion(ctx context.Context, by *apiextensionsv1.WebhookConversion, request *apiextensionsv1.ConversionRequest) ([]runtime.RawExtension, error) {
	ctx, cancel := context.WithTimeout(ctx, conversionTimeout)
	defer cancel()
	body, err := json.Marshal(apiextensionsv1.ConversionReview{
		TypeMeta: metav1.TypeMeta{Kind: "ConversionReview", APIVersion: apiextensionsv1.SchemeGroupVersion.String()}, Request: request,
	})
	if err != nil {
		return nil, err
	}
	config := registrationv1.WebhookClientConfig{URL: by.ClientConfig.URL}
	if service := by.ClientConfig.Service; service != nil {
		config.Service = &registrationv1.ServiceReference{Namespace: service.Namespace, Name: service.Name, Path: service.Path, Port: service.Port}
	}
	target, err := address(config, conversionTimeout)
	if err != nil {
		return nil, err
	}
	data, err := a.post(ctx, target, body)
	if err != nil {
		return nil, err
	}
	var review apiextensionsv1.ConversionReview
	if err := json.Unmarshal(data, &review); err != nil {
		return nil, err
	}
	switch response := review.Response; {
	case response == nil || response.UID != request.UID:
		return nil, errors.New("expected a response to the request")
	case response.Result.Status != metav1.StatusSuccess:
		return nil, errors.New(response.Result.Message)
	default:
		return response.ConvertedObjects, nil
	}
}
