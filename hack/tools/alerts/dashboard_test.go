package alerts

import (
	"context"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/storage"
)

// panel is a panel of the dashboard.
type panel struct {
	ID          int
	Type        string
	Title       string
	Description string
	Targets     []struct{ Expr string }
}

func panels(t *testing.T) (all []panel) {
	t.Helper()
	text, err := os.ReadFile("../../../config/prometheus/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct{ Panels []panel }
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	var ids []int
	for _, p := range dashboard.Panels {
		if slices.Contains(ids, p.ID) {
			t.Errorf("two panels have the id %d", p.ID)
		}
		ids = append(ids, p.ID)
		if p.Type != "row" {
			all = append(all, p)
		}
	}
	return all
}

// scraped loads the metrics of a running operator, with the labels that Prometheus adds. Each
// series keeps its value for half an hour.
func scraped(t *testing.T) storage.Storage {
	t.Helper()
	text, err := os.ReadFile("testdata/scrape.prom")
	if err != nil {
		t.Fatal(err)
	}
	var series strings.Builder
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "} ")
		if !ok { // it has no labels
			name, value, ok = strings.Cut(strings.TrimSpace(line), " ")
			name += "{"
		} else {
			name += ","
		}
		if !ok {
			t.Fatalf("the line %q is no metric", line)
		}
		series.WriteString("  " + name + `namespace="ns",job="metrics",instance="a",pod="a"} ` + value + "x30\n")
	}
	return promqltest.LoadedStorage(t, "load 1m\n"+series.String())
}

// Every query of the dashboard finds metrics that an operator exposes.
func TestPanelsHaveData(t *testing.T) {
	data := scraped(t)
	t.Cleanup(func() { _ = data.Close() })
	engine := promqltest.NewTestEngineWithOpts(t, promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute})
	variables := strings.NewReplacer("$__rate_interval", "5m", "$operator", ".*", "$namespace", ".*")
	for _, p := range panels(t) {
		if p.Title == "" || p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("panel %d has no title, description, or query", p.ID)
		}
		for _, target := range p.Targets {
			query, err := engine.NewInstantQuery(context.Background(), data, nil, variables.Replace(target.Expr), time.Unix(0, 0).Add(20*time.Minute))
			if err != nil {
				t.Errorf("%s: %v", p.Title, err)
				continue
			}
			result := query.Exec(context.Background())
			if vector, err := result.Vector(); err != nil || len(vector) == 0 {
				t.Errorf("%s: %s has no data: %v", p.Title, target.Expr, err)
			}
			query.Close()
		}
	}
}

// Every metric of the alerts and of the dashboard exists in the scrape, with its labels.
func TestQueriesNameMetricsOfOperators(t *testing.T) {
	text, err := os.ReadFile("testdata/scrape.prom")
	if err != nil {
		t.Fatal(err)
	}
	var queries []string
	for _, d := range definitions(t) {
		queries = append(queries, d.Expr)
	}
	variables := strings.NewReplacer("$__rate_interval", "5m")
	for _, p := range panels(t) {
		for _, target := range p.Targets {
			queries = append(queries, variables.Replace(target.Expr))
		}
	}
	added := []string{"__name__", "namespace", "job", "instance", "pod"}
	for _, query := range queries {
		expression, err := parser.NewParser(parser.Options{}).ParseExpr(query)
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		for _, matchers := range parser.ExtractSelectors(expression) {
			name := ""
			for _, m := range matchers {
				if m.Name == "__name__" {
					name = m.Value
				}
			}
			line := regexp.MustCompile(`(?m)^` + name + `[{ ].*$`).FindString(string(text))
			if line == "" {
				t.Errorf("%s: there is no metric %s", query, name)
			}
			for _, m := range matchers {
				if !slices.Contains(added, m.Name) && !strings.Contains(line, m.Name+`="`) {
					t.Errorf("%s: %s has no label %s", query, name, m.Name)
				}
			}
		}
	}
}
