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

// All defaults that the documentation promises, in figures. A change of one
// changes the behavior of running operators: announce it.
func TestDefaults(t *testing.T) {
	s := settings.Default()
	tests := map[string]struct{ got, want any }{
		"all namespaces are watched":              {len(s.Scope.Namespaces), 0},
		"the finalizer is Kopf's":                 {s.Persistence.Finalizer, "kopf.zalando.org/KopfFinalizerMarker"},
		"the handled state is annotated":          {s.Persistence.DiffBase, storage.AnnotationsDiffBase{}},
		"progress is smart":                       {s.Persistence.Progress, storage.SmartProgress{}},
		"own writes are awaited":                  {s.Persistence.ConsistencyTimeout, 5 * time.Second},
		"errors are retried in a minute":          {s.Execution.Backoff, backoff.Constant(time.Minute)},
		"hung daemons are logged":                 {s.Background.CancellationPolling, time.Minute},
		"progress is stored each second":          {s.Execution.CheckpointInterval, time.Second},
		"a hundred objects at once":               {s.Execution.Workers, 100},
		"thousands of calls at once":              {s.Execution.MaxCalls, 5000},
		"handlers may finish":                     {s.Execution.GracePeriod, 20 * time.Second},
		"the shutdown is bounded":                 {s.Execution.ShutdownTimeout, 10 * time.Minute},
		"a hundred events wait":                   {s.Queueing.EventBacklog, 100},
		"the first pause after an error":          {s.Queueing.ErrorDelays[0], time.Second},
		"the pauses after errors":                 {s.Queueing.ErrorDelays, seconds(1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377)},
		"events are posted":                       {s.Posting.Disabled, false},
		"log lines are events":                    {s.Posting.WithoutLogs, false},
		"informative events are posted":           {s.Posting.Level, slog.LevelInfo},
		"events are from the program":             {s.Posting.Component, ""},
		"events of one object at once":            {s.Posting.Burst, 25},
		"and one every five minutes":              {s.Posting.Refill, 5 * time.Minute},
		"the cluster is discovered":               {s.Scanning.Disabled, false},
		"requests are honored":                    {s.Requests.Disabled, false},
		"missing resources are looked for":        {s.Scanning.Interval, time.Minute},
		"requests a second":                       {s.Networking.QPS, float32(-1)},
		"requests in flight":                      {s.Networking.MaxInFlight, 200},
		"requests at once":                        {s.Networking.Burst, 400},
		"a request has half a minute":             {s.Networking.RequestTimeout, 30 * time.Second},
		"a connection has half a minute":          {s.Networking.ConnectTimeout, 30 * time.Second},
		"requests are repeated":                   {s.Networking.ErrorBackoffs, []time.Duration{500 * time.Millisecond, time.Second}},
		"a watch lasts some minutes":              {s.Watching.ServerTimeout, 5 * time.Minute},
		"a silent watch reconnects":               {s.Watching.InactivityTimeout, 3 * time.Minute},
		"a watch reconnects at once":              {s.Watching.ReconnectBackoff, 100 * time.Millisecond},
		"the longest reconnect pause":             {s.Watching.ReconnectLimit, 30 * time.Second},
		"the pauses of contention":                {s.Queueing.ContentionDelays, seconds(1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233)},
		"the peering is the default one":          {s.Peering.Name, "default"},
		"a peering is optional":                   {s.Peering.Mandatory, false},
		"peers are respected":                     {s.Peering.Standalone, false},
		"all peers are equal":                     {s.Peering.Priority, 0},
		"a peer is alive for a minute":            {s.Peering.Lifetime, time.Minute},
		"keep-alives are logged":                  {s.Peering.Stealth, false},
		"there is no leader election":             {s.Replicas.LeaderElection, false},
		"the lease has a name":                    {s.Replicas.LeaseName, "kopf-operator"},
		"a lease lasts 15 seconds":                {s.Replicas.LeaseDuration, 15 * time.Second},
		"a leader gives up earlier":               {s.Replicas.RenewDeadline, 10 * time.Second},
		"a lease is renewed every 2 seconds":      {s.Replicas.RetryPeriod, 2 * time.Second},
		"no health endpoint":                      {s.Health.Address, ""},
		"the path of the probes":                  {s.Health.LivenessPath, "/healthz"},
		"the path of the watches":                 {s.Health.ReadinessPath, "/readyz"},
		"a probe is cached for 10 seconds":        {s.Health.ProbeCacheTTL, 10 * time.Second},
		"a stalled queue is not ready":            {s.Health.MaxQueueAge, 5 * time.Minute},
		"no check in the manager":                 {s.Health.ManagerCheck, ""},
		"no metrics endpoint":                     {s.Metrics.Address, ""},
		"an operator has no name":                 {s.Name, ""},
		"its writes have a field manager":         {settings.DefaultName, "kopf"},
		"metrics are plain":                       {s.Metrics.Secure, false},
		"no page":                                 {s.Page, settings.Page{}},
		"no server for admission":                 {s.Admission.Server, settings.AdmissionServer(nil)},
		"configurations are not managed":          {s.Admission.Managed, ""},
		"the own namespace is not reviewed":       {s.Admission.IncludeOwnNamespace, false},
		"webhooks of replicas stay":               {s.Admission.RemoveOnExit, false},
		"an API server that starts is waited for": {s.Networking.StartTimeout, 4 * time.Minute},
		"reviews go on for a while":               {s.Admission.ShutdownDelay, 5 * time.Second},
		"manifests are logged only":               {s.Admission.ManifestFile, ""},
		"an API server waits 30 seconds":          {s.Admission.Timeout, 30 * time.Second},
		"the default is complete and stable":      {s.WithDefaults().Execution.Workers, s.Execution.Workers},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if !reflect.DeepEqual(test.got, test.want) {
				t.Errorf("got %v, want %v", test.got, test.want)
			}
		})
	}
	if err := s.Validate(); err != nil {
		t.Errorf("the defaults are invalid: %v", err)
	}
}

func TestTheDefaultLifecycleIsAllAtOnce(t *testing.T) {
	due := []lifecycles.Due{{Retries: 2}, {Retries: 1}}
	if got := settings.Default().Execution.Lifecycle(due); !slices.Equal(got, due) {
		t.Errorf("got %v", got)
	}
}

// This test finds settings that are missing in the list above.
func TestEverySettingHasADefault(t *testing.T) {
	zeroByDesign := []string{
		"Scope.Namespaces", "Scanning.Disabled", "Peering.Mandatory", "Peering.Standalone", "Peering.Priority", "Peering.Stealth",
		"Peering.ClusterWide", "Peering.Namespaces", "Peering.Identity", "Requests.Disabled",
		"Posting.Disabled", "Posting.Level", "Posting.WithoutLogs", "Posting.Component", "Posting.Instance", "Posting.EventNamePrefix",
		"Admission.Server", "Admission.Managed", "Admission.IncludeOwnNamespace", "Admission.ManifestFile", "Admission.RemoveOnExit",
		"Replicas.LeaderElection", "Replicas.Shards", "Replicas.ShardKey", "Replicas.LeaseNamespace", "Health.Address", "Health.ManagerCheck", "Metrics.Address", "Metrics.Secure", "Page.Address", "Page.CertFile", "Page.KeyFile",
		"Recording.File", "Recording.Fields", "Permissions.LearnFile", "Watching.LabelSelectors", "Watching.FieldSelectors",
	}
	of := reflect.ValueOf(settings.Default())
	for i := 2; i < of.NumField(); i++ { // after Name and FormerNames
		group := of.Type().Field(i).Name
		for j := range of.Field(i).NumField() {
			name := group + "." + of.Field(i).Type().Field(j).Name
			if of.Field(i).Field(j).IsZero() != slices.Contains(zeroByDesign, name) {
				t.Errorf("settings.%s is %v by default", name, of.Field(i).Field(j))
			}
		}
	}
}

func TestWithDefaultsKeepsWhatIsSet(t *testing.T) {
	given := settings.Settings{
		Name:        "d",
		Scope:       settings.Scope{Namespaces: []string{"a", "b"}},
		Scanning:    settings.Scanning{Disabled: true, Interval: 9},
		Persistence: settings.Persistence{Finalizer: "a.dev/f", Progress: storage.StatusProgress{}, ConsistencyTimeout: 1, DiffBase: storage.StatusDiffBase{}},
		Background:  settings.Background{CancellationPolling: 9},
		Execution:   settings.Execution{Backoff: backoff.Constant(0), CheckpointInterval: 3, Workers: 4, MaxCalls: 7, GracePeriod: 5, ShutdownTimeout: 6, Lifecycle: lifecycles.OneByOne},
		Queueing:    settings.Queueing{ErrorDelays: []time.Duration{}, ContentionDelays: []time.Duration{}, EventBacklog: 6},
		Posting:     settings.Posting{Disabled: true, Level: slog.LevelWarn, WithoutLogs: true, Component: "a", Instance: "b", EventNamePrefix: "c-", Burst: 1, Refill: 2},
		Networking:  settings.Networking{MaxInFlight: 6, QPS: 5, Burst: 7, RequestTimeout: 8, ConnectTimeout: 9, StartTimeout: -1, ErrorBackoffs: []time.Duration{}},
		Watching:    settings.Watching{ServerTimeout: time.Second, InactivityTimeout: -1, ReconnectBackoff: 2, ReconnectLimit: 3},
		Peering:     settings.Peering{Name: "a", Namespaces: []string{"b"}, Identity: "c", Mandatory: true, Priority: 9, Lifetime: time.Second, Stealth: true},
		Replicas:    settings.Replicas{LeaderElection: true, LeaseName: "a", LeaseNamespace: "b", LeaseDuration: 4, RenewDeadline: 3, RetryPeriod: 1},
		Admission:   settings.Admission{Server: nowhere{}, Managed: "auto.kopf.dev", IncludeOwnNamespace: true, ManifestFile: "a.yaml", Timeout: time.Second, ShutdownDelay: -1},
		Health:      settings.Health{Address: ":1", LivenessPath: "/a", ReadinessPath: "/b", ProbeCacheTTL: 2, MaxQueueAge: 3, ManagerCheck: "c"},
		Metrics:     settings.Metrics{Address: ":2", Secure: true},
		Page:        settings.Page{Address: ":3", CertFile: "tls.crt", KeyFile: "tls.key"},
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
		"an invalid name of a namespace": {
			func(s *settings.Settings) { s.Scope.Namespaces = append(s.Scope.Namespaces, "Team_A") },
			`settings.Scope.Namespaces has "Team_A", which is not a valid name of a namespace`,
		},
		"a negative scanning interval": {func(s *settings.Settings) { s.Scanning.Interval = -1 }, "settings.Scanning.Interval is negative"},
		"an invalid finalizer": {
			func(s *settings.Settings) { s.Persistence.Finalizer = "my finalizer" },
			`settings.Persistence.Finalizer "my finalizer" is not valid`,
		},
		"an invalid storage of the progress": {
			func(s *settings.Settings) { s.Persistence.Progress = storage.AnnotationsProgress{Prefix: "no prefix/"} },
			"settings.Persistence.Progress: ",
		},
		"an invalid storage of the diff base": {
			func(s *settings.Settings) { s.Persistence.DiffBase = storage.AnnotationsDiffBase{Prefix: "no prefix/"} },
			"settings.Persistence.DiffBase: ",
		},
		"a negative consistency timeout": {
			func(s *settings.Settings) { s.Persistence.ConsistencyTimeout = -1 }, "settings.Persistence.ConsistencyTimeout is negative: -1ns",
		},
		"a negative backoff": {
			func(s *settings.Settings) { s.Execution.Backoff = backoff.Constant(-time.Second) }, "settings.Execution.Backoff: the backoff -1s is negative",
		},
		"a negative polling":           {func(s *settings.Settings) { s.Background.CancellationPolling = -1 }, "settings.Background.CancellationPolling is negative"},
		"a negative checkpoint":        {func(s *settings.Settings) { s.Execution.CheckpointInterval = -1 }, "settings.Execution.CheckpointInterval is negative"},
		"a negative grace period":      {func(s *settings.Settings) { s.Execution.GracePeriod = -1 }, "settings.Execution.GracePeriod is negative"},
		"a negative number of calls":   {func(s *settings.Settings) { s.Execution.MaxCalls = -1 }, "settings.Execution.MaxCalls is negative: -1"},
		"a negative number of workers": {func(s *settings.Settings) { s.Execution.Workers = -1 }, "settings.Execution.Workers is negative: -1"},
		"a negative error delay":       {func(s *settings.Settings) { s.Queueing.ErrorDelays = []time.Duration{1, -1} }, "settings.Queueing.ErrorDelays has a negative pause: [1ns -1ns]"},
		"a negative backlog":           {func(s *settings.Settings) { s.Queueing.EventBacklog = -1 }, "settings.Queueing.EventBacklog is negative: -1"},
		"a level below debug":          {func(s *settings.Settings) { s.Posting.Level = -8 }, "settings.Posting.Level is below slog.LevelDebug: DEBUG-4"},
		"an invalid component": {
			func(s *settings.Settings) { s.Posting.Component = "my operator" },
			`settings.Posting.Component "my operator" is not valid`,
		},
		"a long instance":              {func(s *settings.Settings) { s.Posting.Instance = strings.Repeat("x", 129) }, "settings.Posting.Instance is longer than 128 bytes"},
		"an invalid prefix of events":  {func(s *settings.Settings) { s.Posting.EventNamePrefix = "My_" }, `settings.Posting.EventNamePrefix "My_" is not valid`},
		"a negative burst of events":   {func(s *settings.Settings) { s.Posting.Burst = -1 }, "settings.Posting.Burst is negative: -1"},
		"a negative refill":            {func(s *settings.Settings) { s.Posting.Refill = -1 }, "settings.Posting.Refill is negative: -1ns"},
		"a negative burst of requests": {func(s *settings.Settings) { s.Networking.Burst = -1 }, "settings.Networking.Burst is negative: -1"},
		"a negative contention delay":  {func(s *settings.Settings) { s.Queueing.ContentionDelays = []time.Duration{-1} }, "settings.Queueing.ContentionDelays has a negative pause: [-1ns]"},
		"a negative error backoff":     {func(s *settings.Settings) { s.Networking.ErrorBackoffs = []time.Duration{-1} }, "settings.Networking.ErrorBackoffs has a negative pause: [-1ns]"},
		"a negative connect timeout":   {func(s *settings.Settings) { s.Networking.ConnectTimeout = -1 }, "settings.Networking.ConnectTimeout is negative"},
		"a short watch":                {func(s *settings.Settings) { s.Watching.ServerTimeout = 1 }, "settings.Watching.ServerTimeout is less than a second: 1ns"},
		"a short reconnect limit": {
			func(s *settings.Settings) { s.Watching.ReconnectLimit = 1 }, "settings.Watching.ReconnectLimit is shorter than ReconnectBackoff: 1ns and 100ms",
		},
		"an invalid name of a peering": {
			func(s *settings.Settings) { s.Peering.Name = "My Peering" }, `settings.Peering.Name "My Peering" is not a valid name of an object`,
		},
		"a short lifetime": {
			func(s *settings.Settings) { s.Peering.Lifetime = time.Millisecond }, "settings.Peering.Lifetime is less than a second: 1ms",
		},
		"standalone and mandatory": {
			func(s *settings.Settings) { s.Peering.Standalone, s.Peering.Mandatory = true, true },
			"settings.Peering is both Standalone and Mandatory",
		},
		"a negative shutdown timeout":     {func(s *settings.Settings) { s.Execution.ShutdownTimeout = -1 }, "settings.Execution.ShutdownTimeout is negative"},
		"an invalid name of a lease":      {func(s *settings.Settings) { s.Replicas.LeaseName = "My Lease" }, `settings.Replicas.LeaseName "My Lease" is not a valid name of an object`},
		"an invalid namespace of a lease": {func(s *settings.Settings) { s.Replicas.LeaseNamespace = "My Space" }, `settings.Replicas.LeaseNamespace "My Space" is not a valid name of a namespace`},
		"a late renew deadline": {
			func(s *settings.Settings) { s.Replicas.RenewDeadline = 15 * time.Second },
			"settings.Replicas.RenewDeadline must be shorter than LeaseDuration: 15s and 15s",
		},
		"an invalid name of configurations": {func(s *settings.Settings) { s.Admission.Managed = "My Own" }, `settings.Admission.Managed "My Own" is not a valid name of an object`},
		"a long admission timeout": {
			func(s *settings.Settings) { s.Admission.Timeout = 31 * time.Second }, "settings.Admission.Timeout must be whole seconds, from 1s to 30s",
		},
		"a page with half a certificate": {
			func(s *settings.Settings) { s.Page = settings.Page{CertFile: "tls.crt"} }, "settings.Page needs either both CertFile and KeyFile, or none of them",
		},
		"a certificate without a page": {
			func(s *settings.Settings) { s.Page = settings.Page{CertFile: "tls.crt"} }, "settings.Page has a certificate, and no Address",
		},
		"one path for both endpoints": {onePath, "settings.Health.LivenessPath and ReadinessPath are the same: x"},
		"a negative probe cache":      {func(s *settings.Settings) { s.Health.ProbeCacheTTL = -1 }, "settings.Health.ProbeCacheTTL is negative"},
		"a relative path":             {onePath, `must begin with a slash: "x" and "x"`},
		"two kinds of peerings": {
			func(s *settings.Settings) { s.Peering.ClusterWide, s.Peering.Namespaces = true, []string{"My_Space"} },
			"settings.Peering has both ClusterWide and Namespaces: choose one",
		},
		"an invalid namespace of the peering": {
			func(s *settings.Settings) { s.Peering.Namespaces = []string{"My_Space"} },
			`settings.Peering.Namespaces has "My_Space", which is not a valid name of a namespace`,
		},
		"an invalid identity":        {func(s *settings.Settings) { s.Peering.Identity = "\xff" }, `settings.Peering.Identity is not valid UTF-8: "\xff"`},
		"a name that is not UTF-8":   {func(s *settings.Settings) { s.Name = "\xff" }, `settings.Name is not valid UTF-8: "\xff"`},
		"a negative queue age":       {func(s *settings.Settings) { s.Health.MaxQueueAge = -1 }, "settings.Health.MaxQueueAge is negative"},
		"a negative request timeout": {func(s *settings.Settings) { s.Networking.RequestTimeout = -1 }, "settings.Networking.RequestTimeout is negative"},
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

// nowhere is a server that serves nothing.
type nowhere struct{}

func (nowhere) Serve(context.Context, settings.AdmissionEndpoint) error { return nil }

func TestPatternsOfNamespacesRequireDiscovery(t *testing.T) {
	s := settings.Settings{Scope: settings.Scope{Namespaces: []string{"a", "b-*"}}, Scanning: settings.Scanning{Disabled: true}}
	want := `settings.Scope.Namespaces has patterns (["b-*"]), but settings.Scanning.Disabled disables the discovery of namespaces`
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
		"up to the limit":        {time.Second, 8 * time.Second, seconds(1, 2, 3, 5, 8)},
		"not beyond the limit":   {time.Second, 7 * time.Second, seconds(1, 2, 3, 5)},
		"a limit below the unit": {time.Second, time.Millisecond, nil},
		"a unit of zero":         {0, time.Hour, nil},
		"a negative unit":        {-time.Second, time.Hour, nil},
		"the longest unit":       {longest, longest, []time.Duration{longest}},
		"no overflow":            {longest / 2, longest, []time.Duration{longest / 2, longest - 1}},
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

func TestAdmissionTimeoutsAreThoseOfKubernetes(t *testing.T) {
	for timeout, fine := range map[time.Duration]bool{
		0: true, time.Second: true, 30 * time.Second: true,
		-time.Second: false, time.Millisecond: false, 1500 * time.Millisecond: false, 31 * time.Second: false,
	} {
		if err := (settings.Settings{Admission: settings.Admission{Timeout: timeout}}).Validate(); (err == nil) != fine {
			t.Errorf("%v: got %v", timeout, err)
		}
	}
}

func TestFormerNamesAreChecked(t *testing.T) {
	tests := map[string]struct {
		spoil func(s *settings.Settings)
		want  string
	}{
		"former names without a name": {func(s *settings.Settings) { s.FormerNames = []string{"a"} }, "settings.FormerNames needs the current name: set settings.Name"},
		"an empty former name":        {func(s *settings.Settings) { s.Name, s.FormerNames = "b", []string{""} }, "settings.FormerNames has an empty name"},
		"the name as a former one":    {func(s *settings.Settings) { s.Name, s.FormerNames = "b", []string{"a", "b"} }, `settings.FormerNames has the current name "b": remove it there`},
		"a former name twice":         {func(s *settings.Settings) { s.Name, s.FormerNames = "b", []string{"a", "a"} }, `settings.FormerNames has the name "a" twice`},
		"a former name with a line":   {func(s *settings.Settings) { s.Name, s.FormerNames = "b", []string{"a\n"} }, "settings.FormerNames has characters that cannot be printed"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := settings.Default()
			test.spoil(&s)
			if err := s.Validate(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
	fine := settings.Default()
	fine.Name, fine.FormerNames = "c", []string{"b", "a"}
	if err := fine.Validate(); err != nil {
		t.Error(err)
	}
}

func TestValidateShards(t *testing.T) {
	for want, r := range map[string]settings.Replicas{
		"": {Shards: 256, ShardKey: settings.ShardByNamespace},
		"settings.Replicas.Shards must be between 0 and 256: 257":                        {Shards: 257},
		"settings.Replicas.Shards must be between 0 and 256: -1":                         {Shards: -1},
		"settings.Replicas has both Shards and LeaderElection":                           {Shards: 16, LeaderElection: true},
		`settings.Replicas.ShardKey must be "uid" or "namespace": "name"`:                {Shards: 16, ShardKey: "name"},
		`settings.Replicas.ShardKey is "namespace", but there are no shards: set Shards`: {ShardKey: settings.ShardByNamespace},
	} {
		err := settings.Settings{Replicas: r}.WithDefaults().Validate()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestShardsNeedAName(t *testing.T) {
	for i, test := range []struct {
		given settings.Settings
		ok    bool
	}{
		{settings.Settings{}, true},
		{settings.Settings{Replicas: settings.Replicas{Shards: 16}}, false},
		{settings.Settings{Name: "Not a name of objects", Replicas: settings.Replicas{Shards: 16}}, false},
		{settings.Settings{Name: "web.example.com", Replicas: settings.Replicas{Shards: 16}}, true},
		{settings.Settings{Replicas: settings.Replicas{Shards: 16, LeaseName: "web"}}, true},
	} {
		if err := test.given.CheckShardName(); (err == nil) != test.ok {
			t.Errorf("%d: got %v", i, err)
		}
	}
}
