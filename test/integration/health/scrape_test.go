package health

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/model/rollout"
	"github.com/kopf-go/kopf/pkg/webhook/servers"
	"github.com/kopf-go/kopf/test/operators"
	"github.com/kopf-go/kopf/test/testenv"
)

// scrape has the metrics of a running operator, for the tests of the alerts and the dashboard.
const scrape = "../../../hack/tools/alerts/testdata/scrape.prom"

// The alerts and the dashboard are tested with metrics that an operator exposes now. If this
// fails, run it with KOPF_UPDATE_GOLDEN=1.
func TestAlertsAreTestedWithCurrentMetrics(t *testing.T) {
	g, registry, namespace := gomega.NewWithT(t), kopf.NewRegistry(), cluster.Namespace(t)
	former := kopf.NewRegistry()
	former.OnCreate(examples, succeed, kopf.ID("revised"))
	first := operators.Start(t, cluster.Config(), namespace, former)
	g.Expect(cluster.Client().Create(t.Context(), testenv.NewObject("KopfExample", namespace, "object-zero", nil))).To(gomega.Succeed())
	g.Eventually(cluster.Current(testenv.NewObject("KopfExample", namespace, "object-zero", nil))).Should(
		testenv.HaveAnnotation("kopf.zalando.org/last-handled-configuration", gomega.Not(gomega.BeEmpty())))
	first.Stop()
	suspended := testenv.NewObject("KopfExample", namespace, "object-two", nil)
	suspended.SetAnnotations(map[string]string{"kopf.zalando.org/request-suspend": "forever"})
	g.Expect(cluster.Client().Create(t.Context(), suspended)).To(gomega.Succeed())

	calls := declareAll(registry)
	registry.OnCreate(examples, succeed, kopf.ID("revised"), kopf.Revision("2"), kopf.Rollout(rollout.First(5)))
	registry.OnValidate(examples, func(context.Context, *kopf.Admission) error { return nil }, kopf.ID("check"))
	for _, versions := range [][2]string{{"v1alpha1", "v1beta1"}, {"v1beta1", "v1alpha1"}, {"v1beta1", "v1"}, {"v1", "v1beta1"}} {
		registry.OnConvert(kopf.Resource("kopf.dev", "sites"), versions[0], versions[1], func(context.Context, *kopf.Conversion) error { return nil })
	}
	address, name := testenv.FreeAddress(t), "scraped"
	operators.Start(t, cluster.Config(), namespace, registry, func(o *kopf.Options) {
		o.Settings.Metrics.Address, o.Settings.Name = address, name
		o.Settings.Replicas.Shards, o.Settings.Replicas.LeaseNamespace = 4, namespace
		o.Settings.Admission.Server = servers.Server{Port: testenv.FreePort(t), Secret: namespace + "/webhooks"}
		o.Settings.Admission.Managed = namespace + ".kopf.dev"
	})
	live(t, g, namespace, "object-three", func() { g.Eventually(calls.Load).Should(gomega.BeNumerically(">=", 2)) })
	for _, metric := range []string{"kopf_events_total", "kopf_objects_held", "kopf_rollout_objects", "kopf_shard_move_duration_seconds", "kopf_certificate_expiry_timestamp_seconds"} {
		g.Eventually(func() float64 { return sum(name, metric) }).Should(gomega.BeNumerically(">", 0), metric)
	}
	g.Eventually(series(name)).Should(gomega.HaveKey(gomega.HavePrefix("kopf_conversions_total ")))
	answer := asking(address, "/metrics")()
	current := ours(answer.Body, name)
	if os.Getenv("KOPF_UPDATE_GOLDEN") != "" {
		g.Expect(os.WriteFile(scrape, current, 0o644)).To(gomega.Succeed())
	}
	recorded, err := os.ReadFile(scrape)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(namesAndLabels(current)).To(gomega.Equal(namesAndLabels(recorded)), "the recorded metrics differ: run this with KOPF_UPDATE_GOLDEN=1")
}

// ours returns the lines about the operator, and those of the process that the dashboard shows.
func ours(scraped, operator string) []byte {
	var kept bytes.Buffer
	process := regexp.MustCompile(`^(process_resident_memory_bytes|process_cpu_seconds_total|go_goroutines|rest_client_requests_total)\b`)
	for line := range strings.Lines(scraped) {
		if strings.Contains(line, `operator="`+operator+`"`) || process.MatchString(line) {
			kept.WriteString(regexp.MustCompile(`host="[^"]*"`).ReplaceAllString(line, `host="kubernetes"`))
		}
	}
	return kept.Bytes()
}

// namesAndLabels returns the metrics of the operator with the names of their labels.
func namesAndLabels(lines []byte) []string {
	var all []string
	value := regexp.MustCompile(`="(?:[^"\\]|\\.)*"`)
	for line := range strings.Lines(string(lines)) {
		if series, _, ok := strings.Cut(line, "} "); ok && strings.HasPrefix(line, "kopf_") {
			all = append(all, value.ReplaceAllString(series, "")+"}")
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
