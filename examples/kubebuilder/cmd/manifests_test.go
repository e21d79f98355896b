package main

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// differences are permissions that only one of config/ and the command manifests has, with the reason.
var differences = map[string]string{
	"config:  configmaps create get list update watch":                               "handlers use a client: the markers of kubebuilder declare it, not kopf.Needs",
	"config:  services create get list update watch":                                 "as for configmaps",
	"config: apps deployments create update":                                         "as for configmaps",
	"config: batch jobs create delete get":                                           "as for configmaps",
	"manifests: apps deployments patch":                                              "the event handler reportReady of Deployments returns nothing to be written to them, which cannot be derived",
	"manifests: apps deployments/status patch":                                       "as for deployments",
	"manifests: admissionregistration.k8s.io validatingwebhookconfigurations create": "config/webhook has the configurations, without webhooks",
	"manifests: admissionregistration.k8s.io mutatingwebhookconfigurations create":   "as for validatingwebhookconfigurations",
}

// What the command manifests derives from the handlers is what config/ has, which is made by hand and by the
// markers of kubebuilder, with the differences above.
func TestTheRolesAreThoseOfManifests(t *testing.T) {
	var files [][]byte
	for _, name := range []string{"rbac/role.yaml", "rbac/leader_election_role.yaml", "rbac/metrics_auth_role.yaml", "webhook/role.yaml"} {
		text, err := os.ReadFile(filepath.Join("..", "config", name))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, text)
	}
	byHand := permissions(t, bytes.Join(files, []byte("\n---\n")))
	derived := permissions(t, printed(t))
	var got []string
	for resource, verbs := range byHand {
		if more := without(verbs, derived[resource]); len(more) > 0 {
			got = append(got, "config: "+resource+" "+strings.Join(more, " "))
		}
	}
	for resource, verbs := range derived {
		if more := without(verbs, byHand[resource]); len(more) > 0 {
			got = append(got, "manifests: "+resource+" "+strings.Join(more, " "))
		}
	}
	slices.Sort(got)
	if want := slices.Sorted(maps.Keys(differences)); !slices.Equal(got, want) {
		t.Errorf("got %q,\nwant %q", got, want)
	}
}

// The pods are as safe, and have as much time to stop. Their arguments and probes are those of a manager of
// controller-runtime.
func TestTheDeploymentIsThatOfManifests(t *testing.T) {
	text, err := os.ReadFile("../config/manager/manager.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var byHand, derived appsv1.Deployment
	decode(t, text, "Deployment", &byHand)
	decode(t, printed(t), "Deployment", &derived)
	a, b := byHand.Spec.Template.Spec, derived.Spec.Template.Spec
	if *byHand.Spec.Replicas != *derived.Spec.Replicas || *a.TerminationGracePeriodSeconds != *b.TerminationGracePeriodSeconds ||
		!equality.Semantic.DeepEqual(a.SecurityContext, b.SecurityContext) ||
		!equality.Semantic.DeepEqual(a.Containers[0].SecurityContext, b.Containers[0].SecurityContext) {
		t.Errorf("got %+v, want %+v", b, a)
	}
}

// printed returns what the command manifests prints.
func printed(t *testing.T) []byte {
	t.Helper()
	t.Setenv("POD_NAMESPACE", "") // the command sets them for its process
	t.Setenv("WEBHOOK_SERVICE", "")
	t.Setenv("WEBHOOK_ADDRESS", "")
	root := newCommand(flag.NewFlagSet("manager", flag.ContinueOnError))
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetArgs([]string{"manifests", "--crds=../config/crd/bases", "--name=sites", "--with=metrics,webhook"})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// permissions returns the verbs of all roles with bindings by the group, the resource, and the names of objects.
func permissions(t *testing.T, text []byte) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		var role rbacv1.ClusterRole // a Role has the same fields
		if err := yaml.Unmarshal(document, &role); err != nil {
			t.Fatal(err)
		}
		isForPeople := slices.ContainsFunc([]string{"-admin", "-editor", "-viewer"}, func(end string) bool { return strings.HasSuffix(role.Name, end) })
		if role.Kind != "Role" && role.Kind != "ClusterRole" || isForPeople {
			continue
		}
		for _, rule := range role.Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					of := strings.Join(append([]string{group, resource}, rule.ResourceNames...), " ")
					found[of] = append(found[of], rule.Verbs...)
				}
			}
		}
	}
	for of := range found {
		slices.Sort(found[of])
		found[of] = slices.Compact(found[of])
	}
	return found
}

// decode decodes the object of a kind.
func decode(t *testing.T, text []byte, kind string, into any) {
	t.Helper()
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		if bytes.Contains(document, []byte("\nkind: "+kind+"\n")) {
			if err := yaml.Unmarshal(document, into); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// without returns the words that are not among others.
func without(words, others []string) []string {
	return slices.DeleteFunc(slices.Clone(words), func(word string) bool { return slices.Contains(others, word) })
}
