package hierarchy

import (
	stdjson "encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/json"
)

// metadata is the part of an object's metadata that this package works on. It
// is a value: an edit replaces maps and slices, it never writes into them.
type metadata struct {
	Name            string                  `json:"name"`
	GenerateName    string                  `json:"generateName"`
	Namespace       string                  `json:"namespace"`
	UID             types.UID               `json:"uid"`
	Labels          map[string]string       `json:"labels"`
	OwnerReferences []metav1.OwnerReference `json:"ownerReferences"`
}

// decodeMetadata reads the metadata of an object in the form of a map. People
// write such maps by hand, so labels may well be a map[string]string, and owner
// references be Go structs: the way through JSON takes them all.
func decodeMetadata(obj map[string]any) (metadata, error) {
	var meta metadata
	data, err := stdjson.Marshal(obj["metadata"])
	if err == nil {
		err = json.UnmarshalCaseSensitivePreserveInts(data, &meta)
	}
	if err != nil {
		return metadata{}, fmt.Errorf("its metadata cannot be read: %w", err)
	}
	return meta, nil
}

func metadataOf(obj metav1.Object) metadata {
	return metadata{
		Name: obj.GetName(), GenerateName: obj.GetGenerateName(), Namespace: obj.GetNamespace(), UID: obj.GetUID(),
		Labels: obj.GetLabels(), OwnerReferences: obj.GetOwnerReferences(),
	}
}

// store writes to the object what differs from before.
func (m metadata) store(obj metav1.Object, before metadata) {
	if m.Name != before.Name {
		obj.SetName(m.Name)
	}
	if m.GenerateName != before.GenerateName {
		obj.SetGenerateName(m.GenerateName)
	}
	if m.Namespace != before.Namespace {
		obj.SetNamespace(m.Namespace)
	}
	if !maps.Equal(m.Labels, before.Labels) {
		obj.SetLabels(m.Labels)
	}
	if !slices.EqualFunc(m.OwnerReferences, before.OwnerReferences, sameReference) {
		obj.SetOwnerReferences(m.OwnerReferences)
	}
}

func sameReference(a, b metav1.OwnerReference) bool { return reflect.DeepEqual(a, b) }

// edit is one change of the metadata. It fails if the change makes no sense for
// this object.
type edit func(*metadata) error

func addLabels(labels map[string]string, forced bool) edit {
	return func(m *metadata) error {
		merged := maps.Clone(m.Labels)
		for key, value := range labels {
			if _, taken := merged[key]; taken && !forced {
				continue
			}
			if merged == nil {
				merged = make(map[string]string, len(labels))
			}
			merged[key] = value
		}
		m.Labels = merged
		return nil
	}
}

func setName(name string, forced, strict bool) edit {
	return func(m *metadata) error {
		switch named := m.Name != "" || m.GenerateName != ""; {
		case named && !forced:
		case strict:
			m.Name, m.GenerateName = name, ""
		default:
			m.Name, m.GenerateName = "", name+"-"
		}
		return nil
	}
}

func setNamespace(namespace string, forced bool) edit {
	return func(m *metadata) error {
		if m.Namespace == "" || forced {
			m.Namespace = namespace
		}
		return nil
	}
}

func addReference(ref metav1.OwnerReference) edit {
	return func(m *metadata) error {
		for _, other := range m.OwnerReferences {
			if other.UID == ref.UID {
				return nil
			}
		}
		if other := metav1.GetControllerOf(&metav1.ObjectMeta{OwnerReferences: m.OwnerReferences}); other != nil && *ref.Controller {
			return fmt.Errorf("it is controlled by %s (uid %s) already, and an object has one controller at most: "+
				"use NotController, or remove that owner first", describe(other.Kind, "", other.Name), other.UID)
		}
		m.OwnerReferences = append(slices.Clip(slices.Clone(m.OwnerReferences)), ref)
		return nil
	}
}

func removeReference(owner types.UID) edit {
	return func(m *metadata) error {
		m.OwnerReferences = slices.DeleteFunc(slices.Clone(m.OwnerReferences), func(ref metav1.OwnerReference) bool {
			return ref.UID == owner
		})
		return nil
	}
}
