package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/settings"
)

// newShops returns the commands of an operator that takes the name of its admission server from the environment.
func newShops(sel selector.Selector) *cobra.Command {
	operator := newOperatorCommand("shops", nil)
	addCommands(operator, func(s settings.Settings) (Program, error) {
		s.Name = "shops.example.com"
		p := Program{Settings: s, Handlers: registry.Handlers{{Kind: handler.OnCreate, ID: "open", Selector: sel, DeclaredAt: "shops/main.go:7"}}}
		if os.Getenv("WEBHOOK_SERVICE") != "" {
			p.Handlers = append(p.Handlers, &handler.Declaration{Kind: handler.OnValidate, ID: "check", Selector: sel, DeclaredAt: "shops/main.go:8"})
		}
		return p, nil
	})
	return operator
}

// printManifests runs the command, which sets the variables of the pods.
func printManifests(t *testing.T, sel selector.Selector, arguments ...string) result {
	t.Helper()
	hideCluster(t)
	for _, name := range []string{"POD_NAMESPACE", "WEBHOOK_SERVICE", "WEBHOOK_ADDRESS", "WEBHOOK_CERT_DIR", "WEBHOOK_MANAGED"} {
		t.Setenv(name, "")
	}
	return run(t, newShops(sel), append([]string{"manifests"}, arguments...)...)
}

func TestManifests(t *testing.T) {
	pods := selector.New("pods")
	for name, test := range map[string]struct {
		selector  selector.Selector
		arguments string
		code      int
		want      []string // of the output or of the log
		lack      string
	}{
		"by itself": {pods, "", ExitOK, []string{"name: shops-example-com\n", "namespace: shops-example-com-system\n", "image: shops-example-com:latest\n", "--leader-elect", "minAvailable: 1"}, "webhook"},
		"with names": {
			pods, "--name shops -n stores --image registry.example.com/shops:v1 --replicas 1", ExitOK,
			[]string{"name: shops\n", "namespace: stores\n", "image: registry.example.com/shops:v1\n", "--lease-name=shops.example.com"},
			"minAvailable",
		},
		"with shards": {pods, "--shards 4 --standalone", ExitOK, []string{"--shards=4", "--standalone", "verbs: [get, list, watch, create, update, delete]"}, "kopfpeerings"},
		"with webhooks, which the program has in its pods": {
			pods, "--with webhook", ExitOK, []string{"value: $(POD_NAMESPACE)/shops-example-com-webhook}", "kind: Service\n"}, "--metrics",
		},
		"for a namespace":         {pods, "--namespaced -n stores", ExitOK, []string{"--namespace=$(POD_NAMESPACE)", "kind: Role\n"}, "kind: ClusterRole\n"},
		"an unknown component":    {pods, "--with metric", ExitUsage, []string{`there is no component "metric": use metrics, webhook`}, "kind"},
		"an argument":             {pods, "more", ExitUsage, []string{`unexpected argument "more"`}, "kind"},
		"no definitions":          {pods, "--crds testdata", ExitError, []string{"there are no custom resource definitions"}, "kind"},
		"an unknown resource":     {selector.New("shops"), "", ExitError, []string{`shops/main.go:7: "shops"`, "--crds", "--discover"}, "kind"},
		"a cluster that is asked": {selector.New("shops"), "--discover", ExitError, []string{"no cluster to connect to"}, "kind"},
	} {
		t.Run(name, func(t *testing.T) {
			got := printManifests(t, test.selector, strings.Fields(test.arguments)...)
			for _, part := range test.want {
				if got.code != test.code || !strings.Contains(got.out+got.log, part) {
					t.Errorf("%q is missing, or the code is wrong: got %+v", part, got)
				}
			}
			if strings.Contains(got.out, test.lack) {
				t.Errorf("%q is there: got %s", test.lack, got.out)
			}
		})
	}
}

// In a kustomization, webhooks can be added later.
func TestManifestsAsKustomization(t *testing.T) {
	dir := t.TempDir()
	if got := printManifests(t, selector.New("pods"), "--kustomize", dir); got.code != ExitOK || got.out != "" {
		t.Fatalf("got %+v", got)
	}
	for _, file := range []string{"default/kustomization.yaml", "webhook/service.yaml", "certmanager/certificate.yaml"} {
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			t.Error(err)
		}
	}
}
