package cli

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func TestTheEnvironment(t *testing.T) {
	tests := map[string]struct {
		variables map[string]string
		arguments string
		want      func(Invocation) bool
	}{
		"a list":                  {map[string]string{"KOPF_NAMESPACE": "a,b"}, "", func(in Invocation) bool { return slices.Equal(in.Settings.Scope.Namespaces, []string{"a", "b"}) }},
		"a boolean":               {map[string]string{"KOPF_LEADER_ELECT": "true"}, "", func(in Invocation) bool { return in.Settings.Replicas.LeaderElection }},
		"a duration":              {map[string]string{"KOPF_GRACE_PERIOD": "3s"}, "", func(in Invocation) bool { return in.Settings.Execution.GracePeriod == 3*time.Second }},
		"an endpoint":             {map[string]string{"KOPF_LIVENESS": "http://:1/a"}, "", func(in Invocation) bool { return in.Settings.Health.Address == ":1" }},
		"a peering object":        {map[string]string{"KOPF_PEERING": "mine"}, "", func(in Invocation) bool { return in.Settings.Peering.Mandatory }},
		"an empty variable":       {map[string]string{"KOPF_NAMESPACE": "", "KOPF_DEV": ""}, "", func(in Invocation) bool { return len(in.Settings.Scope.Namespaces) == 0 }},
		"a flag takes precedence": {map[string]string{"KOPF_WORKERS": "3"}, "--workers 5", func(in Invocation) bool { return in.Settings.Execution.Workers == 5 }},
		"a flag that is false takes precedence": {map[string]string{"KOPF_DEV": "true"}, "--dev=false", func(in Invocation) bool {
			return in.Settings.Peering.Priority == 0
		}},
		"a flag disables the variable that it excludes": {map[string]string{"KOPF_NAMESPACE": "a"}, "-A", func(in Invocation) bool {
			return len(in.Settings.Scope.Namespaces) == 0
		}},
		"a flag disables several variables": {map[string]string{"KOPF_PRIORITY": "3", "KOPF_PEERING": "mine"}, "--standalone", func(in Invocation) bool {
			return in.Settings.Peering.Standalone && !in.Settings.Peering.Mandatory
		}},
		"the excluded flag disables the variable": {map[string]string{"KOPF_STANDALONE": "true"}, "--peering=mine", func(in Invocation) bool { return !in.Settings.Peering.Standalone }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for variable, value := range test.variables {
				t.Setenv(variable, value)
			}
			in, r := runOperator(t, strings.Fields(test.arguments)...)
			if r.code != ExitOK || !test.want(in) {
				t.Errorf("got %+v, %+v", in.Settings, r)
			}
		})
	}
}

func TestInvalidVariables(t *testing.T) {
	tests := map[string]struct {
		variables map[string]string
		want      string
	}{
		"an invalid boolean":         {map[string]string{"KOPF_DEV": "yes"}, `KOPF_DEV="yes" in the environment: expected true or false`},
		"an invalid number":          {map[string]string{"KOPF_WORKERS": "many"}, `KOPF_WORKERS="many" in the environment: expected an integer`},
		"an invalid address":         {map[string]string{"KOPF_METRICS": "9090"}, `KOPF_METRICS="9090" in the environment: expected an address with a port`},
		"two exclusive variables":    {map[string]string{"KOPF_STANDALONE": "1", "KOPF_PEERING": "a"}, "--standalone cannot be used with --peering"},
		"a namespace without a name": {map[string]string{"KOPF_NAMESPACE": "a,"}, "--namespace is empty"},
		"an unknown format":          {map[string]string{"KOPF_LOG_FORMAT": "xml"}, `--log-format is "xml"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for variable, value := range test.variables {
				t.Setenv(variable, value)
			}
			if _, r := runOperator(t); r.code != ExitUsage || !strings.Contains(r.log, test.want) {
				t.Errorf("got %+v", r)
			}
		})
	}
}

func TestEveryFlagHasItsOwnVariable(t *testing.T) {
	seen := map[string]string{}
	newOperatorCommand("operator", nil).Flags().VisitAll(func(flag *pflag.Flag) {
		if name := environmentVariable(flag); seen[name] != "" {
			t.Errorf("%s is for --%s and --%s", name, flag.Name, seen[name])
		} else {
			seen[name] = flag.Name
		}
	})
}
