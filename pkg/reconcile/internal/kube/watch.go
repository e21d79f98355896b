package kube

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-go/kopf/pkg/internal/relist"
	"github.com/kopf-go/kopf/pkg/settings"
)

// errClosed is an error that client-go hides: it returns an empty watch.
var errClosed = errors.New("the API server has closed the connection")

// Source returns the source of a reflector for the objects of one namespace, or of all namespaces if
// it is empty. It calls report with every error that prevents listing or watching, and with nil when a
// watch begins.
func (c *Client) Source(namespace string, watching settings.Watching, report func(error)) *relist.Source {
	reportOutcome := func(ctx context.Context, err error) {
		if ctx.Err() == nil { // it was not stopped
			report(err)
		}
	}
	return &relist.Source{
		Timeout: watching.ServerTimeout,
		ListFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := c.listPage(ctx, namespace, options)
			if err != nil {
				reportOutcome(ctx, err)
				return nil, err
			}
			return list, nil
		},
		WatchFunc: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.Watch = true
			started, err := relist.Limit(ctx, watching.InactivityTimeout, func(ctx context.Context) (watch.Interface, error) {
				return c.requestWatch(ctx, namespace, options)
			})
			reportOutcome(ctx, err)
			return started, err
		},
	}
}

// requestWatch requests a watch once.
func (c *Client) requestWatch(ctx context.Context, namespace string, options metav1.ListOptions) (watch.Interface, error) {
	request := c.withScope(c.rest.Get(), namespace).SpecificallyVersionedParams(&options, metav1.ParameterCodec, listVersion)
	started, err := request.MaxRetries(clientGoRetries).Watch(ctx)
	if _, streams := started.(*watch.StreamWatcher); err == nil && !streams {
		err = errClosed
	}
	return started, err
}
