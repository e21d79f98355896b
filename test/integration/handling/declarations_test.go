package handling

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/kopf-go/kopf/pkg/backoff"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/storage"
	"github.com/kopf-go/kopf/test/testenv"
)

// nowhere returns a cluster that must not get any requests.
func nowhere(t *testing.T) *rest.Config {
	config := &rest.Config{Host: "http://nowhere.example.com"}
	config.Wrap(func(http.RoundTripper) http.RoundTripper { return forbidden{t} })
	return config
}

type forbidden struct{ t *testing.T }

func (f forbidden) RoundTrip(r *http.Request) (*http.Response, error) {
	f.t.Errorf("unexpected request: %s %s", r.Method, r.URL)
	return nil, errors.New("there is none")
}

func named(context.Context, *kopf.Change) error { return nil }

type unregistered struct{ corev1.Pod }

// mistakes are invalid declarations with their errors.
var mistakes = map[string]struct {
	declare   func(r *kopf.Registry)
	complaint string
}{
	"no selector": {
		func(r *kopf.Registry) { r.OnCreate(kopf.Selector{}, named) }, "it has no resource",
	},
	"an empty selector": {
		func(r *kopf.Registry) { r.OnCreate(kopf.Resource(), named) }, `the resource selector ""`,
	},
	"a selector of too many parts": {
		func(r *kopf.Registry) { r.OnUpdate(kopf.Resource("a", "v1", "b", "c"), named) }, `the resource selector "a/v1/b/c"`,
	},
	"a selector by two names": {
		func(r *kopf.Registry) {
			r.OnDelete(selector.By(selector.Fields{Kind: "A", Plural: "as"}), named)
		}, "the resource selector",
	},
	"a selector without a callback": {
		func(r *kopf.Registry) { r.OnResume(selector.Func(nil), named) }, "the function is nil",
	},
	"a function literal without an id": {
		func(r *kopf.Registry) { r.OnCreate(examples, func(context.Context, *kopf.Change) error { return nil }) }, "a function literal has no name",
	},
	"no function": {
		func(r *kopf.Registry) { r.OnCreate(examples, nil, kopf.ID("nil")) }, "the function is nil",
	},
	"no event function": {
		func(r *kopf.Registry) { r.OnEvent(examples, nil, kopf.ID("nil")) }, "the function is nil",
	},
	"no typed function": {
		func(r *kopf.Registry) { kopf.For[*corev1.Pod](r).OnCreate(nil, kopf.ID("nil")) }, "the function is nil",
	},
	"no typed event function": {
		func(r *kopf.Registry) { kopf.For[*corev1.Pod](r).OnEvent(nil, kopf.ID("nil")) }, "the function is nil",
	},
	"a type that the scheme does not know": {
		func(r *kopf.Registry) {
			kopf.For[*unregistered](r).OnCreate(func(context.Context, *unregistered, *kopf.Change) error { return nil }, kopf.ID("typed"))
		}, "is not in the scheme",
	},
	"one id for two functions": {
		func(r *kopf.Registry) {
			r.OnCreate(examples, named, kopf.ID("same"))
			r.OnUpdate(examples, succeed, kopf.ID("same"))
		}, `the id "same" is taken by another`,
	},
	"one id for two function literals": {
		func(r *kopf.Registry) {
			r.OnCreate(examples, failing(1, 0), kopf.ID("same"))
			r.OnUpdate(examples, failing(2, 0), kopf.ID("same"))
		}, `the id "same" is taken by another`,
	},
	"an empty id": {
		func(r *kopf.Registry) { r.OnCreate(examples, named, kopf.ID("")) }, "its id is empty",
	},
	"an id that annotations cannot have": {
		func(r *kopf.Registry) { r.OnCreate(examples, named, kopf.ID("größe")) }, `its progress cannot be stored under the id "größe"`,
	},
	"a value with an old one": {
		func(r *kopf.Registry) {
			r.OnUpdate(examples, named, kopf.Field("spec.a"), kopf.Value(kopf.Equal("x")), kopf.ValueBefore(kopf.Equal("y")))
		}, "Value cannot be combined with ValueBefore or ValueAfter",
	},
	"a value with a new one": {
		func(r *kopf.Registry) {
			r.OnField(examples, "spec.a", named, kopf.Value(kopf.Present()), kopf.ValueAfter(kopf.Absent()))
		}, "Value cannot be combined with ValueBefore or ValueAfter",
	},
	"a value without a field": {
		func(r *kopf.Registry) { r.OnCreate(examples, named, kopf.Value(kopf.Equal("x"))) }, "add kopf.Field(...)",
	},
	"a new value without a field": {
		func(r *kopf.Registry) { r.OnUpdate(examples, named, kopf.ValueAfter(kopf.Equal("x"))) }, "add kopf.Field(...)",
	},
	"two fields": {
		func(r *kopf.Registry) { r.OnField(examples, "spec.a", named, kopf.Field("spec.b")) }, "it has two fields",
	},
	"an empty field": {
		func(r *kopf.Registry) { r.OnField(examples, "", named) }, "field",
	},
	"a field with an empty part": {
		func(r *kopf.Registry) { r.OnCreate(examples, named, kopf.Field("spec..a")) }, "spec..a",
	},
	"a value that is not JSON": {
		func(r *kopf.Registry) {
			r.OnCreate(examples, named, kopf.Field("spec.a"), kopf.Value(kopf.Equal(math.NaN())))
		}, "cannot be expressed as JSON",
	},
	"an empty label": {
		func(r *kopf.Registry) {
			r.OnCreate(examples, named, kopf.Labels(map[string]kopf.Matcher{"": kopf.Present()}))
		}, "a filter has an empty label",
	},
	"an empty filter of a label": {
		func(r *kopf.Registry) { r.OnCreate(examples, named, kopf.Labels(map[string]kopf.Matcher{"a": {}})) }, `the filter of the label "a" is empty`,
	},
	"an annotation that is not JSON": {
		func(r *kopf.Registry) {
			r.OnEvent(examples, ignore, kopf.Annotations(map[string]kopf.Matcher{"a": kopf.Equal(make(chan int))}))
		}, `the filter of the annotation "a"`,
	},
	"no predicate": {
		func(r *kopf.Registry) { r.OnCreate(examples, named, kopf.When(nil)) }, "the predicate of When is nil",
	},
	"a negative timeout": {
		func(r *kopf.Registry) { r.OnCreate(examples, named, kopf.Timeout(-time.Second)) }, "the timeout -1s is negative",
	},
	"no attempt": {
		func(r *kopf.Registry) { r.OnDelete(examples, named, kopf.Retries(0)) }, "kopf.Retries(0) allows no attempt",
	},
	"a negative backoff": {
		func(r *kopf.Registry) { r.OnResume(examples, named, kopf.Backoff(-time.Second)) }, "the backoff -1s is negative",
	},
	"an invalid mode of errors": {
		func(r *kopf.Registry) { r.OnCreate(examples, named, kopf.Errors(7)) }, "invalid mode of errors 7",
	},
}

func TestMistakesInDeclarationsAreReportedBeforeTheStart(t *testing.T) {
	t.Parallel()
	for name, test := range mistakes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, registry := gomega.NewWithT(t), kopf.NewRegistry()
			test.declare(registry)
			err := kopf.Run(t.Context(), kopf.Options{Registry: registry, Config: nowhere(t)})
			g.Expect(err).To(gomega.MatchError(gomega.MatchRegexp(`handling/declarations_test\.go:\d+: `)))
			g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring(test.complaint)))
		})
	}
}

func TestAllMistakesAreReportedTogether(t *testing.T) {
	t.Parallel()
	g, registry := gomega.NewWithT(t), kopf.NewRegistry()
	for _, mistake := range mistakes {
		mistake.declare(registry)
	}
	options := kopf.Options{Registry: registry, Config: nowhere(t)}
	options.Settings.Execution.Workers = -1
	err := kopf.Run(t.Context(), options)
	g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("settings.Execution.Workers is negative")))
	for _, mistake := range mistakes {
		g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring(mistake.complaint)))
	}
	g.Expect(strings.Count(err.Error(), "declarations_test.go:")).To(gomega.BeNumerically(">=", len(mistakes)))
}

func TestMistakesInSettingsAreReportedBeforeTheStart(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change    func(s *kopf.Settings)
		complaint string
	}{
		"a finalizer that Kubernetes rejects": {
			func(s *kopf.Settings) { s.Persistence.Finalizer = "in valid" }, `settings.Persistence.Finalizer "in valid" is not valid`,
		},
		"a prefix that is not a domain": {
			func(s *kopf.Settings) { s.Persistence.DiffBase = storage.AnnotationsDiffBase{Prefix: "in valid"} }, `settings.Persistence.DiffBase: the annotation prefix "in valid"`,
		},
		"a field that cannot hold the progress": {
			func(s *kopf.Settings) {
				s.Persistence.Progress = storage.StatusProgress{Field: object.Path{"metadata", "x"}}
			}, "settings.Persistence.Progress: the field",
		},
		"a negative backoff": {
			func(s *kopf.Settings) { s.Execution.Backoff = backoff.Constant(-1) }, "settings.Execution.Backoff: the backoff -1ns is negative",
		},
		"a negative grace period": {func(s *kopf.Settings) { s.Execution.GracePeriod = -1 }, "settings.Execution.GracePeriod is negative"},
		"a negative pause":        {func(s *kopf.Settings) { s.Queueing.ErrorDelays = []time.Duration{-1} }, "settings.Queueing.ErrorDelays has a negative pause"},
		"an empty namespace":      {func(s *kopf.Settings) { s.Scope.Namespaces = []string{""} }, "settings.Scope.Namespaces has an empty name"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := kopf.Options{Registry: kopf.NewRegistry(), Config: nowhere(t)}
			test.change(&options.Settings)
			gomega.NewWithT(t).Expect(kopf.Run(t.Context(), options)).To(gomega.MatchError(gomega.ContainSubstring(test.complaint)))
		})
	}
}

// Two selectors can select the same resource, which only the cluster reveals.
func TestConflictsOfResolvedSelectorsAreReported(t *testing.T) {
	t.Parallel()
	g, registry := gomega.NewWithT(t), kopf.NewRegistry()
	registry.OnCreate(examples, named, kopf.ID("same"))
	registry.OnCreate(kopf.Resource("kex"), succeed, kopf.ID("same"))
	options := kopf.Options{Registry: registry, Config: cluster.Config()}
	options.Settings.Scope.Namespaces = []string{cluster.Namespace(t)}
	g.Expect(kopf.Run(t.Context(), options)).To(gomega.MatchError(gomega.SatisfyAll(
		gomega.ContainSubstring("kopfexamples.v1.kopf.dev"), gomega.ContainSubstring(`the id "same" is taken by another`),
		gomega.ContainSubstring("declarations_test.go:"))))
}

func TestOneFunctionCanBeDeclaredForSeveralCauses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.OnCreate(examples, named)
	b.OnUpdate(examples, named)
	b.OnResume(examples, named)
	b.OnDelete(examples, named)
	b.OnField(examples, "spec.a", named)
	b.OnField(examples, "spec.b", named)
	b.OnCreate(noStatuses, succeed, kopf.ID("named"))
	b.start()
	b.expectHandled(b.create("one", nil))
	b.expectHandled(b.submit(testenv.NewObject("KopfNoStatus", b.namespace, "one", nil)))
}
