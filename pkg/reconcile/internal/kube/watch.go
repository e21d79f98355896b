package kube

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-go/kopf/pkg/internal/relist"
	"github.com/kopf-go/kopf/pkg/settings"
)

// errClosed is an error that client-go hides: it returns an empty watch.
var errClosed = errors.New("the API server has closed the connection")

// Source returns the source of a reflector for the selected objects of one namespace, or of all namespaces if
// it is empty. It calls report with every error that prevents listing or watching, and with nil when a
// watch begins.
func (c *Client) Source(namespace string, watching settings.Watching, report func(error)) *relist.Source {
	return relist.NewSource(reflected{c, namespace}, c.networking.RequestTimeout, watching, c.selection.narrow, report)
}

// reflected makes the requests of a reflector, which repeats them itself.
type reflected struct {
	*Client
	namespace string // empty for all namespaces
}

var _ relist.Client[*List] = reflected{}

// List requests a page of a list once.
func (r reflected) List(ctx context.Context, options metav1.ListOptions) (*List, error) {
	return r.listPage(ctx, r.namespace, options)
}

// Watch requests a watch once.
func (r reflected) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	request := r.withScope(r.rest.Get(), r.namespace).SpecificallyVersionedParams(&options, metav1.ParameterCodec, listVersion)
	started, err := request.MaxRetries(clientGoRetries).Watch(ctx)
	if _, streams := started.(*watch.StreamWatcher); err == nil && !streams {
		err = errClosed
	}
	return started, err
}
