package health

import (
	"strings"

	dto "github.com/prometheus/client_model/go"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// series returns a function that reads the metrics of an operator: the values by
// "name label=value…", without the label of the operator. The value of a histogram is its
// sample count.
func series(operator string) func() (map[string]float64, error) {
	return func() (map[string]float64, error) {
		families, err := metrics.Registry.Gather()
		found := map[string]float64{}
		for _, family := range families {
			for _, metric := range family.GetMetric() {
				if text, ours := described(family.GetName(), metric, operator); ours {
					found[text] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + float64(metric.GetHistogram().GetSampleCount())
				}
			}
		}
		return found, err
	}
}

func described(name string, metric *dto.Metric, operator string) (text string, ours bool) {
	text = name
	for _, label := range metric.GetLabel() {
		if label.GetName() == "operator" {
			ours = label.GetValue() == operator
			continue
		}
		text += " " + label.GetName() + "=" + label.GetValue()
	}
	return text, ours
}

// sum returns the sum of all series of a metric.
func sum(operator, name string) (total float64) {
	found, _ := series(operator)()
	for text, value := range found {
		if text == name || strings.HasPrefix(text, name+" ") {
			total += value
		}
	}
	return total
}
