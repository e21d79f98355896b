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
		"a list":            {map[string]string{"KOPF_NAMESPACE": "a,b"}, "", func(in Invocation) bool { return slices.Equal(in.Settings.Scope.Namespaces, []string{"a", "b"}) }},
		"a truth":           {map[string]string{"KOPF_LEADER_ELECT": "true"}, "", func(in Invocation) bool { return in.Settings.Replicas.LeaderElection }},
		"a time":            {map[string]string{"KOPF_GRACE_PERIOD": "3s"}, "", func(in Invocation) bool { return in.Settings.Execution.GracePeriod == 3*time.Second }},
		"an endpoint":       {map[string]string{"KOPF_LIVENESS": "http://:1/a"}, "", func(in Invocation) bool { return in.Settings.Health.Address == ":1" }},
		"a required object": {map[string]string{"KOPF_PEERING": "mine"}, "", func(in Invocation) bool { return in.Settings.Peering.Mandatory }},
		"something empty":   {map[string]string{"KOPF_NAMESPACE": "", "KOPF_DEV": ""}, "", func(in Invocation) bool { return len(in.Settings.Scope.Namespaces) == 0 }},
		"a flag that wins":  {map[string]string{"KOPF_WORKERS": "3"}, "--workers 5", func(in Invocation) bool { return in.Settings.Execution.Workers == 5 }},
		"a flag that wins though it says no": {map[string]string{"KOPF_DEV": "true"}, "--dev=false", func(in Invocation) bool {
			return in.Settings.Peering.Priority == 0
		}},
		"a flag that makes no sense with it": {map[string]string{"KOPF_NAMESPACE": "a"}, "-A", func(in Invocation) bool {
			return len(in.Settings.Scope.Namespaces) == 0
		}},
		"several of them": {map[string]string{"KOPF_PRIORITY": "3", "KOPF_PEERING": "mine"}, "--standalone", func(in Invocation) bool {
			return in.Settings.Peering.Standalone && !in.Settings.Peering.Mandatory
		}},
		"the other way round": {map[string]string{"KOPF_STANDALONE": "true"}, "--dev", func(in Invocation) bool { return !in.Settings.Peering.Standalone }},
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

func TestRefusedVariables(t *testing.T) {
	tests := map[string]struct {
		variables map[string]string
		want      string
	}{
		"a truth that is none":       {map[string]string{"KOPF_DEV": "yes"}, `KOPF_DEV="yes" in the environment: it is neither true nor false`},
		"a number that is none":      {map[string]string{"KOPF_WORKERS": "many"}, `KOPF_WORKERS="many" in the environment: it is no whole number`},
		"a place that is none":       {map[string]string{"KOPF_METRICS": "9090"}, `KOPF_METRICS="9090" in the environment: it is no address with a port`},
		"two that make no sense":     {map[string]string{"KOPF_DEV": "1", "KOPF_PRIORITY": "5"}, "--dev is a priority of its own: it excludes --priority"},
		"a namespace without a name": {map[string]string{"KOPF_NAMESPACE": "a,"}, "--namespace is empty"},
		"a format that is none":      {map[string]string{"KOPF_LOG_FORMAT": "xml"}, `--log-format is "xml"`},
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

func TestNoTwoFlagsHaveOneVariable(t *testing.T) {
	seen := map[string]string{}
	newOperatorCommand("operator", nil).Flags().VisitAll(func(flag *pflag.Flag) {
		if name := environmentVariable(flag); seen[name] != "" {
			t.Errorf("%s is for --%s and --%s", name, flag.Name, seen[name])
		} else {
			seen[name] = flag.Name
		}
	})
}
