package alerts

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"sigs.k8s.io/yaml"
)

// definition is an alert as it is in the file.
type definition = rulefmt.Rule

// definitions reads the alerts. Whatever Prometheus or its operator would not accept is an error.
func definitions(t *testing.T) []definition {
	t.Helper()
	text, err := os.ReadFile("../../../config/prometheus/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rule monitoringv1.PrometheusRule
	if err := yaml.UnmarshalStrict(text, &rule); err != nil {
		t.Fatal(err)
	}
	if rule.APIVersion != "monitoring.coreos.com/v1" || rule.Kind != "PrometheusRule" {
		t.Fatalf("the file is a %s %s", rule.APIVersion, rule.Kind)
	}
	spec, err := yaml.Marshal(rule.Spec)
	if err != nil {
		t.Fatal(err)
	}
	groups, problems := rulefmt.Parse(spec, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if err := errors.Join(problems...); err != nil {
		t.Fatal(err)
	}
	if len(groups.Groups) != 1 || len(groups.Groups[0].Rules) == 0 {
		t.Fatal("the file has not one group with rules")
	}
	return groups.Groups[0].Rules
}

const (
	interval = time.Minute      // of scrapes and evaluations
	horizon  = 90 * time.Minute // of each scenario
)

// evaluation has the minutes in which the condition of an alert holds, and what the first firing says.
type evaluation struct {
	pending, firing     []int
	labels, description string
}

// evaluate evaluates an alert on the series of a scenario.
func evaluate(t *testing.T, d definition, series string) (seen evaluation) {
	t.Helper()
	expression, err := parser.NewParser(parser.Options{}).ParseExpr(d.Expr)
	if err != nil {
		t.Fatalf("%s: %v", d.Alert, err)
	}
	storage := promqltest.LoadedStorage(t, "load 1m\n"+indent(series))
	t.Cleanup(func() { _ = storage.Close() })
	engine := promqltest.NewTestEngineWithOpts(t, promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute})
	rule := rules.NewAlertingRule(d.Alert, expression, time.Duration(d.For), 0, labels.FromMap(d.Labels), labels.FromMap(d.Annotations),
		labels.EmptyLabels(), "", true, slog.New(slog.DiscardHandler))
	for minute := range int(horizon / interval) {
		at := time.Unix(0, 0).Add(time.Duration(minute) * interval)
		if _, err := rule.Eval(context.Background(), 0, at, rules.EngineQueryFunc(engine, storage), nil, 0); err != nil {
			t.Fatalf("%s: %v", d.Alert, err)
		}
		seen.add(minute, rule.ActiveAlerts())
	}
	return seen
}

// add adds the alerts of a minute.
func (e *evaluation) add(minute int, active []*rules.Alert) {
	firing := slices.DeleteFunc(slices.Clone(active), func(a *rules.Alert) bool { return a.State != rules.StateFiring })
	switch {
	case len(firing) > 0:
		if len(e.firing) == 0 {
			e.labels, e.description = firing[0].Labels.String(), firing[0].Annotations.Get("description")
		}
		e.firing = append(e.firing, minute)
	case len(active) > 0:
		e.pending = append(e.pending, minute)
	}
}

func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimSpace(text)) {
		b.WriteString("  " + strings.TrimSpace(line) + "\n")
	}
	return b.String()
}
