// This example converts objects between three versions of a resource. Each version has another shape of the same
// content: one address in v1alpha1 and v1beta1, a list of addresses in v1.
//
// The API server stores all objects in one version, and calls the operator when a client asks for another one. The
// operator writes its address and its certificate into the definition.
//
// With the argument "migrate", the program moves all stored objects to the storage version, after the definition has got
// another one. It can run while the operator runs.
package main

import (
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/webhook/servers"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "migrate" {
		if err := migrate(ctrl.SetupSignalHandler()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	declare(kopf.DefaultRegistry)
	kopf.Main(func(o *kopf.Options) {
		o.Settings.Admission.Server = servers.Auto(servers.Server{}) // for a cluster on this machine
		o.Settings.Admission.Managed = "sites.kopf.dev"
	})
}
