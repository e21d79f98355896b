// This example has admission handlers, which change and validate objects before they are
// stored.
//
// The API server calls the operator, so it must know the operator's address: the
// operator listens, with a certificate that it generates, and writes its address into
// webhook configurations. When it stops, it removes its webhooks again.
package main

import (
	"os"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/webhook/servers"
)

func main() {
	kex := kopf.Resource("kopfexamples")
	changes := kopf.Operations("CREATE", "UPDATE")
	kopf.OnMutate(kex, defaultNumbers, changes)
	kopf.OnMutate(kex, convertNumbers, changes)
	kopf.OnValidate(kex, checkNumbers, changes)
	kopf.OnValidate(kex, keepLocked, kopf.Operations("DELETE"), kopf.Labels(map[string]kopf.Matcher{"locked": kopf.Present()}))
	kopf.OnValidate(kex, checkPhase, kopf.Operations("UPDATE"), kopf.Subresource("status"))
	kopf.OnValidate(kex, recordRequest, changes, kopf.SideEffects())
	kopf.OnValidate(kex, identifyCaller, changes, kopf.Labels(map[string]kopf.Matcher{"identified": kopf.Present()}))

	kopf.Main(func(o *kopf.Options) {
		server := servers.Server{ClientCAFile: os.Getenv("CLIENT_CA")} // verifies the certificates of clients
		o.Settings.Admission.Server = servers.Auto(server)             // for a cluster on this machine
		o.Settings.Admission.Managed = "admission.kopf.dev"
	})
}
