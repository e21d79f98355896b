package kopf

import (
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/convergence"
)

// KeepAnnotation is an annotation of children. A child with it is never deleted, neither by the
// operator nor with its parent; the value "false" takes that back. You can set it in the
// function, or with kubectl.
const KeepAnnotation = convergence.KeepAnnotation

// AllowEmpty accepts that the function of Ensure returns no children although some exist: they
// are deleted.
func AllowEmpty() ChildOption { return handler.AllowEmpty() }

// AdoptExisting makes Ensure take over objects that exist already, unless they have another
// controller or belong to another handler. The operator owns the fields that the function
// returns from then on, and deletes the object when it is no longer returned.
func AdoptExisting() ChildOption { return handler.AdoptExisting() }

// WaitReady makes Ensure apply the children of a wave only when those of the earlier waves are
// ready, as kstatus defines it: a Deployment has its replicas, a Job is complete. The handler
// does not wait, and succeeds; the operator calls it again when a child becomes ready. If a
// child fails, so does the handler. With Conditions, the object is Ready only while all children
// are. See InWave.
func WaitReady() ChildOption { return handler.WaitReady() }

// WatchIndex makes Ensure call the function also when the keys or values of an index change, for
// all objects that the handler selects. A change is a key or value that appears, disappears, or
// differs, as reflect.DeepEqual compares them: an object that is indexed again with equal values
// calls nothing. So index only what the function needs.
//
//	kopf.Ensure(kopf.Resource("shops"), shop, kopf.WatchIndex(themes))
//
// The objects take turns, about 100 per second, and all of them within 10 seconds. Many changes
// at the same time are one, and an object is called at most once per second. If the function
// returns what it returned before, nothing is written. The index must be filled by a function of
// the same registry: otherwise, the operator does not start.
//
// A changed index does not change which objects the filters select: they are checked when the
// object itself changes, and when the operator starts.
func WatchIndex(indices ...AnyIndex) ChildOption { return handler.WatchIndex(indices...) }

// Prune lets Ensure delete children of protected kinds when they are no longer returned:
// "Namespace", "PersistentVolume", "PersistentVolumeClaim", or
// "CustomResourceDefinition.apiextensions.k8s.io". With these, their data is deleted. All other
// kinds are deleted without this option.
func Prune(kinds ...string) ChildOption { return handler.Prune(kinds...) }

// Recreate lets Ensure delete a child of one of the kinds and create it again if the API server
// refuses a change of its fields, such as of an immutable one: "Job.batch", "StatefulSet.apps". The
// API server must accept the replacement first, in a dry run. This also applies to what other clients have
// changed. Without this option, the handler fails. The protected kinds of Prune are never
// recreated.
func Recreate(kinds ...string) ChildOption { return handler.Recreate(kinds...) }

// InWave puts children into a wave, and returns them. Ensure applies the waves in the order of
// their numbers, and begins a wave only if no child of the earlier ones was refused. All
// children are in wave 0 by default. Within a wave, kinds that others need are first: namespaces,
// resource definitions, accounts and roles, secrets and config maps, claims, and services.
//
//	return append(kopf.InWave(-1, database), web, service), nil
func InWave(wave int, children ...client.Object) []client.Object {
	for _, child := range children {
		annotations := child.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[convergence.WaveAnnotation] = strconv.Itoa(wave)
		child.SetAnnotations(annotations)
	}
	return children
}
