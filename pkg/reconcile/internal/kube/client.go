package kube

import (
	"cmp"
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

// listVersion is the version of the list and watch parameters in requests.
var listVersion = schema.GroupVersion{Version: "v1"}

// Client calls the API of one resource. It is safe for concurrent use.
type Client struct {
	rest       rest.Interface
	shared     func(*Share) (rest.Interface, error) // like rest, for a stream with a share
	metadata   metadata.Getter
	resource   selector.Resource
	selection  Selection
	networking settings.Networking
	// manager names the operator in the managedFields of the objects that it writes. Other
	// operators in contention can then be told apart.
	manager string
}

// New returns the client of one resource. All clients of an operator share the HTTP
// client, and thereby its connections.
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
	config.AcceptContentTypes = ""
	config.ContentType = "application/json"
	shared := func(share *Share) (rest.Interface, error) {
		config := rest.CopyConfig(config)
		config.NegotiatedSerializer = codec{share}
		return rest.RESTClientForConfigAndClient(config, httpClient)
	}
	client, err := shared(nil)
	if err != nil {
		return nil, fmt.Errorf("the API of %s cannot be used: %w", resource, err)
	}
	c := &Client{rest: client, shared: shared, metadata: objects.Resource(resource.GVR()), resource: resource, networking: s.Networking, manager: cmp.Or(s.Name, settings.DefaultName)}
	c.selection.Labels, c.selection.Fields = s.Watching.Selectors(resource)
	return c, nil
}

// Selection returns which objects the operator watches.
func (c *Client) Selection() Selection {
	if c == nil {
		return Selection{}
	}
	return c.selection
}

// Get reads one object from the server. It retries temporary failures.
func (c *Client) Get(ctx context.Context, key types.NamespacedName) (*object.Snapshot, error) {
	return c.requestObject(ctx, c.rest.Get(), key, "", reads)
}

// Patch applies a merge patch to an object, or to one of its subresources, and returns the
// resulting object. It retries if the write was certainly not executed; after any other
// failure, the write may have been committed. The server drops fields that the resource does
// not have; the request disables warnings about them, because the caller checks that.
func (c *Client) Patch(ctx context.Context, key types.NamespacedName, subresource string, merge []byte) (*object.Snapshot, error) {
	return c.requestObject(ctx, c.mergePatch(merge), key, subresource, writes)
}

// DryRun asks the server whether it would accept a patch. Nothing is stored.
func (c *Client) DryRun(ctx context.Context, key types.NamespacedName, subresource string, merge []byte) error {
	_, err := c.requestObject(ctx, c.mergePatch(merge).Param("dryRun", metav1.DryRunAll), key, subresource, reads)
	return err
}

// mergePatch returns the request for a merge patch.
func (c *Client) mergePatch(merge []byte) *rest.Request {
	return c.rest.Patch(types.MergePatchType).Param("fieldManager", c.manager).Param("fieldValidation", "Ignore").Body(merge)
}

// requestObject makes a request whose response is the object.
func (c *Client) requestObject(ctx context.Context, request *rest.Request, key types.NamespacedName, subresource string, of kind) (*object.Snapshot, error) {
	request = c.withScope(request, key.Namespace).Name(key.Name)
	if subresource != "" {
		request = request.SubResource(subresource)
	}
	data, err := c.doWithRetry(ctx, request, of)
	if err != nil {
		return nil, err
	}
	return object.ParseSnapshot(data)
}

// withScope adds the namespace and the resource to a request.
func (c *Client) withScope(request *rest.Request, namespace string) *rest.Request {
	return request.NamespaceIfScoped(namespace, namespace != "").Resource(c.resource.Plural)
}
