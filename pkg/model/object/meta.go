package object

import (
	"encoding/json"
	"time"

	"github.com/tidwall/gjson"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Snapshots satisfy metav1.Object because client-go's caches and reflectors ask
// for it. The setters do nothing: a snapshot is immutable, and the machinery
// never calls them on what it reads.
var _ metav1.Object = (*Snapshot)(nil)

// GetName is metadata.name.
func (s *Snapshot) GetName() string { return s.name }

// GetNamespace is metadata.namespace; empty for cluster-scoped objects.
func (s *Snapshot) GetNamespace() string { return s.namespace.Value() }

// GetUID is metadata.uid: another one under the same name is another object.
func (s *Snapshot) GetUID() types.UID { return s.uid }

// GetResourceVersion is metadata.resourceVersion.
func (s *Snapshot) GetResourceVersion() string { return s.resourceVersion }

// GetGenerateName is metadata.generateName.
func (s *Snapshot) GetGenerateName() string { return s.text("metadata.generateName") }

// GetGeneration is metadata.generation.
func (s *Snapshot) GetGeneration() int64 {
	return gjson.GetBytes(s.json(), "metadata.generation").Int()
}

// GetSelfLink is always empty: the API has not had it for years.
func (s *Snapshot) GetSelfLink() string { return "" }

// GetCreationTimestamp is metadata.creationTimestamp, zero if absent.
func (s *Snapshot) GetCreationTimestamp() metav1.Time {
	if t := s.time("metadata.creationTimestamp"); t != nil {
		return *t
	}
	return metav1.Time{}
}

// GetDeletionTimestamp is metadata.deletionTimestamp, nil if absent.
func (s *Snapshot) GetDeletionTimestamp() *metav1.Time { return s.time("metadata.deletionTimestamp") }

// GetDeletionGracePeriodSeconds is metadata.deletionGracePeriodSeconds, nil if absent.
func (s *Snapshot) GetDeletionGracePeriodSeconds() *int64 {
	value := gjson.GetBytes(s.json(), "metadata.deletionGracePeriodSeconds")
	if !value.Exists() {
		return nil
	}
	seconds := value.Int()
	return &seconds
}

// GetLabels decodes metadata.labels.
func (s *Snapshot) GetLabels() map[string]string {
	return decoded[map[string]string](s, "metadata.labels")
}

// GetAnnotations decodes metadata.annotations.
func (s *Snapshot) GetAnnotations() map[string]string {
	return decoded[map[string]string](s, "metadata.annotations")
}

// GetFinalizers decodes metadata.finalizers.
func (s *Snapshot) GetFinalizers() []string { return decoded[[]string](s, "metadata.finalizers") }

// GetOwnerReferences decodes metadata.ownerReferences.
func (s *Snapshot) GetOwnerReferences() []metav1.OwnerReference {
	return decoded[[]metav1.OwnerReference](s, "metadata.ownerReferences")
}

// GetManagedFields is always nil: they are not kept.
func (s *Snapshot) GetManagedFields() []metav1.ManagedFieldsEntry { return nil }

func (s *Snapshot) time(path string) *metav1.Time {
	parsed, err := time.Parse(time.RFC3339, s.text(path))
	if err != nil {
		return nil
	}
	return &metav1.Time{Time: parsed}
}

func decoded[T any](s *Snapshot, path string) T {
	var value T
	if found := gjson.GetBytes(s.json(), path); found.Exists() {
		// What the API server sent has these types; anything else reads as absent.
		_ = json.Unmarshal([]byte(found.Raw), &value)
	}
	return value
}

// The setters below do nothing; see the comment at the top of the file.

func (s *Snapshot) SetNamespace(string)                          {} //nolint:revive // see above
func (s *Snapshot) SetName(string)                               {} //nolint:revive // see above
func (s *Snapshot) SetGenerateName(string)                       {} //nolint:revive // see above
func (s *Snapshot) SetUID(types.UID)                             {} //nolint:revive // see above
func (s *Snapshot) SetResourceVersion(string)                    {} //nolint:revive // see above
func (s *Snapshot) SetGeneration(int64)                          {} //nolint:revive // see above
func (s *Snapshot) SetSelfLink(string)                           {} //nolint:revive // see above
func (s *Snapshot) SetCreationTimestamp(metav1.Time)             {} //nolint:revive // see above
func (s *Snapshot) SetDeletionTimestamp(*metav1.Time)            {} //nolint:revive // see above
func (s *Snapshot) SetDeletionGracePeriodSeconds(*int64)         {} //nolint:revive // see above
func (s *Snapshot) SetLabels(map[string]string)                  {} //nolint:revive // see above
func (s *Snapshot) SetAnnotations(map[string]string)             {} //nolint:revive // see above
func (s *Snapshot) SetFinalizers([]string)                       {} //nolint:revive // see above
func (s *Snapshot) SetOwnerReferences([]metav1.OwnerReference)   {} //nolint:revive // see above
func (s *Snapshot) SetManagedFields([]metav1.ManagedFieldsEntry) {} //nolint:revive // see above
