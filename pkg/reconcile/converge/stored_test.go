package converge

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

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
