package alerts

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"go.yaml.in/yaml/v3"
)

// definition is an alert as it is in the file.
type definition struct {
	Alert       string
	Expr        string
	For         model.Duration
	Labels      map[string]string
	Annotations map[string]string
}

// definitions reads the alerts. Fields that Prometheus does not know are errors.
func definitions(t *testing.T) []definition {
	t.Helper()
	file, err := os.Open("../../../config/prometheus/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var content struct {
		APIVersion, Kind string `yaml:",omitempty"`
		Metadata         map[string]any
		Spec             struct {
			Groups []struct {
				Name  string
				Rules []definition
			}
		}
	}
	var raw map[string]any
	if err := yaml.NewDecoder(file).Decode(&raw); err != nil {
		t.Fatal(err)
	}
	if raw["apiVersion"] != "monitoring.coreos.com/v1" || raw["kind"] != "PrometheusRule" {
		t.Fatalf("the file is a %v %v", raw["apiVersion"], raw["kind"])
	}
	delete(raw, "apiVersion")
	delete(raw, "kind")
	text, err := yaml.Marshal(raw)
	if err != nil {
		t.Fatal(err)
	}
	strict := yaml.NewDecoder(strings.NewReader(string(text)))
	strict.KnownFields(true)
	if err := strict.Decode(&content); err != nil {
		t.Fatal(err)
	}
	if len(content.Spec.Groups) != 1 || len(content.Spec.Groups[0].Rules) == 0 {
		t.Fatal("the file has not one group with rules")
	}
	return content.Spec.Groups[0].Rules
}

const (
	interval = time.Minute      // of scrapes and evaluations
	horizon  = 90 * time.Minute // of each scenario
)

// firings evaluates an alert on the series of a scenario, and returns the minutes in which it
// fires, with the labels and the description of the first firing.
func firings(t *testing.T, d definition, series string) (minutes []int, labelsOf, description string) {
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
		firing := slices.DeleteFunc(rule.ActiveAlerts(), func(a *rules.Alert) bool { return a.State != rules.StateFiring })
		if len(firing) == 0 {
			continue
		}
		if len(minutes) == 0 {
			labelsOf, description = firing[0].Labels.String(), firing[0].Annotations.Get("description")
		}
		minutes = append(minutes, minute)
	}
	return minutes, labelsOf, description
}

func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimSpace(text)) {
		b.WriteString("  " + strings.TrimSpace(line) + "\n")
	}
	return b.String()
}
