package servers

import (
	"context"

	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kopf-go/kopf/pkg/settings"
)

// Tunneled returns a server that serves locally and is called through a tunnel. The
// tunnel starts when the local server listens, must publish its own address to the
// endpoint, and must stay open until the context is done. When one of the two ends, the
// other is stopped.
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
				return nil //nolint:nilerr // the context is done, or the local server has failed
			}
			return tunnel.Serve(ctx, endpoint)
		})
		return group.Wait()
	})
}
