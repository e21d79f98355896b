package garbage

import (
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// mergePatch is a patch of metadata.
type mergePatch struct{ metadata map[string]any }

var _ client.Patch = mergePatch{}

// Type returns the type of merge patches.
func (mergePatch) Type() types.PatchType { return types.MergePatchType }

// Data returns the patch.
func (p mergePatch) Data(client.Object) ([]byte, error) {
	return json.Marshal(map[string]any{"metadata": p.metadata})
}

// done records a change. An object that is gone or has changed meanwhile is one, too.
func (c *Collector) done(err error) error {
	c.changed = true
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
