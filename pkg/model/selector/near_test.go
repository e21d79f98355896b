package selector_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/selector"
)

func TestNearNames(t *testing.T) {
	tests := map[string]struct {
		selector selector.Selector
		want     []string
	}{
		"a letter too many": {selector.New("apps", "podss"), []string{"pods.v1", "pods.v1beta1.metrics.k8s.io"}},
		"letters swapped":   {selector.New("kopf.dev/v1", "kopfexmaples"), []string{"kopfexamples.v1.kopf.dev", "kopfexamples.v1beta1.kopf.dev", "kopfexamples.v1.example.com"}},
		"the kind, misspelled, in another group": {
			selector.By(selector.Fields{Group: "metrics", Kind: "PodMetric"}), []string{"pods.v1beta1.metrics.k8s.io"},
		},
		"a short name":          {selector.New("kx"), []string{"kopfexamples.v1.kopf.dev", "kopfexamples.v1beta1.kopf.dev"}},
		"the best one is first": {selector.New("apps", "podz"), []string{"pods.v1", "pods.v1beta1.metrics.k8s.io"}},
		"another word":          {selector.New("widgets"), nil},
		"not a single resource": {selector.By(selector.Fields{Category: "al"}), nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := test.selector.Resolve(cluster)
			var missing *selector.NotFoundError
			var got []string
			if errors.As(err, &missing) {
				got = names(missing.Near)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q (%v)", got, err)
			}
		})
	}
}

func TestNearNamesAreFew(t *testing.T) {
	var many []selector.Resource
	for i := range 10 {
		many = append(many, selector.Resource{Version: "v1", Plural: fmt.Sprintf("widgets%d", i), Kind: "Widget", Preferred: true})
	}
	_, err := selector.New("widgetz").Resolve(many)
	var missing *selector.NotFoundError
	if !errors.As(err, &missing) || len(missing.Near) != 5 {
		t.Errorf("got %v", err)
	}
}
