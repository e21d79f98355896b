package kube

import (
	"context"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

// List is a page of objects, as client-go's reflectors read it.
type List struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []*object.Snapshot
}

// DeepCopyObject returns the list itself, because it is never changed.
func (l *List) DeepCopyObject() runtime.Object { return l }

// parseList parses the objects of a share in one page of a list.
func parseList(data []byte, resource selector.Resource, share *Share) (*List, error) {
	header := gjson.GetManyBytes(data, "metadata.resourceVersion", "metadata.continue", "items")
	list := &List{ListMeta: metav1.ListMeta{ResourceVersion: header[0].Str, Continue: header[1].Str}}
	items := header[2]
	switch {
	case items.Raw == "null": // an empty list of some servers
		return list, nil
	case !items.IsArray(): // must not be mistaken for the deletion of all objects
		return nil, fmt.Errorf("the list of %s: the answer has no items", resource)
	}
	var failure error
	items.ForEach(func(_, item gjson.Result) bool {
		if !share.hasJSON(item.Get) {
			return true
		}
		snapshot, err := object.ParseSnapshot(withKind(item, resource))
		if err != nil {
			failure = fmt.Errorf("the list of %s: %w", resource, err)
			return false
		}
		list.Items = append(list.Items, snapshot)
		return true
	})
	return list, failure
}

// withKind adds apiVersion and kind, which items of built-in resources lack in lists.
func withKind(item gjson.Result, resource selector.Resource) []byte {
	if !item.IsObject() || item.Get("kind").Exists() {
		return []byte(item.Raw)
	}
	fields := strings.TrimSpace(item.Raw[1:])
	if fields != "}" {
		fields = "," + fields
	}
	return fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q%s`, resource.GroupVersion(), resource.Kind, fields)
}

// listPage reads the objects of a share in one page of a namespace, or of all namespaces if it is
// empty.
func (c *Client) listPage(ctx context.Context, namespace string, share *Share, options metav1.ListOptions) (*List, error) {
	request := c.withScope(c.rest.Get(), namespace)
	data, err := c.doOnce(ctx, request.SpecificallyVersionedParams(&options, metav1.ParameterCodec, listVersion))
	if err != nil {
		return nil, err
	}
	if !gjson.ValidBytes(data) {
		return nil, fmt.Errorf("the list of %s is truncated or not JSON", c.resource)
	}
	return parseList(data, c.resource, share)
}
