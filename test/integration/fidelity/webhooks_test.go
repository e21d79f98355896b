package fidelity

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// A webhook is called only if its match conditions hold. The one here cannot be reached.
func TestMatchConditions(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		const path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
		s.must(http.MethodPost, path, fmt.Sprintf(`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":%[1]q},"webhooks":[{
			"name":"conditions.kopf.dev","admissionReviewVersions":["v1"],"sideEffects":"None","timeoutSeconds":1,"clientConfig":{"url":"https://127.0.0.1:1/none"},
			"rules":[{"apiGroups":[%[1]q],"apiVersions":["*"],"operations":["CREATE"],"resources":["things"]}],
			"matchConditions":[
				{"name":"large","expression":"object.spec.size > 10"},
				{"name":"not-mine","expression":"!request.name.startsWith('mine') && oldObject == null"}]}]}`, s.group), 201)
		defer s.must(http.MethodDelete, path+"/"+s.group, "", 200)
		create := func(name, size string) (int, string) {
			code, answer := s.do(http.MethodPost, s.things(), jsonType, fmt.Sprintf(
				`{"apiVersion":"%s/v1","kind":"Thing","metadata":{"name":%q},"spec":{%s}}`, s.group, name, size))
			message, _ := answer.Object["message"].(string)
			return code, message
		}
		s.eventually(func() bool { // the real server knows the configuration a moment later
			code, message := create("large", `"size":11`)
			s.do(http.MethodDelete, s.things("large"), jsonType, "")
			return code == 500 && strings.Contains(message, "failed calling webhook")
		})
		for name, size := range map[string]string{"small": `"size":10`, "mine-large": `"size":11`, "mine-none": ""} {
			if code, message := create(name, size); code != 201 {
				t.Errorf("%s: got %d, %s", name, code, message)
			}
		}
		if code, message := create("none", ""); code != 403 || !strings.Contains(message, "no such key: size") {
			t.Errorf("without the field of a condition: got %d, %s", code, message)
		}
	})
}
