package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
)

// quiet takes the loggers of the libraries back after a test.
func quiet(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		klog.ClearLogger()
		var verbosity klog.Level
		_ = verbosity.Set("0")
	})
}

func TestExitCodes(t *testing.T) {
	quiet(t)
	nowhere(t)
	path := kubeconfig(t, "https://here.example.com")
	tests := map[string]struct {
		arguments []string
		run       error
		code      int
		out       string
	}{
		"it ends well":        {[]string{"--kubeconfig", path}, nil, ExitOK, ""},
		"it ends badly":       {[]string{"--kubeconfig", path}, errors.New("the leader is lost"), ExitError, "operator: the leader is lost\n"},
		"there is no cluster": {nil, nil, ExitError, "operator: no cluster to connect to: set KUBECONFIG or use --kubeconfig"},
		"it is used wrongly":  {[]string{"--nonsense"}, nil, ExitUsage, "operator: unknown flag: --nonsense\nTry operator --help.\n"},
		"help is wanted":      {[]string{"--help"}, nil, ExitOK, "operator is a Kubernetes operator."},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			code := execute(t.Context(), "operator", test.arguments, &out, func(context.Context, Invocation) error { return test.run })
			if code != test.code || !strings.HasPrefix(out.String(), test.out) || (test.out == "" && out.Len() > 0) {
				t.Errorf("got %d, %s", code, out.String())
			}
		})
	}
}

func TestAnInvocationIsWhatTheCommandLineSays(t *testing.T) {
	quiet(t)
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, "mine")
	var out bytes.Buffer
	code := execute(ctx, "operator", []string{"--kubeconfig", kubeconfig(t, "https://a"), "-n", "one,two"}, &out, func(ctx context.Context, in Invocation) error {
		if ctx.Value(key{}) != "mine" || in.Config.Host != "https://a" || !slices.Equal(in.Namespaces, []string{"one", "two"}) {
			t.Errorf("got %+v", in)
		}
		in.Logger.Info("here I am")
		return nil
	})
	if code != ExitOK || !strings.Contains(out.String(), "INFO\there I am") {
		t.Errorf("got %d, %s", code, out.String())
	}
}

func TestLogLevels(t *testing.T) {
	tests := map[string]struct {
		flags Flags
		want  string
	}{
		"normally":   {Flags{}, "info error"},
		"quietly":    {Flags{Quiet: true}, "error"},
		"verbosely":  {Flags{Verbose: true}, "decision info error"},
		"everything": {Flags{Debug: true}, "request decision info error"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			logger := test.flags.logger(&out)
			logger.V(8).Info("body")
			logger.V(6).Info("request")
			logger.V(1).Info("decision")
			logger.Info("info")
			logger.Error(io.EOF, "error")
			var got []string
			for line := range strings.Lines(out.String()) {
				got = append(got, strings.Split(strings.TrimSpace(line), "\t")[2])
			}
			if strings.Join(got, " ") != test.want || strings.Contains(out.String(), "main_test.go") {
				t.Errorf("got %s", out.String())
			}
		})
	}
}

// Requests are logged when everything is to be, but never what is in them: that
// may be a Secret.
func TestRequestsAreLoggedWithoutTheirContent(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"key":"Y2FuYXJ5"}}`)
	}))
	defer server.Close()
	for name, test := range map[string]struct {
		flag   string
		logged bool
	}{"with --debug": {"--debug", true}, "with --verbose": {"--verbose", false}} {
		t.Run(name, func(t *testing.T) {
			quiet(t)
			var out bytes.Buffer
			code := execute(t.Context(), "operator", []string{test.flag, "--kubeconfig", kubeconfig(t, server.URL)}, &out, func(ctx context.Context, in Invocation) error {
				client, err := kubernetes.NewForConfig(in.Config)
				if err != nil {
					return err
				}
				secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, StringData: map[string]string{"key": "canary"}}
				// Handlers have a logger in their context, libraries have none.
				for _, ctx := range []context.Context{ctx, klog.NewContext(ctx, in.Logger)} {
					if _, err := client.CoreV1().Secrets("ns").Create(ctx, secret, metav1.CreateOptions{}); err != nil {
						return err
					}
				}
				return nil
			})
			want := 0
			if test.logged {
				want = 2
			}
			if got := strings.Count(out.String(), "/api/v1/namespaces/ns/secrets"); code != ExitOK || got != want {
				t.Errorf("got %d requests in the log, want %d:\n%s", got, want, out.String())
			}
			for _, secret := range []string{"canary", "Y2FuYXJ5", "t0k3n"} {
				if strings.Contains(out.String(), secret) {
					t.Errorf("the log has %q:\n%s", secret, out.String())
				}
			}
		})
	}
}
