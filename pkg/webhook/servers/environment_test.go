package servers_test

import (
	"strings"
	"testing"

	"github.com/kopf-go/kopf/pkg/settings"
	"github.com/kopf-go/kopf/pkg/webhook/servers"
)

// in sets the variables of a pod. Those that are not given are unset.
func in(t *testing.T, variables map[string]string) {
	t.Helper()
	for _, name := range []string{"WEBHOOK_SERVICE", "WEBHOOK_ADDRESS", "WEBHOOK_CERT_DIR", "WEBHOOK_MANAGED"} {
		t.Setenv(name, variables[name])
	}
}

func TestThePodsSayWhereTheServerIs(t *testing.T) {
	base := map[string]string{"WEBHOOK_SERVICE": "stores/shops-webhook", "WEBHOOK_ADDRESS": ":9444"}
	with := func(more map[string]string) map[string]string {
		all := map[string]string{}
		for _, each := range []map[string]string{base, more} {
			for name, value := range each {
				all[name] = value
			}
		}
		return all
	}
	for name, test := range map[string]struct {
		variables map[string]string
		given     string
		managed   string
		want      servers.Server
	}{
		"a shared certificate":       {base, "", "shops", servers.Server{Secret: "stores/shops-webhook"}},
		"another configuration":      {base, "own.example.com", "own.example.com", servers.Server{Secret: "stores/shops-webhook"}},
		"files":                      {with(map[string]string{"WEBHOOK_CERT_DIR": "/certs"}), "", "shops", servers.Server{CertFile: "/certs/tls.crt", KeyFile: "/certs/tls.key", CAFile: "/certs/ca.crt"}},
		"files and a manager of OLM": {with(map[string]string{"WEBHOOK_CERT_DIR": "/certs", "WEBHOOK_MANAGED": "false"}), "own", "", servers.Server{CertFile: "/certs/tls.crt", KeyFile: "/certs/tls.key"}},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, test.variables)
			admission := settings.Admission{Managed: test.given}
			found, err := servers.FromEnvironment(&admission, "shops")
			got, isServer := admission.Server.(servers.Server)
			if err != nil || !found || !isServer || admission.Managed != test.managed {
				t.Fatalf("got %t, %v, %+v", found, err, admission)
			}
			if s := got.Service; s.Namespace != "stores" || s.Name != "shops-webhook" || *s.Port != 9444 || got.Port != 9444 || got.Addr != "" {
				t.Errorf("got %+v", got)
			}
			if got.Secret != test.want.Secret || got.CertFile != test.want.CertFile || got.KeyFile != test.want.KeyFile || got.CAFile != test.want.CAFile {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestWithoutAServiceNothingChanges(t *testing.T) {
	in(t, nil)
	admission := settings.Admission{Managed: "own"}
	if found, err := servers.FromEnvironment(&admission, "shops"); found || err != nil || admission.Server != nil || admission.Managed != "own" {
		t.Errorf("got %t, %v, %+v", found, err, admission)
	}
}

func TestMistakesInTheVariablesOfPods(t *testing.T) {
	for want, variables := range map[string]map[string]string{
		`WEBHOOK_SERVICE is "shops", and must be a namespace and a name`:   {"WEBHOOK_SERVICE": "shops", "WEBHOOK_ADDRESS": ":1"},
		`WEBHOOK_ADDRESS is "", and must be an address to listen at`:       {"WEBHOOK_SERVICE": "a/b"},
		`WEBHOOK_ADDRESS is ":99999", and must be an address to listen at`: {"WEBHOOK_SERVICE": "a/b", "WEBHOOK_ADDRESS": ":99999"},
		`WEBHOOK_ADDRESS is "https", and must be an address to listen at`:  {"WEBHOOK_SERVICE": "a/b", "WEBHOOK_ADDRESS": "https"},
	} {
		in(t, variables)
		admission := settings.Admission{}
		if found, err := servers.FromEnvironment(&admission, "shops"); found || err == nil || !strings.Contains(err.Error(), want) || admission.Server != nil {
			t.Errorf("got %t, %v, want %q", found, err, want)
		}
	}
}
