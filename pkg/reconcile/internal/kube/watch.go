package kube

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/internal/relist"
	"github.com/kopf-go/kopf/pkg/settings"
)

// errClosed is an error that client-go hides: it returns an empty watch.
var errClosed = errors.New("the API server has closed the connection")

// Source returns the source of a reflector for the selected objects of a share, in one namespace, or in all namespaces if
// it is empty. It calls report with every error that prevents listing or watching, and with nil when a
// watch begins.
func (c *Client) Source(namespace string, share *Share, watching settings.Watching, report func(error)) *relist.Source {
	r := reflected{c, c.rest, nil, namespace, share}
	if share != nil {
		r.watches, r.unusable = c.shared(share)
	}
	narrow := func(options *metav1.ListOptions) {
		c.selection.narrow(options)
		share.Narrow(options)
	}
	return relist.NewSource(r, c.networking.RequestTimeout, watching, narrow, report)
}

// reflected makes the requests of a reflector, which repeats them itself.
type reflected struct {
	*Client
	watches   rest.Interface
	unusable  error  // why there is no client for watches
	namespace string // empty for all namespaces
	share     *Share // nil: all objects
}

var _ relist.Client[*List] = reflected{}

// List requests a page of a list once.
func (r reflected) List(ctx context.Context, options metav1.ListOptions) (*List, error) {
	return r.listPage(ctx, r.namespace, r.share, options)
}

// Watch requests a watch once.
func (r reflected) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if r.unusable != nil {
		return nil, fmt.Errorf("%s cannot be watched: %w", r.resource, r.unusable)
	}
	options.Watch = true
	request := r.withScope(r.watches.Get(), r.namespace).SpecificallyVersionedParams(&options, metav1.ParameterCodec, listVersion)
	started, err := request.MaxRetries(clientGoRetries).Watch(ctx)
	if _, streams := started.(*watch.StreamWatcher); err == nil && !streams {
		err = errClosed
	}
	return started, err
}
