package kube

import (
	"context"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/settings"
)

// fieldManager names this project in the managedFields of what it writes.
const fieldManager = "kopf"

// listVersion is the version of the list and watch parameters on the wire.
var listVersion = schema.GroupVersion{Version: "v1"}

// Client talks to the API server about one resource. It is safe for concurrent use.
type Client struct {
	rest       rest.Interface
	metadata   metadata.Getter
	resource   selector.Resource
	networking settings.Networking
}

// New makes a client of one resource. The HTTP client is shared by all clients
// of an operator, so that they share its connections.
func New(config *rest.Config, httpClient *http.Client, resource selector.Resource, s settings.Settings) (*Client, error) {
	objects, err := metadata.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("the API of %s cannot be used: %w", resource, err)
	}
	config = rest.CopyConfig(config)
	config.GroupVersion = &schema.GroupVersion{Group: resource.Group, Version: resource.Version}
	config.APIPath = "/apis"
	if resource.Group == "" {
		config.APIPath = "/api"
	}
	config.NegotiatedSerializer = codec{idle: s.Watching.InactivityTimeout}
	config.AcceptContentTypes, config.ContentType = "", "application/json"
	client, err := rest.RESTClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("the API of %s cannot be used: %w", resource, err)
	}
	return &Client{rest: client, metadata: objects.Resource(resource.GVR()), resource: resource, networking: s.Networking}, nil
}

// Get reads one object, live. A temporary failure is repeated.
func (c *Client) Get(ctx context.Context, key types.NamespacedName) (*object.Snapshot, error) {
	return c.requestObject(ctx, c.rest.Get(), key, "", isTemporary)
}

// Patch applies a merge patch to an object, or to one of its subresources, and
// returns the object as it is afterwards. It is repeated if it was surely not
// executed; after any other failure, it may have been. Fields that the resource does not have
// are dropped: the server need not warn of them, for the caller sees that.
func (c *Client) Patch(ctx context.Context, key types.NamespacedName, subresource string, merge []byte) (*object.Snapshot, error) {
	return c.requestObject(ctx, c.mergePatch(merge), key, subresource, isNotExecuted)
}

// DryRun asks the server what it would say to such a patch. Nothing is stored.
func (c *Client) DryRun(ctx context.Context, key types.NamespacedName, subresource string, merge []byte) error {
	_, err := c.requestObject(ctx, c.mergePatch(merge).Param("dryRun", metav1.DryRunAll), key, subresource, isTemporary)
	return err
}

func (c *Client) mergePatch(merge []byte) *rest.Request {
	return c.rest.Patch(types.MergePatchType).Param("fieldManager", fieldManager).Param("fieldValidation", "Ignore").Body(merge)
}

func (c *Client) requestObject(ctx context.Context, request *rest.Request, key types.NamespacedName, subresource string, isRetriable func(error) bool) (*object.Snapshot, error) {
	request = c.withScope(request, key.Namespace).Name(key.Name)
	if subresource != "" {
		request = request.SubResource(subresource)
	}
	data, err := c.doWithRetry(ctx, request, isRetriable)
	if err != nil {
		return nil, err
	}
	return object.ParseSnapshot(data)
}

func (c *Client) withScope(request *rest.Request, namespace string) *rest.Request {
	return request.NamespaceIfScoped(namespace, namespace != "").Resource(c.resource.Plural)
}
