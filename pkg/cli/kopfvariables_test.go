package cli

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kopf-go/kopf/pkg/settings"
)

// The options of Kopf's command line 1.44, as flags and as variables.
func TestTheOptionsOfKopf(t *testing.T) {
	tests := map[string]struct {
		arguments string
		variable  string // NAME=value with the same meaning; empty: none
		want      func(settings.Settings) bool
	}{
		"verbose":                        {"-v", "KOPF_RUN_VERBOSE=true", func(settings.Settings) bool { return true }},
		"debug":                          {"-d", "KOPF_RUN_DEBUG=yes", func(settings.Settings) bool { return true }},
		"quiet":                          {"-q", "KOPF_RUN_QUIET=on", func(settings.Settings) bool { return true }},
		"log format":                     {"--log-format=json", "KOPF_RUN_LOG_FORMAT=json", func(settings.Settings) bool { return true }},
		"log prefix":                     {"--log-prefix", "KOPF_RUN_LOG_PREFIX=1", func(settings.Settings) bool { return true }},
		"no log prefix":                  {"--no-log-prefix", "", func(settings.Settings) bool { return true }},
		"log refkey":                     {"--log-refkey=k8s-obj", "KOPF_RUN_LOG_REFKEY=k8s-obj", func(settings.Settings) bool { return true }},
		"all namespaces":                 {"-A", "KOPF_RUN_CLUSTERWIDE=true", func(s settings.Settings) bool { return len(s.Scope.Namespaces) == 0 }},
		"a namespace":                    {"-n a", "KOPF_RUN_NAMESPACE=a", func(s settings.Settings) bool { return slices.Equal(s.Scope.Namespaces, []string{"a"}) }},
		"namespaces":                     {"-n a -n b-*", "KOPF_RUN_NAMESPACES=a b-*", func(s settings.Settings) bool { return slices.Equal(s.Scope.Namespaces, []string{"a", "b-*"}) }},
		"standalone":                     {"--standalone", "KOPF_RUN_STANDALONE=true", func(s settings.Settings) bool { return s.Peering.Standalone }},
		"development":                    {"--dev", "KOPF_RUN_DEV=true", func(s settings.Settings) bool { return s.Peering.Priority == 666 }},
		"liveness":                       {"-L http://:8080/a", "KOPF_RUN_LIVENESS_ENDPOINT=http://:8080/a", func(s settings.Settings) bool { return s.Health.Address == ":8080" }},
		"peering":                        {"-P mine", "KOPF_RUN_PEERING=mine", func(s settings.Settings) bool { return s.Peering.Name == "mine" && s.Peering.Mandatory }},
		"priority":                       {"-p 5", "KOPF_RUN_PRIORITY=5", func(s settings.Settings) bool { return s.Peering.Priority == 5 }},
		"a priority that --dev replaces": {"--dev -p 5", "", func(s settings.Settings) bool { return s.Peering.Priority == 666 }},
		"a priority that --standalone does not use": {"--standalone -p 5", "", func(s settings.Settings) bool { return s.Peering.Standalone }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in, r := runOperator(t, strings.Fields(test.arguments)...)
			if r.code != ExitOK || !test.want(in.Settings) {
				t.Errorf("flags: got %+v, %+v", in.Settings, r)
			}
			if test.variable == "" {
				return
			}
			variable, value, _ := strings.Cut(test.variable, "=")
			t.Setenv(variable, value)
			in, r = runOperator(t)
			if r.code != ExitOK || !test.want(in.Settings) || strings.Contains(r.log, "unknown") {
				t.Errorf("variable: got %+v, %+v", in.Settings, r)
			}
		})
	}
}

func TestTheOptionsOfFreezeInKopf(t *testing.T) {
	f := newFreezeCommand()
	lifetime, priority, dev := f.Flags().Lookup("lifetime"), f.Flags().Lookup("priority"), f.Flags().Lookup("dev")
	if err := f.ParseFlags(strings.Fields("-n a -A=false -i me --dev -P mine -p 5 -t 60 -m text -v -d=false -q=false")); err != nil {
		t.Fatal(err)
	}
	if lifetime.Value.String() != time.Minute.String() || priority.Value.String() != "5" || dev.Value.String() != "true" {
		t.Errorf("got %s, %s, %s", lifetime.Value, priority.Value, dev.Value)
	}
	for variable, value := range map[string]string{"KOPF_FREEZE_LIFETIME": "60", "KOPF_FREEZE_PRIORITY": "7", "KOPF_FREEZE_NAMESPACES": "a b", "KOPF_FREEZE_PEERING": "mine"} {
		t.Setenv(variable, value)
	}
	f = newFreezeCommand()
	if err := applyEnvironment(f.Flags(), "freeze", environment); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"lifetime": "1m0s", "priority": "7", "namespace": "[a,b]", "peering": "mine"} {
		if got := f.Flags().Lookup(name).Value.String(); got != want {
			t.Errorf("--%s is %q, want %q", name, got, want)
		}
	}
	if err := newResumeCommand().ParseFlags(strings.Fields("-n a -i me -P mine -v")); err != nil {
		t.Error(err)
	}
}

func TestTheVersionIsAnOptionToo(t *testing.T) {
	if r := run(t, newKopfCommand(nil, nil), "--version"); r.code != ExitOK || !strings.HasPrefix(r.out, "kopf ") {
		t.Errorf("got %+v", r)
	}
}

func TestContradictingVariables(t *testing.T) {
	t.Setenv("KOPF_PRIORITY", "5")
	t.Setenv("KOPF_RUN_PRIORITY", "5")
	if _, r := runOperator(t); r.code != ExitOK {
		t.Errorf("got %+v", r)
	}
	t.Setenv("KOPF_RUN_PRIORITY", "6")
	want := `KOPF_PRIORITY="5" and KOPF_RUN_PRIORITY="6" in the environment contradict each other: set only one of them`
	if _, r := runOperator(t); r.code != ExitUsage || !strings.Contains(r.log, want) {
		t.Errorf("got %+v", r)
	}
	if in, r := runOperator(t, "-p", "7"); r.code != ExitOK || in.Settings.Peering.Priority != 7 {
		t.Errorf("got %+v", r)
	}
}

func TestUnknownVariablesAreReported(t *testing.T) {
	unknown := unknownVariables([]string{
		"KOPF_NAMESPACE=a", "KOPF_RUN_NAMESPACES=a", "KOPF_FREEZE_LIFETIME=1", "KOPF_RESUME_ID=a", "PATH=/bin", "KOPFX=1",
		"KOPF_NAMESPACES=a", "KOPF_RUN_MODULES=a",
		"KOPF_SERVICE_HOST=10.0.0.1", "KOPF_ADMISSION_SERVICE_PORT_HTTPS=443", "KOPF_PORT=tcp://10.0.0.1:443", "KOPF_PORT_443_TCP_ADDR=10.0.0.1",
	})
	if want := []string{"KOPF_NAMESPACES", "KOPF_RUN_MODULES"}; !slices.Equal(unknown, want) {
		t.Errorf("got %q, want %q", unknown, want)
	}
	t.Setenv("KOPF_NAMESPACES", "a")
	if _, r := runOperator(t); r.code != ExitOK || !strings.Contains(r.log, "An environment variable is unknown and has no effect.") || !strings.Contains(r.log, "KOPF_NAMESPACES") {
		t.Errorf("got %+v", r)
	}
}
