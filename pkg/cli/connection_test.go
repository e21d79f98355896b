package cli

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func TestRestConfig(t *testing.T) {
	hideCluster(t)
	path := writeKubeconfig(t, "https://here.example.com")
	tests := map[string]struct {
		connection  connection
		environment string
		want        string
	}{
		"of the flag":                       {connection{kubeconfig: path}, "", "https://here.example.com"},
		"of the environment":                {connection{}, path, "https://here.example.com"},
		"of another context":                {connection{kubeconfig: path, overrides: clientcmd.ConfigOverrides{CurrentContext: "that"}}, "", "https://there.example.com"},
		"of the flag, not the environment":  {connection{kubeconfig: path}, "/nonsense", "https://here.example.com"},
		"of the environment's other config": {connection{overrides: clientcmd.ConfigOverrides{CurrentContext: "that"}}, path, "https://there.example.com"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", test.environment)
			config, err := test.connection.restConfig()
			if err != nil || config.Host != test.want || config.BearerToken != "t0k3n" {
				t.Errorf("got %+v, %v", config, err)
			}
		})
	}
}

func TestTheReasonForNoClusterIsNamed(t *testing.T) {
	hideCluster(t)
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		connection           connection
		variable, want, lack string
	}{
		"nothing":                {connection{}, "", "no cluster to connect to: set KUBECONFIG or use --kubeconfig: " + clientcmd.RecommendedHomeFile + " does not exist or selects no cluster, and this is no pod with a service account", "MASTER"},
		"a missing file":         {connection{}, "/none", "the file in KUBECONFIG does not exist: /none", "MASTER"},
		"one of two is missing":  {connection{}, empty + ":/none", "the file in KUBECONFIG does not exist: /none", empty},
		"an empty file":          {connection{}, empty, "the file in KUBECONFIG selects no cluster: " + empty, "MASTER"},
		"an empty file in flags": {connection{kubeconfig: empty, given: []string{"--kubeconfig"}}, "", "no cluster to connect to with --kubeconfig: the file " + empty + " selects no cluster", "MASTER"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", test.variable)
			_, err := test.connection.restConfig()
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), test.lack) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestConnectWithoutACluster(t *testing.T) {
	hideCluster(t)
	tests := map[string]struct {
		connection connection
		want       string
	}{
		"no kubeconfig":      {connection{}, "set KUBECONFIG or use --kubeconfig: the file in KUBECONFIG does not exist: " + os.Getenv("KUBECONFIG")},
		"a missing file":     {connection{kubeconfig: "/nonsense"}, "/nonsense"},
		"an unknown context": {connection{kubeconfig: writeKubeconfig(t, "https://a"), overrides: clientcmd.ConfigOverrides{CurrentContext: "other"}}, `context "other" does not exist`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			config, err := test.connection.connect(t.Context())
			if err == nil || !strings.HasPrefix(err.Error(), "no cluster to connect to") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %+v, %v", config, err)
			}
		})
	}
}

// startServer starts a server that responds to every request with a status code.
func startServer(t *testing.T, code int, start func(http.Handler) *httptest.Server) string {
	t.Helper()
	server := start(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = w.Write([]byte(`{"major":"1"}`))
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(server.Close)
	return server.URL
}

// nothingListens is an address where nothing listens. A port that was free a moment ago may be
// given to another server.
const nothingListens = "https://127.0.0.1:1"

func TestCheckReachable(t *testing.T) {
	tests := map[string]struct {
		host string
		want string // empty: the cluster is reachable
	}{
		"a cluster":                              {startServer(t, http.StatusOK, httptest.NewServer), ""},
		"a cluster that forbids the request":     {startServer(t, http.StatusForbidden, httptest.NewServer), ""},
		"a cluster that rejects the credentials": {startServer(t, http.StatusUnauthorized, httptest.NewServer), "rejects the credentials: log in again"},
		"a cluster that is down":                 {nothingListens, "cannot be reached because nothing listens at that address: is the cluster running, and is this the right kubeconfig? (connection refused)"},
		"a cluster with an unknown authority":    {startServer(t, http.StatusOK, httptest.NewTLSServer), "cannot be verified: does the kubeconfig have its certificate authority? (x509: "},
		"a host that does not exist":             {"https://nowhere.invalid", "cannot be reached because the host does not exist"},
		"a broken server":                        {startServer(t, http.StatusBadGateway, httptest.NewServer), "cannot be reached: "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := checkReachable(t.Context(), &rest.Config{Host: test.host})
			if test.want == "" && err != nil {
				t.Errorf("got %v", err)
			}
			if test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), test.host) || strings.Contains(err.Error(), "\n")) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestConnectionFlags(t *testing.T) {
	hideCluster(t)
	path := writeKubeconfig(t, "https://here.example.com")
	in, r := runOperator(t, "--kubeconfig", path, "--server=https://other.example.com", "--as=somebody", "--as-group=a", "--as-group=b",
		"--tls-server-name=name", "--insecure-skip-tls-verify=false")
	config, err := in.connection.restConfig()
	if r.code != ExitOK || err != nil || config.Host != "https://other.example.com" || config.ServerName != "name" || config.BearerToken != "t0k3n" {
		t.Errorf("got %+v, %v, %+v", config, err, r)
	}
	if who := config.Impersonate; who.UserName != "somebody" || !slices.Equal(who.Groups, []string{"a", "b"}) {
		t.Errorf("got the impersonation %+v", who)
	}
	if got := in.ConnectionFlags(); !slices.Equal(got, []string{"--as", "--as-group", "--kubeconfig", "--server", "--tls-server-name"}) {
		t.Errorf("got %q", got)
	}
	if in, _ := runOperator(t); len(in.ConnectionFlags()) > 0 {
		t.Errorf("got %q without flags", in.ConnectionFlags())
	}
	for _, flag := range []string{"--token=x", "--password=x", "--username=x", "--request-timeout=1s"} {
		if _, r := runOperator(t, flag); r.code != ExitUsage {
			t.Errorf("%s: got %+v", flag, r)
		}
	}
}
