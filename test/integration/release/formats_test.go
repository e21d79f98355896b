package release

import (
	"encoding/json"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Scripts can read each answer, in both formats, and nothing but the answer.
func TestAnswersAreAvailableAsJSONAndYAML(t *testing.T) {
	s := newScene(t, true)
	s.create(1, func(obj *unstructured.Unstructured) { obj.SetAnnotations(map[string]string{prefix + "fn": open}) })
	object := "things." + s.resource.Group + "/a00000"
	for name, test := range map[string]struct {
		arguments []string
		keys      []any
	}{
		"explain":   {[]string{"explain", object, "-n", s.namespace}, []any{"object", "state", "handlers"}},
		"plan":      {[]string{"plan", "-n", s.namespace}, []any{"resources"}},
		"peers":     {[]string{"peers", "-n", s.namespace}, []any{"peering", "objects"}},
		"rbac":      {[]string{"rbac"}, []any{"items"}},
		"release":   {[]string{"release", "--all", "--dry-run"}, []any{"resources", "left", "dryRun", "refused"}},
		"suspend":   {[]string{"suspend", object, "-n", s.namespace, "--forever"}, []any{"message"}},
		"skip":      {[]string{"skip", object, "fn", "-n", s.namespace}, []any{"message"}},
		"unsuspend": {[]string{"unsuspend", object, "-n", s.namespace}, []any{"message"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			asJSON, asYAML := s.command(append(test.arguments, "-o", "json")...), s.command(append(test.arguments, "-o", "yaml")...)
			g.Expect(asJSON.err).NotTo(gomega.HaveOccurred())
			g.Expect(asYAML.err).NotTo(gomega.HaveOccurred())
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
