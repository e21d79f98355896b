package converge

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"
	"sync/atomic"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/kopf-go/kopf/pkg/model/convergence"
)

// readiness is the status of an object according to kstatus.
type readiness uint8

const (
	current readiness = iota // it is what its spec says
	inProgress
	failed
)

// fact contains what the operator remembers of one version of a child. Each child has one, so each
// field must be worth its memory.
type fact struct {
	Key
	uid        types.UID
	version    string
	owner      string // the label
	marks      marks
	controller types.UID
	// digest is that of the fields that the operator owns. It is zero if it owns none.
	digest [hashSize]byte
	// details are nil for nearly all children that were judged once. They are replaced while
	// others read the fact.
	details   atomic.Pointer[details]
	readiness readiness
	deleting  bool
	keep      bool
	// isBound is set if the annotation was made for this object and its label. That of a copy
	// was not.
	isBound bool
	// former is set if the operator has applied fields under a former name.
	former bool
}

// details are what few children have, or only for a short time.
type details struct {
	// fields are the owned fields, others are those of other managers, and unowned are those that have no owner.
	// Binding is that of the annotation. They are needed only until the child was judged once.
	fields   []byte
	others   [][]byte
	unowned  []string
	binding  string
	message  string // why the child is not ready
	accepted accepted
}

func (d *details) orNil() *details {
	if len(d.fields)+len(d.others)+len(d.unowned) == 0 && d.binding == "" && d.message == "" && len(d.accepted) == 0 {
		return nil
	}
	return d
}

// detail returns the details, also if there are none.
func (f *fact) detail() details {
	if f == nil {
		return details{}
	}
	if d := f.details.Load(); d != nil {
		return *d
	}
	return details{}
}

// readFact reads an object, with its managedFields. The manager is that of the operator, with its
// former names.
func readFact(u *unstructured.Unstructured, manager string, formers ...string) *fact {
	annotations := u.GetAnnotations()
	var d details
	f := &fact{
		Key: keyOf(u),
		uid: u.GetUID(), version: u.GetResourceVersion(),
		owner:    u.GetLabels()[convergence.OwnerLabel],
		deleting: u.GetDeletionTimestamp() != nil, keep: isKept(annotations),
	}
	a := readAnnotation(annotations[convergence.MarksAnnotation])
	f.marks = a.marks
	d.accepted = a.Accepted
	d.binding = a.Binding
	f.isBound = a.Binding != "" && a.Binding == bindingOf(f.owner, f.Key)
	f.former = slices.ContainsFunc(formers, func(former string) bool { return appliedFields(u, former) != nil })
	d.fields = appliedFields(u, manager)
	if d.fields != nil {
		d.others = otherFields(u, manager)
		d.unowned = unownedFields(u.Object, entriesOf(u))
		sum := sha256.Sum256(d.fields)
		copy(f.digest[:], sum[:])
	}
	f.readiness, d.message = readinessOf(u)
	f.details.Store(d.orNil())
	by := metav1.GetControllerOfNoCopy(u)
	if by != nil {
		f.controller = types.UID(unique.Make(string(by.UID)).Value())
	}
	for _, text := range []*string{&f.Group, &f.Kind, &f.Namespace, &f.owner, &f.marks.Handler, &f.marks.Parent} {
		*text = unique.Make(*text).Value() // many children share them
	}
	return f
}

// appliedFields returns the fields that the manager has applied, or nil if there are none. It is
// called for every event of a child, so it does not convert the entries, of which most are those of
// others.
func appliedFields(u *unstructured.Unstructured, manager string) []byte {
	for _, entry := range entriesOf(u) {
		if isAppliedBy(entry, manager) {
			text, _ := json.Marshal(entry["fieldsV1"]) // it was decoded from JSON
			return text
		}
	}
	return nil
}

// otherFields returns the fields of other managers, except those that they have written in a subresource,
// which are no fields of a handler.
func otherFields(u *unstructured.Unstructured, manager string) (found [][]byte) {
	for _, entry := range entriesOf(u) {
		if subresource, _ := entry["subresource"].(string); subresource == "" && entry["fieldsV1"] != nil && !isAppliedBy(entry, manager) {
			text, _ := json.Marshal(entry["fieldsV1"]) // it was decoded from JSON
			found = append(found, text)
		}
	}
	return found
}

func isAppliedBy(entry map[string]any, manager string) bool {
	subresource, _ := entry["subresource"].(string)
	return entry["manager"] == manager && entry["operation"] == string(metav1.ManagedFieldsOperationApply) && subresource == "" && entry["fieldsV1"] != nil
}

// entriesOf returns the managedFields of an object, without a copy.
func entriesOf(u *unstructured.Unstructured) (entries []map[string]any) {
	found, _, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", "managedFields")
	list, _ := found.([]any)
	for _, entry := range list {
		if entry, ok := entry.(map[string]any); ok {
			entries = append(entries, entry)
		}
	}
	return entries
}

// unownedFields returns the fields directly below an object that it has, and of which no manager owns a part.
// The API server keeps them out of managedFields, such as the spec of a CertificateSigningRequest. So it is not
// known who has set them, and they are no drift.
func unownedFields(content map[string]any, entries []map[string]any) (found []string) {
	for field, value := range content {
		if _, isMapping := value.(map[string]any); !isMapping || field == "metadata" || field == "status" {
			continue
		}
		isOwned := slices.ContainsFunc(entries, func(entry map[string]any) bool {
			fields, _ := entry["fieldsV1"].(map[string]any)
			return fields["f:"+field] != nil
		})
		if !isOwned {
			found = append(found, field)
		}
	}
	return found
}

// lost returns the wanted fields that the operator does not own anymore.
func (d details) lost(content map[string]any) []path {
	var all []fieldSet
	for _, other := range d.others {
		all = append(all, parseFields(other))
	}
	return parseFields(d.fields).uncovered(without(content, d.unowned), all...)
}

// without returns a mapping without some of its fields.
func without(content map[string]any, fields []string) map[string]any {
	if len(fields) == 0 {
		return content
	}
	rest := maps.Clone(content)
	maps.DeleteFunc(rest, func(field string, _ any) bool { return slices.Contains(fields, field) })
	return rest
}

// isOurs reports whether an entry has what the manager has applied.
func isOurs(entry metav1.ManagedFieldsEntry, manager string) bool {
	return entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
}

// setsOf returns the set of what the manager has applied, or nil, and the sets of all entries.
func setsOf(entries []metav1.ManagedFieldsEntry, manager string) (ours fieldSet, all []fieldSet) {
	for _, entry := range entries {
		set := parseFields(entry.FieldsV1.GetRawBytes())
		all = append(all, set)
		if isOurs(entry, manager) {
			ours = set
		}
	}
	return ours, all
}

func readinessOf(u *unstructured.Unstructured) (readiness, string) {
	result, err := status.Compute(u)
	switch {
	case err != nil:
		return inProgress, err.Error()
	case result.Status == status.CurrentStatus:
		return current, ""
	case result.Status == status.FailedStatus:
		return failed, result.Message
	default:
		return inProgress, result.Message
	}
}

// isApplied reports whether the operator has applied the object. A copy of a child that
// another client has created has its label, but not this.
func (f *fact) isApplied() bool { return f.digest != [hashSize]byte{} || f.former }

// isChildOf reports whether the object with the label of an owner is a child of its parent: not a copy, nor the
// child of another one, and not going away.
func (f *fact) isChildOf(parent types.UID) bool {
	return f.isApplied() && f.isBound && !f.deleting && !f.isControlledByOther(parent)
}

// isControlledByOther reports whether the object is controlled by another one than the parent.
func (f *fact) isControlledByOther(parent types.UID) bool {
	return f.controller != "" && f.controller != parent
}

// acceptedBy returns the fields of the child that the owner has left to others. What it has not
// written itself does not count.
func (f *fact) acceptedBy(o Owner) accepted {
	if f == nil || !f.isApplied() || f.marks.Handler != o.Handler {
		return nil
	}
	return f.detail().accepted
}

// isOlder reports whether the fact is an earlier version of the object than another one.
func (f *fact) isOlder(than *fact) bool { return compareVersions(f.version, than.version) < 0 }

// compareVersions compares resource versions. Versions that cannot be compared are equal.
func compareVersions(a, b string) int {
	order, err := resourceversion.CompareResourceVersion(a, b)
	if err != nil {
		return 0
	}
	return order
}

// isSame reports whether nothing has changed that the owner must react to. Readiness counts
// only if the owner waits for it.
func (f *fact) isSame(now *fact, waits bool) bool {
	return f.uid == now.uid && f.owner == now.owner && f.digest == now.digest && f.marks.Wanted == now.marks.Wanted &&
		f.deleting == now.deleting && f.keep == now.keep && f.former == now.former && f.controller == now.controller &&
		(!waits || f.readiness == now.readiness)
}

// judged returns the fact without what is needed only once.
func (f *fact) judged() *fact {
	if d := f.details.Load(); d != nil {
		f.details.Store((&details{message: d.message, accepted: d.accepted}).orNil())
	}
	return f
}

// Seen describes a child as it can be seen without an operator.
type Seen struct {
	Key
	// Owner is the hash of its owner, which anybody can copy. Applied is set if the operator has
	// applied the object; nothing else makes it a child.
	Owner   string
	Applied bool
	// Parent and Handler are the owner in words.
	Parent, Handler string
	// Controller is the owner that controls the object, or nil.
	Controller *metav1.OwnerReference
	// Ready and Failed are what kstatus says about the object, and Message says why.
	Ready, Failed bool
	Message       string
	// Accepted are the fields that are left to others.
	Accepted []string
	// Deleting is set while the object is being deleted, and Kept if it is never deleted.
	Deleting, Kept bool
}

// See returns what can be seen of a child of an operator with the name.
func See(u *unstructured.Unstructured, operator string, formers ...string) Seen {
	f := readFact(u, operator, formers...)
	d := f.detail()
	return Seen{
		Key: f.Key, Owner: f.owner, Applied: f.isApplied() && f.isBound, Parent: f.marks.Parent, Handler: f.marks.Handler, Ready: f.readiness == current, Failed: f.readiness == failed, Message: d.message,
		Controller: metav1.GetControllerOf(u), Accepted: slices.Sorted(maps.Keys(d.accepted)), Deleting: f.deleting, Kept: f.keep,
	}
}
