package kube

import (
	"context"
	"fmt"
	"net/http"

	"github.com/tidwall/gjson"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/kopf/object"
	"github.com/kopf-go/kopf/pkg/kopf/selector"
)

// fieldManager names this project in the managedFields of what it writes.
const fieldManager = "kopf"

// listVersion is the version of the list and watch parameters on the wire.
var listVersion = schema.GroupVersion{Version: "v1"}

// Client talks to the API server about one resource. It is safe for concurrent use.
type Client struct {
	rest     rest.Interface
	metadata metadata.Getter
	resource selector.Resource
}

// New makes a client of one resource. The HTTP client is shared by all clients
// of an operator, so that they share its connections.
func New(config *rest.Config, httpClient *http.Client, resource selector.Resource) (*Client, error) {
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
	config.NegotiatedSerializer = codec{}
	config.AcceptContentTypes, config.ContentType = "", "application/json"
	client, err := rest.RESTClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("the API of %s cannot be used: %w", resource, err)
	}
	return &Client{rest: client, metadata: objects.Resource(resource.GVR()), resource: resource}, nil
}

// Get reads one object, live.
func (c *Client) Get(ctx context.Context, key types.NamespacedName) (*object.Snapshot, error) {
	return c.one(ctx, c.rest.Get(), key, "")
}

// Patch applies a merge patch to an object, or to one of its subresources, and
// returns the object as it is afterwards. Fields that the resource does not have
// are dropped: the server need not warn of them, for the caller sees that.
func (c *Client) Patch(ctx context.Context, key types.NamespacedName, subresource string, merge []byte) (*object.Snapshot, error) {
	return c.one(ctx, c.merging(merge), key, subresource)
}

// Probe asks the server what it would say to such a patch. Nothing is stored.
func (c *Client) Probe(ctx context.Context, key types.NamespacedName, subresource string, merge []byte) error {
	_, err := c.one(ctx, c.merging(merge).Param("dryRun", metav1.DryRunAll), key, subresource)
	return err
}

func (c *Client) merging(merge []byte) *rest.Request {
	return c.rest.Patch(types.MergePatchType).Param("fieldManager", fieldManager).Param("fieldValidation", "Ignore").Body(merge)
}

func (c *Client) one(ctx context.Context, request *rest.Request, key types.NamespacedName, subresource string) (*object.Snapshot, error) {
	request = c.scoped(request, key.Namespace).Name(key.Name)
	if subresource != "" {
		request = request.SubResource(subresource)
	}
	data, err := c.do(ctx, request)
	if err != nil {
		return nil, err
	}
	return object.ParseSnapshot(data)
}

// list reads all objects of a namespace; of all namespaces if it is empty.
func (c *Client) list(ctx context.Context, namespace string, options metav1.ListOptions) (*List, error) {
	request := c.scoped(c.rest.Get(), namespace)
	data, err := c.do(ctx, request.SpecificallyVersionedParams(&options, metav1.ParameterCodec, listVersion))
	if err != nil {
		return nil, err
	}
	if !gjson.ValidBytes(data) {
		return nil, fmt.Errorf("the list of %s is cut or no JSON", c.resource)
	}
	return parseList(data, c.resource)
}

func (c *Client) scoped(request *rest.Request, namespace string) *rest.Request {
	return request.NamespaceIfScoped(namespace, namespace != "").Resource(c.resource.Plural)
}

func (c *Client) do(ctx context.Context, request *rest.Request) ([]byte, error) {
	result := request.Do(ctx)
	// Error decodes the server's explanation, which Raw would leave out.
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}
