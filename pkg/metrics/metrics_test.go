package metrics_test

import (
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kopf-go/kopf/pkg/metrics"
	"github.com/kopf-go/kopf/pkg/shards"
)

func create(t testing.TB, r prometheus.Registerer, operator string) *metrics.Metrics {
	t.Helper()
	m, err := metrics.New(r, operator)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// open returns the metrics of a running operator.
func open(t testing.TB, r prometheus.Registerer, operator string) *metrics.Metrics {
	t.Helper()
	m := create(t, r, operator)
	if err := m.Open(); err != nil {
		t.Fatal(err)
	}
	return m
}

// everything creates one of each series.
func everything(m *metrics.Metrics) {
	m.Attempt(metrics.Handler{Resource: "kex", Kind: "create", ID: "fn"}, metrics.Succeeded, true, 70*time.Millisecond)
	m.Write("kex", metrics.Progress, metrics.Written)
	m.Error("kex")
	m.Restart("kex", metrics.Interrupted)
	m.Review("validate", "check", metrics.Denied, 70*time.Millisecond)
	m.Refusal(404)
	m.ChildWrite("kex", "fn", metrics.Restored)
	m.Conversion("kex", "v1alpha1", "v1", true, time.Millisecond)
	m.ShardMove(metrics.Drain, time.Second)
	m.Observe(func() metrics.State {
		return metrics.State{
			Ready: true, Leading: true, Queue: metrics.Queue{Depth: 3, Oldest: 1500 * time.Millisecond, Busy: 1, Workers: 5, Awaited: 6},
			Calls:      metrics.Calls{Running: 8, Waiting: 9, Longest: 2500 * time.Millisecond, Abandoned: 10},
			Watches:    []metrics.Watches{{Resource: "kex", Alive: 2, Failing: 1}},
			Background: []metrics.Background{{Kind: "daemon", Waiting: 1, Running: 4}, {Kind: "timer", Waiting: 7}},
			Held:       []metrics.Held{{Resource: "kex", Reason: metrics.Misfit, Objects: 2}},
			Rollouts:   []metrics.Rollout{{Resource: "kex", Handler: "fn", Revision: "2", Waiting: 4, Running: 3, Done: 2, Failed: 1}},
			Startup:    6 * time.Second,
			Objects:    []metrics.Objects{{Resource: "kex", Queued: 1, Handling: 2, Delayed: 3, Rest: 4, Contended: 5}},
			Indices:    []metrics.Index{{Handler: "names", Keys: 12}},
			Children:   []metrics.Children{{Resource: "kex", Handler: "fn", Ready: 4, Progressing: 3, Failed: 2, Contended: 1}},
			Events:     metrics.Events{Posted: 5, Suppressed: 6, Dropped: 7, Failed: 8},
			Shards: &metrics.Shards{
				Number: 16, Replicas: 3, Joined: true, Held: shards.SetOf(0, 1, 2, 3), Draining: shards.SetOf(4, 5), Overdue: shards.SetOf(6), Lost: shards.SetOf(7),
				Assigned: 5, Unheld: 2, Longest: 2500 * time.Millisecond, Taken: 9, Given: 3, Losses: 1, LeaseWrites: 100,
				Objects: map[int]int{3: 12}, Streams: []metrics.SharedStreams{{Resource: "kex", ByServer: 1, Here: 2, Unshared: 3}},
			},
			Requests: &metrics.Requests{Window: 20, InFlight: 3, Waiting: 4, Closed: map[string]int64{"refused": 1}},

			CertificateExpiry: time.Unix(1700000000, 0),
		}
	})
}

// lines are the series of an operator as "name{label=value,…} value".
func lines(t testing.TB, r prometheus.Gatherer, operator string) (texts []string) {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			var labels []string
			ours := false
			for _, label := range metric.GetLabel() {
				if label.GetName() == "operator" {
					ours = label.GetValue() == operator
					continue
				}
				labels = append(labels, label.GetName()+"="+label.GetValue())
			}
			if !ours {
				continue
			}
			value := metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
			if h := metric.GetHistogram(); h != nil {
				value = float64(h.GetSampleCount())
			}
			texts = append(texts, fmt.Sprintf("%s{%s} %g", family.GetName(), strings.Join(labels, ","), value))
		}
	}
	slices.Sort(texts)
	return texts
}

func TestExposedSeries(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	everything(open(t, r, "mine"))
	want := []string{
		"kopf_admission_duration_seconds{handler=check,kind=validate} 1",
		"kopf_admission_errors_total{code=404} 1",
		"kopf_admission_reviews_total{handler=check,kind=validate,outcome=rejected} 1",
		"kopf_api_requests_in_flight{} 3",
		"kopf_api_requests_waiting{} 4",
		"kopf_api_requests_window_closed_total{reason=refused} 1",
		"kopf_api_requests_window{} 20",
		"kopf_background_handlers{kind=daemon,state=abandoned} 0",
		"kopf_background_handlers{kind=daemon,state=running} 4",
		"kopf_background_handlers{kind=daemon,state=waiting} 1",
		"kopf_background_handlers{kind=timer,state=abandoned} 0",
		"kopf_background_handlers{kind=timer,state=running} 0",
		"kopf_background_handlers{kind=timer,state=waiting} 7",
		"kopf_build_info{goversion=" + runtime.Version() + ",library=" + ownVersion() + ",version=" + ownVersion() + "} 1",
		"kopf_calls_abandoned{} 10",
		"kopf_calls_longest_seconds{} 2.5",
		"kopf_calls_running{} 8",
		"kopf_calls_waiting{} 9",
		"kopf_certificate_expiry_timestamp_seconds{} 1.7e+09",
		"kopf_child_writes_total{handler=fn,operation=restored,resource=kex} 1",
		"kopf_children_contended{handler=fn,resource=kex} 1",
		"kopf_children{handler=fn,resource=kex,state=failed} 2",
		"kopf_children{handler=fn,resource=kex,state=progressing} 3",
		"kopf_children{handler=fn,resource=kex,state=ready} 4",
		"kopf_conversion_duration_seconds{resource=kex} 1",
		"kopf_conversions_total{from=v1alpha1,outcome=converted,resource=kex,to=v1} 1",
		"kopf_events_total{outcome=dropped} 7",
		"kopf_events_total{outcome=failed} 8",
		"kopf_events_total{outcome=posted} 5",
		"kopf_events_total{outcome=suppressed} 6",
		"kopf_handler_attempts_total{handler=fn,kind=create,outcome=succeeded,resource=kex} 1",
		"kopf_handler_duration_seconds{handler=fn,kind=create,resource=kex} 1",
		"kopf_index_keys{handler=names} 12",
		"kopf_leading{} 1",
		"kopf_object_errors_total{resource=kex} 1",
		"kopf_object_writes_total{answer=written,reason=progress,resource=kex} 1",
		"kopf_objects_contended{resource=kex} 5",
		"kopf_objects_held{reason=misfit,resource=kex} 2",
		"kopf_objects{resource=kex,state=delayed} 3",
		"kopf_objects{resource=kex,state=handling} 2",
		"kopf_objects{resource=kex,state=queued} 1",
		"kopf_objects{resource=kex,state=rest} 4",
		"kopf_paused{} 0",
		"kopf_queue_depth{} 3",
		"kopf_queue_oldest_seconds{} 1.5",
		"kopf_ready{} 1",
		"kopf_rollout_objects{handler=fn,resource=kex,revision=2,state=done} 2",
		"kopf_rollout_objects{handler=fn,resource=kex,revision=2,state=failed} 1",
		"kopf_rollout_objects{handler=fn,resource=kex,revision=2,state=running} 3",
		"kopf_rollout_objects{handler=fn,resource=kex,revision=2,state=waiting} 4",
		"kopf_shard_lease_writes_total{} 100",
		"kopf_shard_move_duration_seconds{step=drain} 1",
		"kopf_shard_moves_total{move=given} 3",
		"kopf_shard_moves_total{move=lost} 1",
		"kopf_shard_moves_total{move=taken} 9",
		"kopf_shard_objects{shard=3} 12",
		"kopf_shard_streams{filter=none,resource=kex} 3",
		"kopf_shard_streams{filter=operator,resource=kex} 2",
		"kopf_shard_streams{filter=server,resource=kex} 1",
		"kopf_shards_assigned{} 5",
		"kopf_shards_configured{} 16",
		"kopf_shards_joined{} 1",
		"kopf_shards_replicas{} 3",
		"kopf_shards_unheld_seconds{} 2.5",
		"kopf_shards_unheld{} 2",
		"kopf_shards{state=draining} 2",
		"kopf_shards{state=held} 4",
		"kopf_shards{state=lost} 1",
		"kopf_shards{state=overdue} 1",
		"kopf_startup_seconds{} 6",
		"kopf_watch_restarts_total{reason=interrupted,resource=kex} 1",
		"kopf_watches{resource=kex,state=alive} 2",
		"kopf_watches{resource=kex,state=failing} 1",
		"kopf_watches{resource=kex,state=listing} 0",
		"kopf_workers_awaited{} 6",
		"kopf_workers_busy{} 1",
		"kopf_workers{} 5",
	}
	if got := lines(t, r, "mine"); !slices.Equal(got, want) {
		t.Errorf("got:\n%s", strings.Join(got, "\n"))
	}
}

func TestNothingIsCountedWithoutMetrics(t *testing.T) {
	var m *metrics.Metrics
	everything(m)
	r := prometheus.NewPedanticRegistry()
	m = create(t, r, "mine") // nor before they are opened
	everything(m)
	if got := lines(t, r, "mine"); len(got) > 0 {
		t.Errorf("there is %v", got)
	}
}

func TestOperatorsOfOneProcessShareTheRegistry(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	first, other, second := open(t, r, "mine"), open(t, r, "other"), open(t, r, "mine")
	everything(first)
	everything(other)
	everything(second)
	for _, name := range []string{"other", "mine-2"} {
		if got, want := lines(t, r, name), lines(t, r, "mine"); !slices.Equal(got, want) {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestCloseRemovesAllSeries(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	first, second := open(t, r, "first"), open(t, r, "second")
	everything(first)
	everything(second)
	kept := lines(t, r, "second")
	first.Close()
	everything(first) // too late
	if got := lines(t, r, "first"); len(got) > 0 {
		t.Errorf("there is %v", got)
	}
	if got := lines(t, r, "second"); !slices.Equal(got, kept) {
		t.Errorf("of the other one, there is %v", got)
	}
	everything(open(t, r, "first"))
	if got := lines(t, r, "first"); len(got) != len(kept) {
		t.Errorf("the name is not free: %v", got)
	}
}

func TestNewFailsForTakenNames(t *testing.T) {
	r := prometheus.NewRegistry()
	r.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "kopf_object_errors_total", Help: "Of another program."}))
	if _, err := metrics.New(r, "mine"); err == nil || !strings.Contains(err.Error(), "kopf_object_errors_total") {
		t.Errorf("got %v", err)
	}
}

// ownVersion returns the version of this module, which is also that of the tests' program.
func ownVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

// A rate needs two values, so the first failure must not be the first value of its series.
func TestSeriesBeginWithZero(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	m := open(t, r, "mine")
	fn := metrics.Handler{Resource: "kex", Kind: "create", ID: "fn"}
	m.Attempt(fn, metrics.Failed, true, 0)
	m.Watching("kex", true, fn)
	m.Watching("pods", false)
	m.Reviewing("validate", "check")
	zeros := map[string]int{}
	for _, line := range lines(t, r, "mine") {
		name, rest, _ := strings.Cut(line, "{")
		if strings.HasSuffix(rest, "} 0") {
			zeros[name]++
		}
	}
	want := map[string]int{
		"kopf_handler_attempts_total": 4, // of five outcomes; the fifth one keeps its value
		"kopf_object_writes_total":    7 * 4, "kopf_object_errors_total": 2, "kopf_watch_restarts_total": 6,
		"kopf_admission_reviews_total": 3, "kopf_admission_errors_total": 3,
	}
	if !maps.Equal(zeros, want) {
		t.Errorf("got %v", zeros)
	}
	m.Close()
	if got := lines(t, r, "mine"); len(got) > 0 {
		t.Errorf("after the end, there is %v", got)
	}
}

// An id can be any string.
func TestInvalidLabelsAreNotCounted(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	open(t, r, "mine").Attempt(metrics.Handler{Resource: "kex", Kind: "create", ID: "\xff"}, metrics.Failed, true, 0)
	if got := lines(t, r, "mine"); len(got) > 0 {
		t.Errorf("got %v", got)
	}
}

func TestCountingAllocatesNothing(t *testing.T) {
	m := open(t, prometheus.NewRegistry(), "mine")
	h := metrics.Handler{Resource: "kex", Kind: "create", ID: "fn"}
	allocations := testing.AllocsPerRun(100, func() {
		m.Attempt(h, metrics.Succeeded, true, time.Second)
		m.Write("kex", metrics.Progress, metrics.Written)
	})
	if allocations > 0 {
		t.Errorf("%g allocations", allocations)
	}
}

func BenchmarkAttempt(b *testing.B) {
	m := open(b, prometheus.NewRegistry(), "mine")
	h := metrics.Handler{Resource: "kex", Kind: "create", ID: "fn"}
	for b.Loop() {
		m.Attempt(h, metrics.Succeeded, true, time.Second)
	}
}
