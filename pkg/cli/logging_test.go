package cli

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
)

func TestVerbosityFlags(t *testing.T) {
	tests := map[string]struct{ arguments, want string }{
		"plain":                            {"--log-format plain", "[a/b] info\n[a/b] error {\"error\": \"EOF\"}\n"},
		"quiet":                            {"--log-format plain -q", "[a/b] error {\"error\": \"EOF\"}\n"},
		"verbose":                          {"--log-format plain -v", "[a/b] decision\n[a/b] info\n[a/b] error {\"error\": \"EOF\"}\n"},
		"debug":                            {"--log-format plain -v -d", "[a/b] request\n[a/b] decision\n[a/b] info\n[a/b] error {\"error\": \"EOF\"}\n"},
		"without prefixes":                 {"--log-format plain -q --no-log-prefix", "error {\"object\": \"a/b\", \"error\": \"EOF\"}\n"},
		"with a prefix flag that is false": {"--log-format plain -q --log-prefix=false", "error {\"object\": \"a/b\", \"error\": \"EOF\"}\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := run(t, newOperatorCommand("operator", func(_ context.Context, in Invocation) error {
				logger := in.Logger.WithValues("object", "a/b")
				logger.V(8).Info("body")
				logger.V(6).Info("request")
				logger.V(1).Info("decision")
				logger.Info("info")
				logger.Error(io.EOF, "error")
				return nil
			}), strings.Fields(test.arguments)...)
			if r.code != ExitOK || r.log != test.want {
				t.Errorf("got %+v", r)
			}
		})
	}
}

func TestJSON(t *testing.T) {
	tests := map[string]struct {
		arguments string
		want      []string
	}{
		"by default":       {"", []string{`"message":"here"`, `"object":{"name":"b","namespace":"a"}`}},
		"with prefixes":    {"--log-prefix", []string{`"message":"[a/b] here"`, `"object":{`}},
		"without prefixes": {"--no-log-prefix", []string{`"message":"here"`}},
		"for a collector":  {"--log-refkey k8s-obj", []string{`"k8s-obj":{"name":"b"`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := run(t, newOperatorCommand("operator", func(_ context.Context, in Invocation) error {
				in.Logger.Info("here", "object", "a/b")
				return nil
			}), append(strings.Fields(test.arguments), "--log-format=json")...)
			for _, want := range test.want {
				if !strings.Contains(r.log, want) {
					t.Errorf("got %+v, want %s", r, want)
				}
			}
		})
	}
}

func TestOnlyTerminalsGetColors(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if supportsColor(file) || supportsColor(io.Discard) {
		t.Error("a file gets colors")
	}
}

// With --debug, requests are logged without their content, which may be a Secret.
func TestRequestsAreLoggedWithoutTheirContent(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"key":"Y2FuYXJ5"}}`)
	}))
	defer server.Close()
	for name, test := range map[string]struct {
		flag   string
		logged int
	}{"with --debug": {"--debug", 2}, "with --verbose": {"--verbose", 0}} {
		t.Run(name, func(t *testing.T) {
			r := run(t, newOperatorCommand("operator", createSecrets), test.flag, "--kubeconfig", writeKubeconfig(t, server.URL))
			if got := strings.Count(r.log, "/api/v1/namespaces/ns/secrets"); r.code != ExitOK || got != test.logged {
				t.Errorf("got %d requests in the log, want %d:\n%s", got, test.logged, r.log)
			}
			for _, secret := range []string{"canary", "Y2FuYXJ5", "t0k3n"} {
				if strings.Contains(r.log, secret) {
					t.Errorf("the log has %q:\n%s", secret, r.log)
				}
			}
		})
	}
}

// createSecrets makes two requests: one with a logger in the context, as handlers do, and
// one without, as libraries do.
func createSecrets(ctx context.Context, in Invocation) error {
	config, err := in.Connect(ctx)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, StringData: map[string]string{"key": "canary"}}
	for _, ctx := range []context.Context{ctx, klog.NewContext(ctx, in.Logger)} {
		if _, err := client.CoreV1().Secrets("ns").Create(ctx, secret, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}
