// Admission handlers: objects are changed, and checked, before they are stored.
//
// The API server asks the operator, so it has to know where that is: the operator
// listens, with a certificate that it generates, and tells the cluster of itself. When
// it stops, it takes that back.
package main

import "github.com/kopf-go/kopf/pkg/kopf"

func main() {
	kex := kopf.Resource("kopfexamples")
	changes := kopf.Operations("CREATE", "UPDATE")
	kopf.OnMutate(kex, defaultNumbers, changes)
	kopf.OnMutate(kex, convertNumbers, changes)
	kopf.OnValidate(kex, checkNumbers, changes)
	kopf.OnValidate(kex, keepLocked, kopf.Operations("DELETE"), kopf.Labels(kopf.Filters{"locked": kopf.Present()}))
	kopf.OnValidate(kex, checkPhase, kopf.Operations("UPDATE"), kopf.Subresource("status"))

	kopf.Main(func(s *kopf.Settings) {
		s.Admission.Server = kopf.AutoServer(kopf.WebhookServer{}) // for a cluster on this machine
		s.Admission.Managed = "admission.kopf.dev"
	})
}
