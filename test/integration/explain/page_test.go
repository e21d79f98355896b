package explain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/cli/inspect"
	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/peering"
	"github.com/kopf-go/kopf/test/testenv"
)

// pages are the situations of docs/nothing-happens.md, by the marks before their listings. Each
// returns what the command says about the object "one".
var pages = map[string]func(s *scene) string{
	"paused":    paused,
	"scope":     outsideScope,
	"kind":      withoutHandlers,
	"label":     anotherLabel,
	"function":  rejectedByFunction,
	"waiting":   waitingForARetry,
	"suspended": suspended,
	"handled":   handledAlready,
	"rollout":   stoppedRollout,
	"drift":     acceptedDrift,
	"unknown":   unknown,
}

// marked matches a listing of the page.
var marked = regexp.MustCompile("(?s)<!-- situation: (\\w+) -->\n\n```console\n\\$ [^\n]*\n(.*?)```\n")

// TestThePageShowsRealAnswers compares the listings with the answers. A line of dots stands for
// lines that are left out.
func TestThePageShowsRealAnswers(t *testing.T) {
	text, err := os.ReadFile("../../../docs/nothing-happens.md")
	if err != nil {
		t.Fatal(err)
	}
	listings := map[string]string{}
	for _, found := range marked.FindAllStringSubmatch(string(text), -1) {
		listings[found[1]] = found[2]
	}
	if len(listings) != len(pages) {
		t.Errorf("the page has %d listings of %d situations", len(listings), len(pages))
	}
	for name, situation := range pages {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			got := neutral(s, situation(s))
			if missing := missingLine(neutral(s, listings[name]), got); missing != "" || listings[name] == "" {
				t.Errorf("the page has the line %q, or is incomplete; got\n%s", missing, got)
			}
		})
	}
}

var changing = map[*regexp.Regexp]string{
	regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`): "TIME",
	regexp.MustCompile(`\(in [0-9hms]+\)`):                "(in SOME TIME)",
	regexp.MustCompile(`\S+\.go:\d+`):                     "PLACE",
}

// neutral replaces what differs from run to run.
func neutral(s *scene, text string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, s.namespace, "default"), "NAMESPACE", "default")
	for pattern, instead := range changing {
		text = pattern.ReplaceAllString(text, instead)
	}
	return text
}

// missingLine returns the first line of a listing that is not where it should be.
func missingLine(listing, got string) string {
	lines, skips := strings.Split(got, "\n"), false
	for want := range strings.Lines(strings.TrimSpace(listing)) {
		want = strings.TrimRight(want, "\n")
		if strings.TrimSpace(want) == "…" {
			skips = true
			continue
		}
		i := slices.Index(lines, want)
		if i < 0 || i > 0 && !skips {
			return want
		}
		lines, skips = lines[i+1:], false
	}
	return ""
}

func create(context.Context, *kopf.Change) error { return nil }

func paused(s *scene) string {
	s.settings.Peering.Name = "default"
	s.OnCreate(examples, create, kopf.ID("createFn"))
	s.create("one")
	s.Expect(cluster.Client().Create(s.t.Context(), testenv.NewObject("KopfPeering", s.namespace, "default", nil))).To(gomega.Succeed())
	_, err := peering.Freeze(s.t.Context(), cluster.Config(), peering.Target{Name: "default", Namespace: s.namespace}, peering.FreezeOptions{Identity: "jane@laptop", Priority: 100, Lifetime: time.Hour})
	s.Expect(err).NotTo(gomega.HaveOccurred())
	return s.explain("one")
}

func outsideScope(s *scene) string {
	s.settings.Scope.Namespaces = []string{"team-*"}
	s.OnCreate(examples, create, kopf.ID("createFn"))
	s.create("one")
	return s.explain("one")
}

func withoutHandlers(s *scene) string {
	s.OnCreate(examples, create, kopf.ID("createFn"))
	_, err := s.connect().Explain(s.t.Context(), inspect.Target{Kind: "deployment", Namespace: s.namespace, Name: "one"})
	s.Expect(err).To(gomega.HaveOccurred())
	return "my-operator: " + err.Error()
}

func anotherLabel(s *scene) string {
	s.OnCreate(examples, create, kopf.ID("createFn"), kopf.Labels(map[string]kopf.Matcher{"app": kopf.Equal("db")}))
	obj := s.create("one")
	s.patch(obj, `{"metadata":{"labels":{"app":"web"}}}`)
	return s.explain("one")
}

func rejectedByFunction(s *scene) string {
	isProduction := func(a kopf.Arguments) bool { return a.Labels()["stage"] == "production" }
	s.OnCreate(examples, create, kopf.ID("createFn"), kopf.When(isProduction))
	s.create("one")
	return s.explain("one")
}

func waitingForARetry(s *scene) string {
	s.OnCreate(examples, func(context.Context, *kopf.Change) error {
		return kopf.Temporary(errors.New("the disk is not ready"), time.Hour)
	}, kopf.ID("createFn"), kopf.Retries(5))
	s.start()
	s.create("one")
	s.says("one", "waits until")
	return s.explain("one")
}

func suspended(s *scene) string {
	s.OnCreate(examples, create, kopf.ID("createFn"))
	obj := s.create("one")
	s.patch(obj, fmt.Sprintf(`{"metadata":{"annotations":{"kopf.zalando.org/request-suspend":%q}}}`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339)))
	return s.explain("one")
}

func handledAlready(s *scene) string {
	s.OnCreate(examples, func(context.Context, *kopf.Change) error { return kopf.Permanent(errors.New("no such size")) }, kopf.ID("createFn"))
	s.OnUpdate(examples, create, kopf.ID("resize"), kopf.Field("spec.size"))
	s.start()
	s.isHandled(s.create("one"))
	return s.explain("one")
}

func stoppedRollout(s *scene) string {
	render := func(_ context.Context, c *kopf.Change) error {
		if c.Reason() == kopf.ReasonUpdate {
			return kopf.Permanent(errors.New("spec.page must be set"))
		}
		return nil
	}
	s.OnCreate(examples, render, kopf.ID("render"), kopf.Revision("1"))
	former := s.start()
	for _, name := range []string{"one", "a", "b"} {
		s.isHandled(s.create(name))
	}
	former.Stop()
	s.Registry = kopf.NewRegistry()
	s.settings.Scope.Namespaces = []string{s.namespace}
	s.OnCreate(examples, render, kopf.ID("render"), kopf.Revision("2"), kopf.Rollout(kopf.First(1)))
	s.start()
	s.says("one", "which is stopped")
	return s.explain("one")
}

func acceptedDrift(s *scene) string {
	s.settings.Name = "shops.example.com"
	s.Ensure(examples, func(_ context.Context, c *kopf.Change) ([]client.Object, error) {
		return []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: c.Name(), Namespace: c.Namespace()}, Data: map[string]string{"color": "red"}}}, nil
	}, kopf.ID("shop"))
	s.OnDrift(examples, func(context.Context, *kopf.Drift) (kopf.Resolution, error) { return kopf.Accept(), nil }, kopf.ID("painted"))
	s.start()
	s.create("one")
	s.says("one", "(shop) is ready")
	s.patch(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: s.namespace}}, `{"data":{"color":"blue"}}`)
	s.says("one", "accepted")
	return s.explain("one")
}

func unknown(s *scene) string {
	prices := kopf.NewIndex(s.Registry, examples, func(context.Context, *kopf.Indexed) (map[string]string, error) { return nil, nil }, kopf.ID("prices"))
	s.OnCreate(examples, create, kopf.ID("createFn"), kopf.When(func(a kopf.Arguments) bool { return prices.Has(a.Name()) }))
	s.create("one")
	return s.explain("one")
}
