package cli

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/kopf-go/kopf/pkg/kopf/settings"
)

func TestParse(t *testing.T) {
	tests := map[string]struct {
		arguments string
		want      Flags
	}{
		"nothing":                       {"", Flags{}},
		"all namespaces":                {"--all-namespaces", Flags{AllNamespaces: true}},
		"all namespaces, in short":      {"-A", Flags{AllNamespaces: true}},
		"a namespace":                   {"--namespace one", Flags{Namespaces: []string{"one"}}},
		"several namespaces":            {"-n one -n two,three", Flags{Namespaces: []string{"one", "two", "three"}}},
		"a pattern of namespaces":       {"-n one -n team-*,!team-x", Flags{Namespaces: []string{"one", "team-*,!team-x"}}},
		"a peering":                     {"--peering mine -p 7", Flags{Peering: "mine", Priority: 7}},
		"an operator under development": {"--dev", Flags{Dev: true}},
		"an operator on its own":        {"--standalone", Flags{Standalone: true}},
		"all there is to be logged":     {"--debug", Flags{Debug: true}},
		"more to be logged":             {"-v", Flags{Verbose: true}},
		"more and all to be logged":     {"-v -d", Flags{Verbose: true, Debug: true}},
		"less to be logged":             {"-q", Flags{Quiet: true}},
		"a kubeconfig":                  {"--kubeconfig=/a/b", Flags{Kubeconfig: "/a/b"}},
		"a context of the kubeconfig":   {"--context prod", Flags{Context: "prod"}},
		"flags after the end of flags":  {"-v --", Flags{Verbose: true}},
		"something that is not so":      {"--quiet=false -v", Flags{Verbose: true}},
		"less to be logged, in letters": {"--quiet", Flags{Quiet: true}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			got, err := Parse("operator", strings.Fields(test.arguments), &out)
			if err != nil || !reflect.DeepEqual(got, test.want) || out.Len() > 0 {
				t.Errorf("got %+v, %v, %q", got, err, out.String())
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
		"an argument":                   {[]string{"-v", "run"}, `unexpected argument "run": this command takes flags only`},
		"an argument after all flags":   {[]string{"--", "-v"}, `unexpected argument "-v"`},
		"one namespace, and all":        {[]string{"-A", "-n", "one"}, "--all-namespaces and --namespace exclude each other"},
		"two priorities":                {[]string{"--dev", "--priority=1"}, "--dev is a priority of its own: it excludes --priority"},
		"alone among peers":             {[]string{"--standalone", "--peering=a"}, "--standalone excludes --peering, --priority and --dev"},
		"less and more":                 {[]string{"-q", "-v"}, "--quiet excludes --verbose and --debug"},
		"less and all":                  {[]string{"-q", "-d"}, "--quiet excludes --verbose and --debug"},
		"a namespace without a name":    {[]string{"-n", ""}, "--namespace is empty: give a name, or --all-namespaces"},
		"a namespace too few":           {[]string{"-n", "one,"}, "--namespace is empty"},
		"a namespace without its value": {[]string{"--namespace="}, "--namespace is empty"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Parse("operator", test.arguments, &bytes.Buffer{})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %+v, %v, want %q in it", got, err, test.want)
			}
		})
	}
}

func TestHelp(t *testing.T) {
	for _, flag := range []string{"--help", "-h"} {
		var out bytes.Buffer
		_, err := Parse("operator", []string{"-v", flag}, &out)
		if !errors.Is(err, pflag.ErrHelp) || !strings.HasPrefix(out.String(), "operator is a Kubernetes operator. It runs until it is interrupted.") {
			t.Errorf("%s: got %v, %s", flag, err, out.String())
		}
		for _, want := range []string{"--all-namespaces", "--namespace", "--verbose", "--debug", "--quiet", "--kubeconfig", "--context"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: nothing about %s in %s", flag, want, out.String())
			}
		}
	}
}

// kubeconfig writes one with two contexts, of which "this" is the current one.
func kubeconfig(t *testing.T, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	text := `
apiVersion: v1
kind: Config
current-context: this
clusters:
- {name: here, cluster: {server: "` + server + `"}}
- {name: there, cluster: {server: "https://there.example.com"}}
users:
- {name: me, user: {token: t0k3n}}
contexts:
- {name: this, context: {cluster: here, user: me}}
- {name: that, context: {cluster: there, user: me}}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// nowhere makes sure that no cluster of the machine is found.
func nowhere(t *testing.T) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("HOME", t.TempDir())
}

func TestConfig(t *testing.T) {
	nowhere(t)
	path := kubeconfig(t, "https://here.example.com")
	tests := map[string]struct {
		flags       Flags
		environment string
		want        string
	}{
		"of the flag":                       {Flags{Kubeconfig: path}, "", "https://here.example.com"},
		"of the environment":                {Flags{}, path, "https://here.example.com"},
		"of another context":                {Flags{Kubeconfig: path, Context: "that"}, "", "https://there.example.com"},
		"of the flag, not the environment":  {Flags{Kubeconfig: path}, "/nonsense", "https://here.example.com"},
		"of the environment's other config": {Flags{Context: "that"}, path, "https://there.example.com"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", test.environment)
			config, err := test.flags.Config()
			if err != nil || config.Host != test.want || config.BearerToken != "t0k3n" {
				t.Errorf("got %+v, %v", config, err)
			}
		})
	}
}

func TestNoConfig(t *testing.T) {
	nowhere(t)
	tests := map[string]struct {
		flags Flags
		want  string
	}{
		"nothing anywhere":         {Flags{}, "no configuration has been provided"},
		"a file that is not there": {Flags{Kubeconfig: "/nonsense"}, "/nonsense"},
		"a context that is none":   {Flags{Kubeconfig: kubeconfig(t, "https://a"), Context: "other"}, `context "other" does not exist`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			config, err := test.flags.Config()
			if err == nil || !strings.Contains(err.Error(), "no cluster to connect to: set KUBECONFIG or use --kubeconfig") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %+v, %v", config, err)
			}
		})
	}
}

func TestWhatTheFlagsSayOfPeers(t *testing.T) {
	tests := map[string]struct {
		arguments string
		want      settings.Peering
	}{
		"nothing":           {"", settings.Peering{}},
		"a name":            {"--peering mine", settings.Peering{Name: "mine", Mandatory: true}},
		"a priority":        {"-p -3", settings.Peering{Priority: -3}},
		"under development": {"--dev", settings.Peering{Priority: settings.DevelopmentPriority}},
		"nobody":            {"--standalone", settings.Peering{Standalone: true}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			flags, err := Parse("operator", strings.Fields(test.arguments), &out)
			if got := flags.peering(); err != nil || got != test.want {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}
