package servers

import (
	"context"

	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kopf-go/kopf/pkg/settings"
)

// Tunneled is a local server that the API servers reach by another address than its
// own. The tunnel is opened when the local end listens, publishes its own address
// by the endpoint, and stays until the context is done. Its end, and that of the
// local server, is the end of both.
//
// Specification: Admission control, "Custom servers/tunnels".
func Tunneled(local, tunnel settings.AdmissionServer) settings.AdmissionServer {
	return settings.AdmissionServerFunc(func(ctx context.Context, endpoint settings.AdmissionEndpoint) error {
		group, ctx := errgroup.WithContext(ctx)
		listens, ready := context.WithCancel(ctx)
		inside := endpoint
		inside.Publish = func(context.Context, admissionregistrationv1.WebhookClientConfig) error {
			ready()
			return nil
		}
		group.Go(func() error {
			defer ready()
			return local.Serve(ctx, inside)
		})
		group.Go(func() error {
			<-listens.Done()
			if ctx.Err() != nil {
				return nil //nolint:nilerr // it was asked to end, or the other one tells why
			}
			return tunnel.Serve(ctx, endpoint)
		})
		return group.Wait()
	})
}
