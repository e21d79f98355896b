package kube

import (
	"context"
	"fmt"

	"github.com/tidwall/gjson"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// metadataOnly leaves out of a list what nobody looks at in it.
	metadataOnly = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
	// pageSize is how many objects are listed at once, as client-go's pager has it.
	pageSize = 500
)

// Version is which object there is, and in which version.
type Version struct {
	UID             types.UID
	ResourceVersion string
}

// Versions reads which objects of a namespace there are now; of all namespaces
// if it is empty. The answer is consistent: no write that was committed before
// is missing in it.
func (c *Client) Versions(ctx context.Context, namespace string) (map[types.NamespacedName]Version, error) {
	versions := map[types.NamespacedName]Version{}
	options := metav1.ListOptions{Limit: pageSize}
	for {
		request := c.scoped(c.rest.Get(), namespace).SetHeader("Accept", metadataOnly)
		data, err := c.do(ctx, request.SpecificallyVersionedParams(&options, metav1.ParameterCodec, listVersion))
		if err != nil {
			return nil, err
		}
		page := gjson.GetManyBytes(data, "metadata.continue", "items")
		if !gjson.ValidBytes(data) || !page[1].IsArray() && page[1].Raw != "null" {
			return nil, fmt.Errorf("the list of %s is cut or no JSON", c.resource)
		}
		page[1].ForEach(func(_, item gjson.Result) bool {
			metadata := item.Get("metadata")
			key := types.NamespacedName{Namespace: metadata.Get("namespace").Str, Name: metadata.Get("name").Str}
			versions[key] = Version{types.UID(metadata.Get("uid").Str), metadata.Get("resourceVersion").Str}
			return true
		})
		if options.Continue = page[0].Str; options.Continue == "" {
			return versions, nil
		}
	}
}
