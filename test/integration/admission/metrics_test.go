package admission

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// counted returns the admission metrics of an operator, by name and labels.
func counted(operator string) func() (map[string]float64, error) {
	return func() (map[string]float64, error) {
		families, err := metrics.Registry.Gather()
		found := map[string]float64{}
		for _, family := range families {
			for _, metric := range family.GetMetric() {
				text, ours := family.GetName(), false
				for _, label := range metric.GetLabel() {
					if label.GetName() == "operator" {
						ours = label.GetValue() == operator
						continue
					}
					text += " " + label.GetValue()
				}
				if ours && (strings.HasPrefix(text, "kopf_admission") || strings.HasPrefix(text, "kopf_cert")) {
					found[text] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + float64(metric.GetHistogram().GetSampleCount())
				}
			}
		}
		return found, err
	}
}

func TestMetricsCountReviewsByOutcome(t *testing.T) {
	t.Parallel()
	g, r, namespace := gomega.NewWithT(t), kopf.NewRegistry(), cluster.Namespace(t)
	r.OnValidate(examples, no, kopf.ID("no"), kopf.Labels(map[string]kopf.Matcher{"ask": kopf.Equal("no")}))
	r.OnValidate(examples, func(context.Context, *kopf.Admission) error { return errors.New("broken") }, kopf.ID("broken"), kopf.Labels(map[string]kopf.Matcher{"ask": kopf.Equal("broken")}))
	r.OnMutate(examples, func(context.Context, *kopf.Admission) error { return nil }, kopf.ID("yes"), kopf.Labels(map[string]kopf.Matcher{"ask": kopf.Present()}))
	operators.Start(t, cluster.Config(), namespace, r, managed(t, namespace), func(o *kopf.Options) { o.Settings.Name = t.Name() })
	now := counted(t.Name())
	g.Eventually(now).Should(gomega.And(
		gomega.HaveKeyWithValue("kopf_admission_reviews_total no validate rejected", 0.0),
		gomega.HaveKeyWithValue("kopf_admission_reviews_total broken validate failed", 0.0),
		gomega.HaveKeyWithValue("kopf_admission_errors_total 503", gomega.BeNumerically(">=", 0)),
		gomega.HaveKeyWithValue("kopf_certificate_expiry_timestamp_seconds", gomega.BeNumerically(">", time.Now().Unix()))))
	yes := testenv.NewObject("KopfExample", namespace, "one", nil) // an API server learns of the mutations after the validations, or before
	yes.SetLabels(map[string]string{"ask": "yes"})
	g.Eventually(func() (map[string]float64, error) {
		if err := dryRun(t, yes)(); err != nil {
			return nil, err
		}
		return now()
	}).Should(gomega.HaveKeyWithValue("kopf_admission_reviews_total yes mutate admitted", gomega.BeNumerically(">", 0)))
	for _, ask := range []string{"no", "broken"} {
		object := testenv.NewObject("KopfExample", namespace, "one", nil)
		object.SetLabels(map[string]string{"ask": ask})
		g.Eventually(dryRun(t, object)).Should(gomega.MatchError(gomega.ContainSubstring(map[string]string{"no": "no one", "broken": "broken"}[ask])))
	}
	g.Eventually(now).Should(gomega.And(
		gomega.HaveKeyWithValue("kopf_admission_reviews_total no validate rejected", 1.0),
		gomega.HaveKeyWithValue("kopf_admission_reviews_total broken validate failed", 1.0),
		gomega.HaveKeyWithValue("kopf_admission_reviews_total yes mutate admitted", gomega.BeNumerically(">", 1)),
		gomega.HaveKeyWithValue("kopf_admission_duration_seconds no validate", 1.0)))
}
