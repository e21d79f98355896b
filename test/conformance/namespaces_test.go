package conformance

import (
	"testing"

	"github.com/kopf-go/kopf/pkg/model/selector"
)

type namespaceInput struct {
	Namespace string `json:"namespace"`
	Pattern   string `json:"pattern"`
}

func TestNamespacePatterns(t *testing.T) {
	for _, v := range load[namespaceInput, bool](t, "namespace_patterns") {
		t.Run(v.Name, func(t *testing.T) {
			if got := selector.MatchNamespace(v.Input.Namespace, v.Input.Pattern); got != v.Expect {
				t.Errorf("%q, %q: got %v", v.Input.Namespace, v.Input.Pattern, got)
			}
		})
	}
}
