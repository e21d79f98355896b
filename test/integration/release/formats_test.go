package release

import (
	"encoding/json"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kopf-go/kopf/pkg/cli"
)

// Scripts can read each answer, in both formats, and nothing but the answer.
func TestAnswersAreAvailableAsJSONAndYAML(t *testing.T) {
	s := newScene(t, true)
	s.create(1, func(obj *unstructured.Unstructured) { obj.SetAnnotations(map[string]string{prefix + "fn": open}) })
	object := "things." + s.resource.Group + "/a00000"
	for name, test := range map[string]struct {
		arguments []string
		keys      []any
		code      int
	}{
		"explain":   {[]string{"explain", object, "-n", s.namespace}, []any{"object", "state", "handlers"}, cli.ExitOK},
		"plan":      {[]string{"plan", "-n", s.namespace}, []any{"resources"}, cli.ExitOK},
		"peers":     {[]string{"peers", "-n", s.namespace}, []any{"peering", "objects"}, cli.ExitOK},
		"rbac":      {[]string{"rbac"}, []any{"items"}, cli.ExitOK},
		"release":   {[]string{"release", "--all", "--dry-run"}, []any{"resources", "left", "dryRun", "refused"}, cli.ExitError},
		"suspend":   {[]string{"suspend", object, "-n", s.namespace, "--forever"}, []any{"message"}, cli.ExitOK},
		"skip":      {[]string{"skip", object, "fn", "-n", s.namespace}, []any{"message"}, cli.ExitOK},
		"unsuspend": {[]string{"unsuspend", object, "-n", s.namespace}, []any{"message"}, cli.ExitOK},
	} {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			asJSON, asYAML := s.command(append(test.arguments, "-o", "json")...), s.command(append(test.arguments, "-o", "yaml")...)
			g.Expect(cli.ExitCode(asJSON.err)).To(gomega.Equal(test.code), "%v", asJSON.err)
			g.Expect(cli.ExitCode(asYAML.err)).To(gomega.Equal(test.code), "%v", asYAML.err)
			var first, second map[string]any
			g.Expect(json.Unmarshal([]byte(asJSON.out), &first)).To(gomega.Succeed(), asJSON.out)
			g.Expect(yaml.UnmarshalStrict([]byte(asYAML.out), &second)).To(gomega.Succeed(), asYAML.out)
			for _, key := range test.keys {
				g.Expect(first).To(gomega.HaveKey(key))
			}
			for key := range first {
				g.Expect(second).To(gomega.HaveKey(key))
			}
			g.Expect(s.command(append(test.arguments, "-o", "xml")...).err).To(gomega.MatchError(`--output is "xml": use json or yaml`))
		})
	}
}
