package registry_test

import (
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

func TestMistakesInNeeds(t *testing.T) {
	for what, need := range map[string]registry.Need{
		"has no verbs":      {Selector: selector.New("pods")},
		"in lower case":     {Selector: selector.New("pods"), Verbs: []string{"Get"}},
		"with its name in":  {Selector: selector.New("pods"), Verbs: []string{"status/"}},
		"in lower case, th": {Selector: selector.New("pods"), Verbs: []string{"*"}},
	} {
		r := &registry.Registry{}
		r.AddNeed(need)
		if _, err := r.Handlers(scheme.Scheme); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%q: got %v", what, err)
		}
		if len(r.Needs()) > 0 {
			t.Errorf("%q: it counts", what)
		}
	}
}
