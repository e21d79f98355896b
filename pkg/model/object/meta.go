package object

import (
	"encoding/json"

	"github.com/tidwall/gjson"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// GetName returns metadata.name.
func (s *Snapshot) GetName() string { return s.name }

// GetNamespace returns metadata.namespace; it is empty for cluster-scoped objects.
func (s *Snapshot) GetNamespace() string { return s.namespace.Value() }

// GetUID returns metadata.uid, which distinguishes a recreated object from its
// predecessor.
func (s *Snapshot) GetUID() types.UID { return s.uid }

// GetResourceVersion returns metadata.resourceVersion.
func (s *Snapshot) GetResourceVersion() string { return s.resourceVersion }

// Deleting reports whether the object is marked for deletion.
func (s *Snapshot) Deleting() bool { return s.text("metadata.deletionTimestamp") != "" }

var _ metav1.ObjectMetaAccessor = (*Snapshot)(nil)

// GetObjectMeta returns the metadata that client-go's caches and reflectors need: name,
// namespace, uid, resourceVersion, labels, and annotations. Other fields are empty; read
// them from the Body. The result is a copy, because a snapshot is immutable.
func (s *Snapshot) GetObjectMeta() metav1.Object {
	return &metadata{
		ObjectMeta: metav1.ObjectMeta{
			Name: s.GetName(), Namespace: s.GetNamespace(), UID: s.GetUID(), ResourceVersion: s.GetResourceVersion(),
		},
		snapshot: s,
	}
}

// metadata decodes the maps on demand, because they are rarely needed.
type metadata struct {
	metav1.ObjectMeta
	snapshot *Snapshot
}

// GetLabels decodes metadata.labels.
func (m *metadata) GetLabels() map[string]string { return m.snapshot.Labels() }

// GetAnnotations decodes metadata.annotations. Reflectors read one of them from
// bookmarks.
func (m *metadata) GetAnnotations() map[string]string {
	return m.snapshot.stringMap("metadata.annotations")
}

func (s *Snapshot) stringMap(path string) (texts map[string]string) {
	if found := gjson.GetBytes(s.json(), path); found.Exists() {
		// The API server sends maps of strings; anything else reads as absent.
		_ = json.Unmarshal([]byte(found.Raw), &texts)
	}
	return texts
}
