package settings_test

import (
	"context"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kopf-go/kopf/pkg/backoff"
	"github.com/kopf-go/kopf/pkg/lifecycles"

	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/storage"
)

// All defaults that the documentation promises, in figures. Who changes one
// changes the behaviour of operators that run: think twice, and announce it.
func TestDefaults(t *testing.T) {
	s := settings.Default()
	tests := map[string]struct{ got, want any }{
		"all namespaces are watched":         {len(s.Scope.Namespaces), 0},
		"the finalizer is Kopf's":            {s.Persistence.Finalizer, "kopf.zalando.org/KopfFinalizerMarker"},
		"the handled state is annotated":     {s.Persistence.DiffBase, storage.AnnotationsDiffBase{}},
		"progress is smart":                  {s.Persistence.Progress, storage.SmartProgress{}},
		"own writes are awaited":             {s.Persistence.ConsistencyTimeout, 5 * time.Second},
		"errors are retried in a minute":     {s.Execution.Backoff, backoff.Constant(time.Minute)},
		"who does not stop is named":         {s.Background.CancellationPolling, time.Minute},
		"done is done after a second":        {s.Execution.CheckpointInterval, time.Second},
		"a hundred objects at once":          {s.Execution.Workers, 100},
		"handlers may finish":                {s.Execution.GracePeriod, 20 * time.Second},
		"stopping has an end":                {s.Execution.ShutdownTimeout, 10 * time.Minute},
		"a hundred events wait":              {s.Queueing.EventBacklog, 100},
		"the first pause after an error":     {s.Queueing.ErrorDelays[0], time.Second},
		"the pauses after errors":            {s.Queueing.ErrorDelays, seconds(1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377)},
		"events are posted":                  {s.Posting.Disabled, false},
		"log lines are events":               {s.Posting.WithoutLogs, false},
		"informative events are posted":      {s.Posting.Level, slog.LevelInfo},
		"events are from Kopf":               {s.Posting.Component, "kopf"},
		"events of one object at once":       {s.Posting.Burst, 25},
		"and one every five minutes":         {s.Posting.Refill, 5 * time.Minute},
		"the cluster is looked at":           {s.Scanning.Disabled, false},
		"missing resources are looked for":   {s.Scanning.Interval, time.Minute},
		"requests a second":                  {s.Networking.QPS, float32(200)},
		"requests at once":                   {s.Networking.Burst, 400},
		"a request has half a minute":        {s.Networking.RequestTimeout, 30 * time.Second},
		"a connection has half a minute":     {s.Networking.ConnectTimeout, 30 * time.Second},
		"a hiccup is waited for":             {s.Networking.ErrorBackoffs, []time.Duration{500 * time.Millisecond, time.Second}},
		"a watch lasts some minutes":         {s.Watching.ServerTimeout, 5 * time.Minute},
		"a silent watch is begun again":      {s.Watching.InactivityTimeout, 3 * time.Minute},
		"a watch is begun again at once":     {s.Watching.ReconnectBackoff, 100 * time.Millisecond},
		"a healed server is noticed":         {s.Watching.ReconnectLimit, 30 * time.Second},
		"the pauses of a dispute":            {s.Queueing.ContentionDelays, seconds(1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233)},
		"the peering is the default one":     {s.Peering.Name, "default"},
		"peers are not needed":               {s.Peering.Mandatory, false},
		"peers are heeded":                   {s.Peering.Standalone, false},
		"all peers are equal":                {s.Peering.Priority, 0},
		"a peer is believed a minute":        {s.Peering.Lifetime, time.Minute},
		"signs of life are logged":           {s.Peering.Stealth, false},
		"an operator is alone":               {s.Replicas.LeaderElection, false},
		"the lease has a name":               {s.Replicas.LeaseName, "kopf-operator"},
		"a lease is good for 15 seconds":     {s.Replicas.LeaseDuration, 15 * time.Second},
		"a leader gives up before":           {s.Replicas.RenewDeadline, 10 * time.Second},
		"a lease is asked for":               {s.Replicas.RetryPeriod, 2 * time.Second},
		"nobody can ask for the health":      {s.Health.Address, ""},
		"the path of the probes":             {s.Health.LivenessPath, "/healthz"},
		"the path of the watches":            {s.Health.ReadinessPath, "/readyz"},
		"a probe is good for 10 seconds":     {s.Health.ProbeCacheTTL, 10 * time.Second},
		"a queue that stands still is seen":  {s.Health.MaxQueueAge, 5 * time.Minute},
		"the manager has a check of its own": {s.Health.ManagerCheck, ""},
		"nobody can read the metrics":        {s.Metrics.Address, ""},
		"an operator has no name":            {s.Name, ""},
		"its metrics have one":               {settings.DefaultName, "kopf"},
		"metrics are plain":                  {s.Metrics.Secure, false},
		"nothing receives admissions":        {s.Admission.Server, settings.AdmissionServer(nil)},
		"configurations are left alone":      {s.Admission.Managed, ""},
		"its own things are not admitted":    {s.Admission.IncludeOwnNamespace, false},
		"manifests are logged only":          {s.Admission.ManifestFile, ""},
		"an API server waits 30 seconds":     {s.Admission.Timeout, 30 * time.Second},
		"the default is complete and stable": {s.WithDefaults().Execution.Workers, s.Execution.Workers},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if !reflect.DeepEqual(test.got, test.want) {
				t.Errorf("got %v, want %v", test.got, test.want)
			}
		})
	}
	if err := s.Validate(); err != nil {
		t.Errorf("the default is refused: %v", err)
	}
}

func TestTheDefaultLifecycleIsAllAtOnce(t *testing.T) {
	due := []lifecycles.Due{{Retries: 2}, {Retries: 1}}
	if got := settings.Default().Execution.Lifecycle(due); !slices.Equal(got, due) {
		t.Errorf("got %v", got)
	}
}

// A setting that the list above forgets shows up here.
func TestEverySettingHasADefault(t *testing.T) {
	zeroByDesign := []string{
		"Scope.Namespaces", "Scanning.Disabled", "Peering.Mandatory", "Peering.Standalone", "Peering.Priority", "Peering.Stealth",
		"Posting.Disabled", "Posting.Level", "Posting.WithoutLogs", "Posting.Instance",
		"Admission.Server", "Admission.Managed", "Admission.IncludeOwnNamespace", "Admission.ManifestFile",
		"Replicas.LeaderElection", "Replicas.LeaseNamespace", "Health.Address", "Health.ManagerCheck", "Metrics.Address", "Metrics.Secure",
	}
	of := reflect.ValueOf(settings.Default())
	for i := 1; i < of.NumField(); i++ { // after Name
		group := of.Type().Field(i).Name
		for j := range of.Field(i).NumField() {
			name := group + "." + of.Field(i).Type().Field(j).Name
			if of.Field(i).Field(j).IsZero() != slices.Contains(zeroByDesign, name) {
				t.Errorf("settings.%s is %v by default", name, of.Field(i).Field(j))
			}
		}
	}
}

func TestWhatIsSetIsKept(t *testing.T) {
	given := settings.Settings{
		Name:        "d",
		Scope:       settings.Scope{Namespaces: []string{"a", "b"}},
		Scanning:    settings.Scanning{Disabled: true, Interval: 9},
		Persistence: settings.Persistence{Finalizer: "a.dev/f", Progress: storage.StatusProgress{}, ConsistencyTimeout: 1, DiffBase: storage.StatusDiffBase{}},
		Background:  settings.Background{CancellationPolling: 9},
		Execution:   settings.Execution{Backoff: backoff.Constant(0), CheckpointInterval: 3, Workers: 4, GracePeriod: 5, ShutdownTimeout: 6, Lifecycle: lifecycles.OneByOne},
		Queueing:    settings.Queueing{ErrorDelays: []time.Duration{}, ContentionDelays: []time.Duration{}, EventBacklog: 6},
		Posting:     settings.Posting{Disabled: true, Level: slog.LevelWarn, WithoutLogs: true, Component: "a", Instance: "b", Burst: 1, Refill: 2},
		Networking:  settings.Networking{QPS: -1, Burst: 7, RequestTimeout: 8, ConnectTimeout: 9, ErrorBackoffs: []time.Duration{}},
		Watching:    settings.Watching{ServerTimeout: time.Second, InactivityTimeout: -1, ReconnectBackoff: 2, ReconnectLimit: 3},
		Peering:     settings.Peering{Name: "a", Mandatory: true, Priority: 9, Lifetime: time.Second, Stealth: true},
		Replicas:    settings.Replicas{LeaderElection: true, LeaseName: "a", LeaseNamespace: "b", LeaseDuration: 4, RenewDeadline: 3, RetryPeriod: 1},
		Admission:   settings.Admission{Server: nowhere{}, Managed: "auto.kopf.dev", IncludeOwnNamespace: true, ManifestFile: "a.yaml", Timeout: time.Second},
		Health:      settings.Health{Address: ":1", LivenessPath: "/a", ReadinessPath: "/b", ProbeCacheTTL: 2, MaxQueueAge: 3, ManagerCheck: "c"},
		Metrics:     settings.Metrics{Address: ":2", Secure: true},
	}
	got := given.WithDefaults()
	if reflect.ValueOf(got.Execution.Lifecycle).Pointer() != reflect.ValueOf(given.Execution.Lifecycle).Pointer() {
		t.Error("the lifecycle was replaced")
	}
	got.Execution.Lifecycle, given.Execution.Lifecycle = nil, nil // functions are not comparable
	if !reflect.DeepEqual(got, given) {
		t.Errorf("got %+v, want %+v", got, given)
	}
	if err := got.Validate(); err != nil {
		t.Errorf("got %v", err)
	}
}

func onePath(s *settings.Settings) { s.Health.LivenessPath, s.Health.ReadinessPath = "x", "x" }

func TestValidate(t *testing.T) {
	tests := map[string]struct {
		spoil func(s *settings.Settings)
		want  string
	}{
		"a namespace without a name": {
			func(s *settings.Settings) { s.Scope.Namespaces = append(s.Scope.Namespaces, "") },
			`settings.Scope.Namespaces has an empty name: [""]; leave the list empty to watch all namespaces`,
		},
		"a namespace that can be none": {
			func(s *settings.Settings) { s.Scope.Namespaces = append(s.Scope.Namespaces, "Team_A") },
			`settings.Scope.Namespaces has "Team_A", which is no name of a namespace`,
		},
		"a scan in the past": {func(s *settings.Settings) { s.Scanning.Interval = -1 }, "settings.Scanning.Interval is negative"},
		"a finalizer that Kubernetes refuses": {
			func(s *settings.Settings) { s.Persistence.Finalizer = "my finalizer" },
			`settings.Persistence.Finalizer "my finalizer" is refused by Kubernetes`,
		},
		"a storage that cannot work": {
			func(s *settings.Settings) { s.Persistence.Progress = storage.AnnotationsProgress{Prefix: "no prefix/"} },
			"settings.Persistence.Progress: ",
		},
		"another one": {
			func(s *settings.Settings) { s.Persistence.DiffBase = storage.AnnotationsDiffBase{Prefix: "no prefix/"} },
			"settings.Persistence.DiffBase: ",
		},
		"a consistency timeout before its begin": {
			func(s *settings.Settings) { s.Persistence.ConsistencyTimeout = -1 }, "settings.Persistence.ConsistencyTimeout is negative: -1ns",
		},
		"a negative backoff": {
			func(s *settings.Settings) { s.Execution.Backoff = backoff.Constant(-time.Second) }, "settings.Execution.Backoff: the backoff -1s is negative",
		},
		"a negative polling":      {func(s *settings.Settings) { s.Background.CancellationPolling = -1 }, "settings.Background.CancellationPolling is negative"},
		"a negative checkpoint":   {func(s *settings.Settings) { s.Execution.CheckpointInterval = -1 }, "settings.Execution.CheckpointInterval is negative"},
		"a negative grace period": {func(s *settings.Settings) { s.Execution.GracePeriod = -1 }, "settings.Execution.GracePeriod is negative"},
		"less than no workers":    {func(s *settings.Settings) { s.Execution.Workers = -1 }, "settings.Execution.Workers is negative: -1"},
		"a pause into the past":   {func(s *settings.Settings) { s.Queueing.ErrorDelays = []time.Duration{1, -1} }, "settings.Queueing.ErrorDelays has a negative pause: [1ns -1ns]"},
		"less than no backlog":    {func(s *settings.Settings) { s.Queueing.EventBacklog = -1 }, "settings.Queueing.EventBacklog is negative: -1"},
		"a level of requests":     {func(s *settings.Settings) { s.Posting.Level = -8 }, "settings.Posting.Level is below slog.LevelDebug: DEBUG-4"},
		"a component that is a sentence": {
			func(s *settings.Settings) { s.Posting.Component = "my operator" },
			`settings.Posting.Component "my operator" is refused by Kubernetes`,
		},
		"an instance without end":   {func(s *settings.Settings) { s.Posting.Instance = strings.Repeat("x", 129) }, "settings.Posting.Instance is longer than 128 bytes"},
		"less than no events":       {func(s *settings.Settings) { s.Posting.Burst = -1 }, "settings.Posting.Burst is negative: -1"},
		"events before they happen": {func(s *settings.Settings) { s.Posting.Refill = -1 }, "settings.Posting.Refill is negative: -1ns"},
		"less than no burst":        {func(s *settings.Settings) { s.Networking.Burst = -1 }, "settings.Networking.Burst is negative: -1"},
		"a dispute in the past":     {func(s *settings.Settings) { s.Queueing.ContentionDelays = []time.Duration{-1} }, "settings.Queueing.ContentionDelays has a negative pause: [-1ns]"},
		"a repetition before":       {func(s *settings.Settings) { s.Networking.ErrorBackoffs = []time.Duration{-1} }, "settings.Networking.ErrorBackoffs has a negative pause: [-1ns]"},
		"connected in the past":     {func(s *settings.Settings) { s.Networking.ConnectTimeout = -1 }, "settings.Networking.ConnectTimeout is negative"},
		"a watch too short":         {func(s *settings.Settings) { s.Watching.ServerTimeout = 1 }, "settings.Watching.ServerTimeout is less than a second: 1ns"},
		"a watch begun before": {
			func(s *settings.Settings) { s.Watching.ReconnectLimit = 1 }, "settings.Watching.ReconnectLimit is shorter than ReconnectBackoff: 1ns and 100ms",
		},
		"a peering without a name for it": {
			func(s *settings.Settings) { s.Peering.Name = "My Peering" }, `settings.Peering.Name "My Peering" is no name of an object`,
		},
		"a life too short to be told": {
			func(s *settings.Settings) { s.Peering.Lifetime = time.Millisecond }, "settings.Peering.Lifetime is less than a second: 1ms",
		},
		"alone, and not alone": {
			func(s *settings.Settings) { s.Peering.Standalone, s.Peering.Mandatory = true, true },
			"settings.Peering is both Standalone and Mandatory",
		},
		"a negative end":          {func(s *settings.Settings) { s.Execution.ShutdownTimeout = -1 }, "settings.Execution.ShutdownTimeout is negative"},
		"a lease without a name":  {func(s *settings.Settings) { s.Replicas.LeaseName = "My Lease" }, `settings.Replicas.LeaseName "My Lease" is no name of an object`},
		"a lease in no namespace": {func(s *settings.Settings) { s.Replicas.LeaseNamespace = "My Space" }, `settings.Replicas.LeaseNamespace "My Space" is no name of a namespace`},
		"a leader that does not give up in time": {
			func(s *settings.Settings) { s.Replicas.RenewDeadline = 15 * time.Second },
			"settings.Replicas.RenewDeadline must be shorter than LeaseDuration: 15s and 15s",
		},
		"configurations without a name": {func(s *settings.Settings) { s.Admission.Managed = "My Own" }, `settings.Admission.Managed "My Own" is no name of an object`},
		"an answer too late for Kubernetes": {
			func(s *settings.Settings) { s.Admission.Timeout = 31 * time.Second }, "settings.Admission.Timeout must be whole seconds, from 1s to 30s",
		},
		"one path for two":         {onePath, "settings.Health.LivenessPath and ReadinessPath are the same: x"},
		"a probe of tomorrow":      {func(s *settings.Settings) { s.Health.ProbeCacheTTL = -1 }, "settings.Health.ProbeCacheTTL is negative"},
		"a path from nowhere":      {onePath, `must begin with a slash: "x" and "x"`},
		"a name that is no text":   {func(s *settings.Settings) { s.Name = "\xff" }, `settings.Name is not valid UTF-8: "\xff"`},
		"a stall before the start": {func(s *settings.Settings) { s.Health.MaxQueueAge = -1 }, "settings.Health.MaxQueueAge is negative"},
		"an answer before the ask": {func(s *settings.Settings) { s.Networking.RequestTimeout = -1 }, "settings.Networking.RequestTimeout is negative"},
	}
	all := settings.Settings{}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var s settings.Settings
			test.spoil(&s)
			if err := s.Validate(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q in it", err, test.want)
			}
		})
		test.spoil(&all)
	}
	t.Run("everything at once, in the same order each time", func(t *testing.T) {
		first := all.Validate()
		if lines := strings.Count(first.Error(), "settings."); lines != len(tests) {
			t.Errorf("got %d problems: %v", lines, first)
		}
		if again := all.Validate(); again.Error() != first.Error() {
			t.Errorf("got %v, then %v", first, again)
		}
	})
}

// nowhere is a server that does not serve.
type nowhere struct{}

func (nowhere) Serve(context.Context, settings.AdmissionEndpoint) error { return nil }

func TestPatternsNeedSomebodyWhoLooksForThem(t *testing.T) {
	s := settings.Settings{Scope: settings.Scope{Namespaces: []string{"a", "b-*"}}, Scanning: settings.Scanning{Disabled: true}}
	want := `settings.Scope.Namespaces has patterns (["b-*"]), which need the scanning that settings.Scanning.Disabled excludes`
	if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q in it", err, want)
	}
	s.Scanning.Disabled = false
	if err := s.Validate(); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestFibonacci(t *testing.T) {
	const longest = time.Duration(1<<63 - 1)
	tests := map[string]struct {
		unit, limit time.Duration
		want        []time.Duration
	}{
		"up to the limit":              {time.Second, 8 * time.Second, seconds(1, 2, 3, 5, 8)},
		"not beyond the limit":         {time.Second, 7 * time.Second, seconds(1, 2, 3, 5)},
		"a limit below the unit":       {time.Second, time.Millisecond, nil},
		"no unit":                      {0, time.Hour, nil},
		"a unit that goes back":        {-time.Second, time.Hour, nil},
		"a unit as long as time is":    {longest, longest, []time.Duration{longest}},
		"the last that time can count": {longest / 2, longest, []time.Duration{longest / 2, longest - 1}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := settings.Fibonacci(test.unit, test.limit); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func seconds(counts ...int) []time.Duration {
	var durations []time.Duration
	for _, count := range counts {
		durations = append(durations, time.Duration(count)*time.Second)
	}
	return durations
}

func TestTimeoutsThatKubernetesTakes(t *testing.T) {
	for timeout, fine := range map[time.Duration]bool{
		0: true, time.Second: true, 30 * time.Second: true,
		-time.Second: false, time.Millisecond: false, 1500 * time.Millisecond: false, 31 * time.Second: false,
	} {
		if err := (settings.Settings{Admission: settings.Admission{Timeout: timeout}}).Validate(); (err == nil) != fine {
			t.Errorf("%v: got %v", timeout, err)
		}
	}
}
