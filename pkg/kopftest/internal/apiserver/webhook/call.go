package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// defaultTimeout is the timeout of webhooks that declare none.
const defaultTimeout = 10 * time.Second

// The user of all requests, because there is no authentication.
const userName = "kopftest"

func userGroups() []string { return []string{"system:masters", "system:authenticated"} }

// request returns what webhooks receive.
func (r Review) request() *admissionv1.AdmissionRequest {
	kind := r.Resource.GroupVersionKind()
	of := r.Resource.GroupVersionResource
	made := &admissionv1.AdmissionRequest{
		UID: uuid.NewUUID(), Name: r.Key.Name, Namespace: r.Key.Namespace, Operation: r.Operation, SubResource: r.Subresource,
		Kind:     metav1.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind},
		Resource: metav1.GroupVersionResource{Group: of.Group, Version: of.Version, Resource: of.Resource},
		UserInfo: authenticationv1.UserInfo{Username: userName, Groups: userGroups()},
		DryRun:   &r.DryRun, RequestSubResource: r.Subresource,
	}
	made.RequestKind = &made.Kind
	made.RequestResource = &made.Resource
	if r.Object != nil {
		made.Object = runtime.RawExtension{Object: r.Object}
	}
	if r.Old != nil {
		made.OldObject = runtime.RawExtension{Object: r.Old}
	}
	return made
}

// call sends a request to a webhook.
func (a *Admission) call(ctx context.Context, hook registrationv1.ValidatingWebhook, request *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	timeout := defaultTimeout
	if hook.TimeoutSeconds != nil {
		timeout = time.Duration(*hook.TimeoutSeconds) * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{Kind: "AdmissionReview", APIVersion: admissionv1.SchemeGroupVersion.String()}, Request: request,
	})
	if err != nil {
		return nil, err
	}
	target, err := address(hook.ClientConfig, timeout)
	if err != nil {
		return nil, err
	}
	data, err := a.post(ctx, target, body)
	if err != nil {
		return nil, err
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(data, &review); err != nil {
		return nil, err
	}
	if review.Response == nil || review.Response.UID != request.UID {
		return nil, errors.New("expected a response to the request")
	}
	return review.Response, nil
}

// post sends a review to a webhook, and returns the answer.
func (a *Admission) post(ctx context.Context, target string, body []byte) ([]byte, error) {
	if a.transport == nil {
		return nil, errors.New("no webhooks can be reached")
	}
	sent, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	sent.Header.Set("Content-Type", "application/json")
	sent.Header.Set("Accept", "application/json, */*")

	response, err := a.transport.RoundTrip(sent)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answered %s: %s", response.Status, data)
	}
	return data, nil
}

// address returns the URL of a webhook, with the timeout as a parameter.
func address(config registrationv1.WebhookClientConfig, timeout time.Duration) (string, error) {
	var target url.URL
	switch {
	case config.URL != nil:
		parsed, err := url.Parse(*config.URL)
		if err != nil {
			return "", err
		}
		target = *parsed
	case config.Service != nil:
		target = url.URL{Scheme: "https", Host: config.Service.Name + "." + config.Service.Namespace + ".svc"}
		if config.Service.Path != nil {
			target.Path = "/" + strings.TrimPrefix(*config.Service.Path, "/")
		}
	default:
		return "", errors.New("the client configuration has neither a URL nor a service")
	}
	target.RawQuery = url.Values{"timeout": {timeout.String()}}.Encode()
	return target.String(), nil
}
