package metrics_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// row is a documented metric.
var row = regexp.MustCompile("(?m)^\\| `(kopf_[a-z_]+)` \\| ([a-z]+) \\|([^|]*)\\| .+ \\|$")

func TestDocumentationListsAllMetrics(t *testing.T) {
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, match := range row.FindAllStringSubmatch(string(text), -1) {
		labels := regexp.MustCompile("[a-z_]+").FindAllString(match[3], -1)
		slices.Sort(labels)
		documented = append(documented, match[1]+" "+match[2]+" "+strings.Join(labels, ","))
	}
	slices.Sort(documented)
	if got := shown(t); !slices.Equal(got, documented) {
		t.Errorf("there are\n%s\nand documented are\n%s", strings.Join(got, "\n"), strings.Join(documented, "\n"))
	}
	for _, used := range regexp.MustCompile(`kopf_[a-z_]+`).FindAllString(string(text), -1) {
		if !strings.Contains(strings.Join(documented, "\n")+"\n", used+" ") {
			t.Errorf("unknown metric %s", used)
		}
	}
}

// describing counts the registered metrics.
type describing struct {
	prometheus.Registerer
	metrics int
}

func (d *describing) Register(c prometheus.Collector) error {
	descriptions := make(chan *prometheus.Desc, 100)
	c.Describe(descriptions)
	d.metrics += len(descriptions)
	return d.Registerer.Register(c)
}

// shown returns all metrics with their types and labels.
func shown(t *testing.T) (texts []string) {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	registered := &describing{Registerer: r}
	everything(open(t, registered, "mine"))
	families, err := r.Gather()
	if err != nil || len(families) != registered.metrics {
		t.Fatalf("there are series of %d metrics, of %d: add the others to everything; %v", len(families), registered.metrics, err)
	}
	for _, family := range families {
		var labels []string
		for _, label := range family.GetMetric()[0].GetLabel() {
			if label.GetName() != "operator" {
				labels = append(labels, label.GetName())
			}
		}
		slices.Sort(labels)
		texts = append(texts, family.GetName()+" "+strings.ToLower(dto.MetricType.String(family.GetType()))+" "+strings.Join(labels, ","))
	}
	return texts
}
