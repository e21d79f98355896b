package cli

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/kopf-go/kopf/pkg/settings"
)

func TestWhatFlagsSay(t *testing.T) {
	tests := map[string]struct {
		arguments string
		want      func(*settings.Settings)
	}{
		"nothing":                       {"", func(*settings.Settings) {}},
		"all namespaces":                {"--all-namespaces", func(*settings.Settings) {}},
		"all namespaces, in short":      {"-A", func(*settings.Settings) {}},
		"a namespace":                   {"--namespace one", func(s *settings.Settings) { s.Scope.Namespaces = []string{"one"} }},
		"several namespaces":            {"-n one -n two,three", func(s *settings.Settings) { s.Scope.Namespaces = []string{"one", "two", "three"} }},
		"a pattern of namespaces":       {"-n one -n team-*,!team-x", func(s *settings.Settings) { s.Scope.Namespaces = []string{"one", "team-*,!team-x"} }},
		"a peering":                     {"--peering mine -p -7", func(s *settings.Settings) { s.Peering.Name, s.Peering.Mandatory, s.Peering.Priority = "mine", true, -7 }},
		"the default peering, by name":  {"--peering default", func(s *settings.Settings) { s.Peering.Mandatory = true }},
		"an operator under development": {"--dev", func(s *settings.Settings) { s.Peering.Priority = settings.DevelopmentPriority }},
		"an operator on its own":        {"--standalone", func(s *settings.Settings) { s.Peering.Standalone = true }},
		"several replicas": {"--leader-elect --lease-name a --lease-namespace b", func(s *settings.Settings) {
			s.Replicas.LeaderElection, s.Replicas.LeaseName, s.Replicas.LeaseNamespace = true, "a", "b"
		}},
		"probes at an URL": {"--liveness=http://0.0.0.0:8080/alive", func(s *settings.Settings) {
			s.Health.Address, s.Health.LivenessPath = "0.0.0.0:8080", "/alive"
		}},
		"probes at an URL without a path": {"--liveness http://[::1]:8080", func(s *settings.Settings) { s.Health.Address = "[::1]:8080" }},
		"probes at the root":              {"--liveness http://:8080/", func(s *settings.Settings) { s.Health.Address, s.Health.LivenessPath = ":8080", "/" }},
		"probes at an address":            {"--liveness :8080", func(s *settings.Settings) { s.Health.Address = ":8080" }},
		"metrics":                         {"--metrics 127.0.0.1:9090 --metrics-secure", func(s *settings.Settings) { s.Metrics.Address, s.Metrics.Secure = "127.0.0.1:9090", true }},
		"work":                            {"--workers 7 --grace-period 5s", func(s *settings.Settings) { s.Execution.Workers, s.Execution.GracePeriod = 7, 5*time.Second }},
		"something that is not so":        {"--quiet=false -v -A=false -n one", func(s *settings.Settings) { s.Scope.Namespaces = []string{"one"} }},
		"the end of flags":                {"-v --", func(*settings.Settings) {}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in, r := runOperator(t, strings.Fields(test.arguments)...)
			want := settings.Default()
			test.want(&want)
			in.Settings.Execution.Lifecycle, want.Execution.Lifecycle = nil, nil // functions do not compare
			if r.code != ExitOK || r.log+r.out != "" || !reflect.DeepEqual(in.Settings, want) {
				t.Errorf("got %+v, %+v", in.Settings, r)
			}
		})
	}
}

func TestRefusedCommandLines(t *testing.T) {
	tests := map[string]struct {
		arguments []string
		want      string
	}{
		"a flag that is none":           {[]string{"--nonsense"}, "unknown flag: --nonsense"},
		"a flag without its value":      {[]string{"--context"}, "flag needs an argument: --context"},
		"a number that is none":         {[]string{"--priority=high"}, `--priority="high": it is no whole number`},
		"a time that is none":           {[]string{"--grace-period", "5"}, `--grace-period="5": it is no time with a unit, such as 30s or 5m`},
		"a truth that is none":          {[]string{"--dev=yes"}, `--dev="yes": it is neither true nor false`},
		"an argument":                   {[]string{"-v", "run"}, `unexpected argument "run": this command takes flags only`},
		"an argument after all flags":   {[]string{"--", "-v"}, `unexpected argument "-v"`},
		"one namespace, and all":        {[]string{"-A", "-n", "one"}, "--all-namespaces and --namespace exclude each other"},
		"two priorities":                {[]string{"--dev", "--priority=1"}, "--dev is a priority of its own: it excludes --priority"},
		"alone among peers":             {[]string{"--standalone", "--peering=a"}, "--standalone excludes --peering, --priority and --dev"},
		"less and more":                 {[]string{"-q", "-v"}, "--quiet excludes --verbose and --debug"},
		"less and all":                  {[]string{"-q", "-d"}, "--quiet excludes --verbose and --debug"},
		"with and without a prefix":     {[]string{"--log-prefix", "--no-log-prefix"}, "--no-log-prefix and --log-prefix exclude each other"},
		"a format that is none":         {[]string{"--log-format", "xml"}, `--log-format is "xml": use full, plain or json`},
		"a namespace without a name":    {[]string{"-n", ""}, "--namespace is empty: give a name, or --all-namespaces"},
		"a namespace too few":           {[]string{"-n", "one,"}, "--namespace is empty"},
		"a namespace without its value": {[]string{"--namespace="}, "--namespace is empty"},
		"a peering without a name":      {[]string{"--peering="}, "--peering is empty: give a value, or leave it out"},
		"a lease without a name":        {[]string{"--lease-name="}, "--lease-name is empty"},
		"a lease of a strange name":     {[]string{"--lease-name=A B"}, `settings.Replicas.LeaseName "A B" is no name of an object`},
		"probes without a port":         {[]string{"--liveness=http://0.0.0.0/"}, "it is no address with a port, such as 0.0.0.0:8080 or :8080"},
		"probes at a port that is none": {[]string{"--liveness=:http"}, "it is no address with a port"},
		"probes by https":               {[]string{"--liveness=https://0.0.0.0:1/"}, "it is served by http, and not by https"},
		"probes with a question":        {[]string{"--liveness=http://0.0.0.0:1/?a=b"}, "it has more than an address and a path"},
		"probes at no URL":              {[]string{"--liveness=http://%%"}, "it is no URL"},
		"protected metrics nowhere":     {[]string{"--metrics-secure"}, "--metrics-secure needs --metrics"},
		"a number below zero":           {[]string{"--workers=-1"}, "settings.Execution.Workers is negative"},
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
