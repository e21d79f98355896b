package deployment

import (
	"net/url"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// presents opens the page of every replica with the token of an account that has the role, and fails without it.
func (o *operation) presents(object *unstructured.Unstructured) {
	o.t.Helper()
	token := o.reader("viewer", o.deployment.Name+"-page-reader")
	address := "/object?" + url.Values{"resource": {"kopfexamples.kopf.dev"}, "namespace": {object.GetNamespace()}, "name": {object.GetName()}}.Encode()
	for _, p := range o.pods {
		o.Eventually(p.get).WithArguments("page", "/", token).Should(gomega.ContainSubstring("kopfexamples"))
		o.Expect(p.get("page", "/operator", token)).To(gomega.SatisfyAll(
			gomega.ContainSubstring("What the operator watches"), gomega.Not(gomega.ContainSubstring("Missing permissions"))))
		o.Expect(p.get("page", address, token)).To(gomega.ContainSubstring(object.GetName()))
		o.Expect(p.get("page", address, "")).Error().To(gomega.MatchError(gomega.ContainSubstring("401")))
	}
}
