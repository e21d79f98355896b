package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// kubeconfigFor writes a kubeconfig of a server, and returns its path.
func kubeconfigFor(t *testing.T, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, kubeconfigOf(server), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func kubeconfigOf(server string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","current-context":"here",
		"clusters":[{"name":"one","cluster":{"server":%q}}],
		"contexts":[{"name":"here","context":{"cluster":"one","user":"me","namespace":"ns"}}],
		"users":[{"name":"me","user":{}}]}`, server)
}

func serve(t *testing.T, status int) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
		answer.Header().Set("Content-Type", "application/json")
		answer.WriteHeader(status)
		_, _ = fmt.Fprint(answer, `{"gitVersion":"v1.2.3"}`)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestReach(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	tests := map[string]struct {
		path, version, problem string
	}{
		"a cluster that answers":     {path: kubeconfigFor(t, serve(t, 200)), version: "v1.2.3"},
		"a server that is down":      {path: kubeconfigFor(t, closed.URL), problem: "reaches no cluster"},
		"a server that fails":        {path: kubeconfigFor(t, serve(t, 500)), problem: "reaches no cluster"},
		"an empty file":              {path: os.DevNull, problem: "contains no cluster"},
		"a cluster that refuses":     {path: kubeconfigFor(t, serve(t, 401)), problem: "denies access"},
		"a file that does not exist": {path: filepath.Join(t.TempDir(), "none"), problem: "reading the kubeconfig"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			found, err := reach(test.path)
			if test.problem != "" {
				if err == nil || !strings.Contains(err.Error(), test.problem) {
					t.Errorf("got %v, want: %s", err, test.problem)
				}
				return
			}
			if err != nil || found.version != test.version || found.context != "here" || found.namespace != "ns" {
				t.Errorf("got %+v, %v", found, err)
			}
		})
	}
}

// Whoever tries an example must not get its definitions in a cluster by accident.
func TestTheClusterOfTheKubeconfigMustBeAskedFor(t *testing.T) {
	tests := map[string]struct {
		args    []string
		want    string
		problem bool
	}{
		"nothing said":   {[]string{"01-minimal"}, temporary, false},
		"no value":       {[]string{"-cluster=", "01-minimal"}, "", true},
		"another word":   {[]string{"-cluster=prod", "01-minimal"}, "", true},
		"asked for":      {[]string{"-cluster=current", "01-minimal"}, current, false},
		"the other word": {[]string{"-cluster=temporary", "01-minimal"}, temporary, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			opts, err := parse(test.args)
			if opts.cluster != test.want || (err != nil) != test.problem {
				t.Errorf("got %q, %v", opts.cluster, err)
			}
		})
	}
}

func TestKubeconfigIsPrivateAndReplacesOnlyLeftovers(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CACHE_HOME", home)
	dead := kubeconfigOf("http://127.0.0.1:1")
	alive := kubeconfigOf(serve(t, 200))
	steps := []struct {
		content []byte
		want    string
	}{{dead, "one.kubeconfig"}, {alive, "one.kubeconfig"}, {dead, "one-2.kubeconfig"}, {alive, "one-2.kubeconfig"}}
	for _, step := range steps {
		path, err := writeKubeconfig("one", step.content)
		if err != nil || filepath.Base(path) != step.want {
			t.Fatalf("got %q, %v, want %q", path, err, step.want)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
	}
}

func TestErrorForAnUnknownExampleNamesTheVariable(t *testing.T) {
	for _, name := range []string{"", "no-such-example"} {
		_, err := findExample(name)
		if err == nil || !strings.Contains(err.Error(), "EXAMPLE") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
