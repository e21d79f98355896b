package cli

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/kopf-go/kopf/pkg/settings"
)

func TestFlags(t *testing.T) {
	tests := map[string]struct {
		arguments string
		want      func(*settings.Settings)
	}{
		"no flags":                      {"", func(*settings.Settings) {}},
		"all namespaces":                {"--all-namespaces", func(*settings.Settings) {}},
		"all namespaces, in short":      {"-A", func(*settings.Settings) {}},
		"a namespace":                   {"--namespace one", func(s *settings.Settings) { s.Scope.Namespaces = []string{"one"} }},
		"several namespaces":            {"-n one -n two,three", func(s *settings.Settings) { s.Scope.Namespaces = []string{"one", "two", "three"} }},
		"a pattern of namespaces":       {"-n one -n team-*,!team-x", func(s *settings.Settings) { s.Scope.Namespaces = []string{"one", "team-*,!team-x"} }},
		"a peering":                     {"--peering mine -p -7", func(s *settings.Settings) { s.Peering.Name, s.Peering.Mandatory, s.Peering.Priority = "mine", true, -7 }},
		"the default peering, by name":  {"--peering default", func(s *settings.Settings) { s.Peering.Mandatory = true }},
		"an operator under development": {"--dev", func(s *settings.Settings) { s.Peering.Priority = settings.DevelopmentPriority }},
		"a standalone operator":         {"--standalone", func(s *settings.Settings) { s.Peering.Standalone = true }},
		"several replicas": {"--leader-elect --lease-name a --lease-namespace b", func(s *settings.Settings) {
			s.Replicas.LeaderElection, s.Replicas.LeaseName, s.Replicas.LeaseNamespace = true, "a", "b"
		}},
		"probes at a URL": {"--liveness=http://0.0.0.0:8080/alive", func(s *settings.Settings) {
			s.Health.Address, s.Health.LivenessPath = "0.0.0.0:8080", "/alive"
		}},
		"probes at a URL without a path": {"--liveness http://[::1]:8080", func(s *settings.Settings) { s.Health.Address = "[::1]:8080" }},
		"probes at the root":             {"--liveness http://:8080/", func(s *settings.Settings) { s.Health.Address, s.Health.LivenessPath = ":8080", "/" }},
		"probes at an address":           {"--liveness :8080", func(s *settings.Settings) { s.Health.Address = ":8080" }},
		"page":                           {"--page :8444", func(s *settings.Settings) { s.Page.Address = ":8444" }},
		"metrics":                        {"--metrics 127.0.0.1:9090 --metrics-secure", func(s *settings.Settings) { s.Metrics.Address, s.Metrics.Secure = "127.0.0.1:9090", true }},
		"work":                           {"--workers 7 --grace-period 5s", func(s *settings.Settings) { s.Execution.Workers, s.Execution.GracePeriod = 7, 5*time.Second }},
		"flags that are false":           {"--quiet=false -v -A=false -n one", func(s *settings.Settings) { s.Scope.Namespaces = []string{"one"} }},
		"the end of flags":               {"-v --", func(*settings.Settings) {}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in, r := runOperator(t, strings.Fields(test.arguments)...)
			want := settings.Default()
			want.Replicas.LeaseName = "" // it depends on the name of the operator
			test.want(&want)
			in.Settings.Execution.Lifecycle, want.Execution.Lifecycle = nil, nil // functions do not compare
			if r.code != ExitOK || r.log+r.out != "" || !reflect.DeepEqual(in.Settings, want) {
				t.Errorf("got %+v, %+v", in.Settings, r)
			}
		})
	}
}

func TestFlagsThatHaveNoEffectAreNamed(t *testing.T) {
	arguments := "--shards 4 --shard-key=namespace -n one --liveness :8080 --dev --workers 7 --record-field a,b --record file --standalone --quiet"
	changes := map[string]func(*settings.Settings){
		"":               func(*settings.Settings) {},
		"--shards":       func(s *settings.Settings) { s.Replicas.Shards = 8 },
		"--shard-key":    func(s *settings.Settings) { s.Replicas.ShardKey = settings.ShardByUID },
		"--namespace":    func(s *settings.Settings) { s.Scope.Namespaces = nil },
		"--liveness":     func(s *settings.Settings) { s.Health.Address = ":8081" },
		"--workers":      func(s *settings.Settings) { s.Execution.Workers = 8 },
		"--record-field": func(s *settings.Settings) { s.Recording.Fields = []string{"a"} },
		"--standalone":   func(s *settings.Settings) { s.Peering.Standalone = false },
		"--shards --workers": func(s *settings.Settings) {
			s.Replicas.Shards = 0
			s.Execution.Workers = 1
			s.Execution.GracePeriod = time.Hour // no flag
		},
	}
	in, r := runOperator(t, strings.Fields(arguments)...)
	if r.code != ExitOK {
		t.Fatalf("got %+v", r)
	}
	for want, change := range changes {
		s := in.Settings
		change(&s)
		if got := strings.Join(in.Overridden(s), " "); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestInvalidCommandLines(t *testing.T) {
	tests := map[string]struct {
		arguments []string
		want      string
	}{
		"an unknown flag":                   {[]string{"--nonsense"}, "unknown flag: --nonsense"},
		"a flag without its value":          {[]string{"--context"}, "flag needs an argument: --context"},
		"an invalid number":                 {[]string{"--priority=high"}, `--priority="high": expected an integer`},
		"an invalid duration":               {[]string{"--grace-period", "5"}, `--grace-period="5": expected a duration with a unit, such as 30s or 5m`},
		"an invalid boolean":                {[]string{"--dev=yes"}, `--dev="yes": expected true or false`},
		"an argument":                       {[]string{"-v", "run"}, `unexpected argument "run": this command takes flags only`},
		"an argument after all flags":       {[]string{"--", "-v"}, `unexpected argument "-v"`},
		"one namespace and all namespaces":  {[]string{"-A", "-n", "one"}, "--all-namespaces and --namespace cannot be used together"},
		"standalone with a peering":         {[]string{"--standalone", "--peering=a"}, "--standalone cannot be used with --peering, because it ignores peers"},
		"quiet and verbose":                 {[]string{"-q", "-v"}, "--quiet cannot be used with --verbose or --debug"},
		"quiet and debug":                   {[]string{"-q", "-d"}, "--quiet cannot be used with --verbose or --debug"},
		"with and without a prefix":         {[]string{"--log-prefix", "--no-log-prefix"}, "--no-log-prefix and --log-prefix cannot be used together"},
		"an unknown format":                 {[]string{"--log-format", "xml"}, `--log-format is "xml": use full, plain, or json`},
		"a namespace without a name":        {[]string{"-n", ""}, "--namespace is empty: set a name, or use --all-namespaces"},
		"a list with an empty name":         {[]string{"-n", "one,"}, "--namespace is empty"},
		"a namespace without its value":     {[]string{"--namespace="}, "--namespace is empty"},
		"a peering without a name":          {[]string{"--peering="}, "--peering is empty: set a value, or omit the flag"},
		"a lease without a name":            {[]string{"--lease-name="}, "--lease-name is empty"},
		"an invalid lease name":             {[]string{"--lease-name=A B"}, `settings.Replicas.LeaseName "A B" is not a valid name of an object`},
		"probes without a port":             {[]string{"--liveness=http://0.0.0.0/"}, "expected an address with a port, such as 0.0.0.0:8080 or :8080"},
		"probes at an invalid port":         {[]string{"--liveness=:http"}, "expected an address with a port"},
		"probes over https":                 {[]string{"--liveness=https://0.0.0.0:1/"}, "the probes are served over http, not https"},
		"probes with a query":               {[]string{"--liveness=http://0.0.0.0:1/?a=b"}, "expected only an address and a path"},
		"probes at an invalid URL":          {[]string{"--liveness=http://%%"}, "invalid URL"},
		"secure metrics without an address": {[]string{"--metrics-secure"}, "--metrics-secure requires --metrics"},
		"a negative number":                 {[]string{"--workers=-1"}, "settings.Execution.Workers is negative"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, r := runOperator(t, test.arguments...)
			if r.code != ExitUsage || !strings.HasPrefix(r.log, "operator: ") || !strings.Contains(r.log, test.want) ||
				!strings.HasSuffix(r.log, "\nTry operator --help.\n") || r.out != "" {
				t.Errorf("got %+v, want %q in it", r, test.want)
			}
		})
	}
}
