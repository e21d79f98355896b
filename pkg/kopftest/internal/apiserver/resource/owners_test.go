package resource

import (
	"encoding/json"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return object
}

func configMaps(t *testing.T) *Resource {
	t.Helper()
	all, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		if one.GroupVersionResource == (schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}) {
			return one
		}
	}
	t.Fatal("there are no ConfigMaps")
	return nil
}

const (
	owner     = `{"manager":"m","operation":"Update","apiVersion":"v1","time":"2000-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:a":{},".":{}}}}`
	applier   = `{"manager":"a","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:b":{}}},"subresource":"status"}`
	fieldless = `{"manager":"w","operation":"Update","apiVersion":"v1"}`
	unknown   = `{"manager":"u","operation":"Update","apiVersion":"v1","more":1}`
	badTime   = `{"manager":"t","operation":"Update","apiVersion":"v1","time":"soon"}`
	badTypes  = `{"manager":1}`
)

func configMapWith(owners string) string {
	return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one","uid":"u","managedFields":[` + owners + `]},"data":{"a":"1","b":"1"}}`
}

// The field owners are decoded and encoded as unstructured objects do it.
func TestOwnersAreThoseOfTheGeneralDecoder(t *testing.T) {
	for _, owners := range []string{"", owner, applier, owner + "," + applier, fieldless, unknown, owner + "," + badTime, badTypes, "1"} {
		object := parse(t, configMapWith(owners))
		decoded := decodeOwners(object)
		if want := object.GetManagedFields(); !reflect.DeepEqual(decoded, want) {
			t.Errorf("%s: got %v, want %v", owners, decoded, want)
		}
		want := object.DeepCopy()
		want.SetManagedFields(decoded)
		for name, known := range map[string][]any{"the same": OwnersOf(object), "none": nil} {
			got := object.DeepCopy()
			setOwners(got, encodeOwners(decoded, decoded, known))
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s, with %s: got %v, want %v", owners, name, got, want)
			}
		}
	}
}

// The tracker has the same result with and without decoded owners, and changes no stored object.
func TestTrackIsTheFieldManager(t *testing.T) {
	of := configMaps(t)
	changed := func(t *testing.T, owners, data string) *unstructured.Unstructured {
		t.Helper()
		updated := parse(t, configMapWith(owners))
		if err := json.Unmarshal([]byte(data), &updated.Object); err != nil {
			t.Fatal(err)
		}
		return updated
	}
	for _, owners := range []string{"", owner, owner + "," + applier} {
		for _, given := range []string{owners, "", owner, badTypes} {
			for _, data := range []string{`{}`, `{"data":{"a":"2","b":"1"}}`, `{"data":{"a":"1","c":"1"}}`, `{"data":null}`} {
				synctest.Test(t, func(t *testing.T) { // so that it is the same time
					time.Sleep(time.Hour)
					stored, updated := parse(t, configMapWith(owners)), changed(t, given, data)
					before := stored.DeepCopy()
					want := of.FieldManager("").UpdateNoErrors(stored.DeepCopy(), updated.DeepCopy(), "m")
					got := of.Track("", stored, updated, "m")
					if !reflect.DeepEqual(got, want) {
						t.Errorf("%s, %s: %s:\ngot  %v\nwant %v", owners, given, data, got, want)
					}
					if !reflect.DeepEqual(stored, before) {
						t.Errorf("%s: the stored object has changed to %v", owners, stored)
					}
				})
			}
		}
	}
}
