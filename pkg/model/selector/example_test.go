package selector_test

import (
	"fmt"

	"github.com/kopf-go/kopf/pkg/model/selector"
)

func ExampleNew() {
	for _, s := range []selector.Selector{
		selector.New("kopf.dev", "kopfexamples"),
		selector.New("kopf.dev/v1beta1", "KopfExample"),
		selector.New("v1", "pods"),
		selector.New("kopf.dev", selector.Everything),
	} {
		fmt.Println(s, "->", s.Select(cluster))
	}
	// Output:
	// kopf.dev/kopfexamples -> [kopfexamples.v1.kopf.dev]
	// kopf.dev/v1beta1/KopfExample -> [kopfexamples.v1beta1.kopf.dev]
	// v1/pods -> [pods.v1]
	// kopf.dev/* -> [kopfexamples.v1.kopf.dev]
}

func ExampleBy() {
	s := selector.By(selector.Fields{Group: "kopf.dev", Kind: "KopfExample"})
	fmt.Println(s, "->", s.Select(cluster))
	// Output: kind=KopfExample,group=kopf.dev -> [kopfexamples.v1.kopf.dev]
}

func ExampleFunc() {
	clusterScoped := selector.Func(func(r selector.Resource) bool { return !r.Namespaced })
	fmt.Println(len(clusterScoped.Select(cluster)), "resources")
	// Output: 0 resources
}

func ExampleSelector_Err() {
	fmt.Println(selector.New("kopf.dev", "kopfexamples/status").Err())
	// Output: the resource selector "kopf.dev/kopfexamples/status": "kopfexamples/status" has a slash: subresources have no handlers: name the resource itself
}

func ExampleSelector_Resolve() {
	_, err := selector.New("kopfexamples").Resolve(cluster)
	fmt.Println(err)
	// Output: "kopfexamples" is ambiguous, and none of the matching resources is served (kopfexamples.v1.kopf.dev, kopfexamples.v1.example.com): specify one of them with its group
}
