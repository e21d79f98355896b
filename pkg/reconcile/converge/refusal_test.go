package converge

import (
	"errors"
	"reflect"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestOnlyValidationLeadsToARecreation(t *testing.T) {
	kind := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	policy := apierrors.NewInvalid(kind, "one", nil)
	policy.ErrStatus.Details.Causes = []metav1.StatusCause{{Message: "ValidatingAdmissionPolicy 'freeze' denied request: spec is immutable"}}
	webhook := apierrors.NewInvalid(kind, "one", field.ErrorList{field.Invalid(field.NewPath("spec"), nil, "too large")})
	webhook.ErrStatus.Message = `admission webhook "a.example.com" denied the request: ` + webhook.ErrStatus.Message
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"a rule without a message": {apierrors.NewInvalid(kind, "one", field.ErrorList{field.Invalid(field.NewPath("spec"), nil, "failed rule: self == oldSelf")}), true},
		"a policy":                 {policy, false},
		"a webhook with a field":   {webhook, false},
		"a webhook":                {apierrors.NewForbidden(schema.GroupResource{}, "one", errors.New("spec is immutable")), false},
		"no cause":                 {apierrors.NewInvalid(kind, "one", nil), false},
		"another error":            {errors.New("field is immutable"), false},
	} {
		if got := isRefusedByValidation(test.err); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

func TestReplacementIsNotOneMoreForAQuota(t *testing.T) {
	for message, want := range map[string]bool{
		"exceeded quota: few, requested: count/jobs.batch=1, used: count/jobs.batch=1, limited: count/jobs.batch=1":                                        true,
		"exceeded quota: few, requested: services=1,services.nodeports=1, used: services=2,services.nodeports=2, limited: services=2,services.nodeports=2": true,
		"exceeded quota: few, requested: count/jobs.batch=1, used: count/jobs.batch=2, limited: count/jobs.batch=1":                                        false,
		"exceeded quota: few, requested: requests.cpu=1, used: requests.cpu=1, limited: requests.cpu=1":                                                    false,
		"exceeded quota: few, requested: count/pods=1, used: count/pods=1, limited: count/pods=1":                                                          false,
		"the policy says no": false,
	} {
		if got := isCountedByQuota(apierrors.NewForbidden(schema.GroupResource{}, "one", errors.New(message))); got != want {
			t.Errorf("%s: got %t", message, got)
		}
	}
}

func TestReplacementOfAServiceTakesItsPortsOver(t *testing.T) {
	service := func(ip string, ports ...int64) map[string]any {
		list := []any{}
		for _, port := range ports {
			list = append(list, map[string]any{"nodePort": port})
		}
		return map[string]any{"spec": map[string]any{"clusterIP": ip, "ports": list}}
	}
	got := withoutAllocations(service("10.0.0.2", 30001, 30002), service("10.0.0.1", 30001))
	want := map[string]any{"spec": map[string]any{"clusterIP": "10.0.0.2", "ports": []any{map[string]any{}, map[string]any{"nodePort": int64(30002)}}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
}

// What the API server has added to fields of the operator is kept. What others have taken is applied as it is wanted.
func TestOwnedFieldsAreAppliedAsTheyAreStored(t *testing.T) {
	live := &unstructured.Unstructured{Object: decoded(t, `{"metadata":{"labels":{"a":"theirs"},"managedFields":[
		{"manager":"kopf","operation":"Apply","fieldsV1":{"f:spec":{"f:tolerations":{},"f:env":{"k:{\"name\":\"A\"}":{".":{},"f:name":{},"f:value":{}}},"f:set":{"v:\"x\"":{}}}}},
		{"manager":"other","operation":"Update","fieldsV1":{"f:spec":{"f:image":{},"f:env":{"k:{\"name\":\"B\"}":{".":{},"f:name":{},"f:value":{}}}}}}
	]},"spec":{"tolerations":["ours","added"],"image":"theirs","env":[{"name":"B","value":"theirs"},{"name":"A","value":"1k"}],"set":["x"]}}`)}
	const wanted = `{"metadata":{"labels":{"a":"b"}},"spec":{"tolerations":["ours"],"image":"ours","env":[{"name":"A","value":"1000"},{"name":"B","value":"b"}],"set":["x"],"ports":[]}}`
	want := decoded(t, `{"metadata":{"labels":{"a":"b"}},"spec":{"tolerations":["ours","added"],"image":"ours","env":[{"name":"A","value":"1k"},{"name":"B","value":"b"}],"set":["x"]}}`)
	a := applied{content: decoded(t, wanted)}
	got, differs := a.asStored(live, "kopf")
	if !reflect.DeepEqual(got, want) || !differs {
		t.Errorf("got %v, want %v", got, want)
	}
	if !reflect.DeepEqual(a.content, decoded(t, wanted)) {
		t.Errorf("what is wanted was changed: %v", a.content)
	}
	if got, differs := a.asStored(live, "a stranger"); differs || !reflect.DeepEqual(got, a.content) {
		t.Errorf("got %v of a stranger", got)
	}
	a.content = want
	if _, differs := a.asStored(live, "kopf"); differs {
		t.Error("the same differs")
	}
}
