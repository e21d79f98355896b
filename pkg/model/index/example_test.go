package index_test

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/model/index"
	"github.com/kopf-go/kopf/pkg/model/object"
)

// The engine writes; handlers read.
func Example() {
	byLabel := index.New[[2]string, string]()
	for name, labels := range map[string]map[[2]string]string{
		"pod1": {{"app", "shop"}: "pod1", {"tier", "web"}: "pod1"},
		"pod2": {{"app", "shop"}: "pod2", {"tier", "db"}: "pod2"},
	} {
		pod := object.Key{Resource: "pods.v1", NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}}
		if err := byLabel.Replace(pod, labels); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(slices.Sorted(slices.Values(byLabel.Get([2]string{"app", "shop"}))))
	fmt.Println(byLabel.Get([2]string{"tier", "db"}), byLabel.Has([2]string{"tier", "cache"}), byLabel.Len())
	// Output:
	// [pod1 pod2]
	// [pod2] false 3
}
