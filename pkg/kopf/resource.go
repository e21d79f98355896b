package kopf

import "github.com/kopf-go/kopf/pkg/model/selector"

// Selector selects resources. Resource returns it, and so do the functions By and Func of package
// selector, which select by one particular name, by a category, or by a function.
type Selector = selector.Selector

// Everything selects all resources, in place of the name of a resource.
const Everything = selector.Everything

// Resource selects resources by the notations of kubectl.
//
//	kopf.Resource("kopfexamples")
//	kopf.Resource("kopf.dev", "v1", "kopfexamples")
//	kopf.Resource("kopf.dev/v1", "kopfexamples")
//	kopf.Resource("kopfexamples.kopf.dev")
//	kopf.Resource("v1", "pods")
//	kopf.Resource("kopf.dev", kopf.Everything)
//
// Specification: Resource specification.
func Resource(parts ...string) Selector { return selector.New(parts...) }
