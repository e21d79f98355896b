package converge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The API server can refuse to change a child, although what is wanted is valid:
//
//   - because it has added to a field that is immutable, and what is wanted would take that back:
//     then the fields that the operator still owns are applied as they are stored;
//   - because of fields that others have set next to the wanted ones, such as valueFrom next to
//     value, or what is left of an item that is not wanted anymore: then these fields are taken over,
//     so that the next apply removes them (blockers.go);
//   - because a field is immutable: then the child is deleted and created again, on request.

// refused is a child that the API server refuses to change.
type refused struct {
	applied
	live    *unstructured.Unstructured
	manager string
	// isDrift is set if the same was applied before, so that what is missing was removed by others.
	isDrift bool
}

// unblock applies a refused child as it is stored, or without what blocks it. It returns a refusal
// if that is not possible.
func (r *run) unblock(ctx context.Context, a applied, v view, why action, refusal error) (*fact, error) {
	u, err := r.readSame(ctx, a.child, v.live.uid)
	if err != nil {
		return nil, err
	}
	// If others have removed the annotation, the version that was judged last says what was applied.
	before := v.live.marks.Wanted
	if before == "" && v.known != nil {
		before = v.known.marks.Wanted
	}
	c := refused{a, u, r.manager, before == a.hash}
	if c.isDrift {
		stored, differs := a.asStored(u, r.manager)
		c.content = stored
		if differs {
			result, err := r.applyAgain(ctx, c, v.live, why)
			if !isRefusedByValidation(err) {
				return result, err
			}
			refusal = err
		}
	}
	found, foreign, rest := c.named(refusal)
	switch {
	case len(foreign) > 0:
		return nil, &foreignError{refusal, foreign}
	case len(rest) > 0:
		found, err = r.search(ctx, c, found, rest, refusal)
		if err != nil {
			return nil, err
		}
	}
	c.live, err = r.api.Rename(ctx, a.resource, a.Key, takenOver(u, found, r.manager))
	switch {
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		return nil, errChanged
	case err != nil:
		return nil, err
	}
	result, err := r.applyAgain(ctx, c, v.live, why)
	if err != nil {
		return nil, err
	}
	var names, managers []string
	for _, b := range found {
		names = append(names, b.at.String())
		managers = append(managers, b.others...)
	}
	slices.Sort(managers)
	r.call.Log.Info("Fields of the child that are not wanted were removed, because the API server accepts what is wanted only without them.",
		"child", a.Key.String(), "fields", names, "managers", slices.Compact(managers))
	return result, nil
}

// applyAgain applies a child that was refused.
func (r *run) applyAgain(ctx context.Context, c refused, live *fact, why action) (*fact, error) {
	u, err := r.api.Apply(ctx, c.resource, withMetadata(c.content, "resourceVersion", c.live.GetResourceVersion()))
	switch {
	case isReplaced(err):
		return nil, errChanged
	case err != nil:
		return nil, err
	}
	r.reportApplied(c.applied, u, live, why)
	return r.remember(u), nil
}

// asStored returns what is applied, with the stored values of the fields that the operator still owns. Differs is
// set unless that is the same.
func (a applied) asStored(u *unstructured.Unstructured, manager string) (content map[string]any, differs bool) {
	ours, all := setsOf(u.GetManagedFields(), manager)
	if ours == nil {
		return a.content, false
	}
	content, _ = ours.stored(a.content, u.Object, all).(map[string]any)
	content["metadata"] = a.content["metadata"] // it is always mutable, and the annotation can differ
	return content, !isEqual(content, a.content)
}

// describeRefusal returns the error of the server with all fields that it names.
func describeRefusal(err error) error {
	var fields []string
	for _, cause := range causesOf(err) {
		if cause.Field != "" && !strings.Contains(err.Error(), cause.Field) {
			fields = append(fields, cause.Field+": "+cause.Message)
		}
	}
	if len(fields) == 0 {
		return err
	}
	return fmt.Errorf("%w (%s)", err, strings.Join(fields, "; "))
}

// causesOf returns the causes of a refusal.
func causesOf(refusal error) []metav1.StatusCause {
	var answer apierrors.APIStatus
	if !errors.As(refusal, &answer) || answer.Status().Details == nil {
		return nil
	}
	return answer.Status().Details.Causes
}

// isRefused reports whether the API server says that it has not executed a request. Without an answer, and after
// an answer about a failure of the server, that is not known.
func isRefused(err error) bool {
	var answer apierrors.APIStatus
	return errors.As(err, &answer) && answer.Status().Code >= http.StatusBadRequest && answer.Status().Code < http.StatusInternalServerError
}

// isRefusedByValidation reports whether the validation of the API server has refused a change
// because of fields. The denial of a policy or a quota names none, and that of a webhook says so: to delete the
// child and create it again would evade it.
func isRefusedByValidation(err error) bool {
	var answer apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &answer) || strings.HasPrefix(answer.Status().Message, "admission webhook ") {
		return false
	}
	causes := causesOf(err)
	return len(causes) > 0 && !slices.ContainsFunc(causes, func(cause metav1.StatusCause) bool { return cause.Field == "" })
}

// isReplaced reports whether a child was deleted or replaced by another object. An apply with a
// uid fails with a conflict if there is no object, and because a uid is immutable if there is
// another one.
func isReplaced(err error) bool {
	isOtherUID := func(cause metav1.StatusCause) bool { return cause.Field == "metadata.uid" }
	return apierrors.IsConflict(err) || apierrors.IsNotFound(err) || slices.ContainsFunc(causesOf(err), isOtherUID)
}

// isAbsent reports whether the API server says that an object does not exist. Its answer that it does
// not know the resource says nothing about the object.
func isAbsent(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// serviceKind is the kind whose objects take ports and addresses that no other object may have.
var serviceKind = schema.GroupKind{Kind: "Service"}

// withoutAllocations returns a copy of a Service without what the one in the cluster has taken for
// itself: its node ports and addresses. They are free when it is deleted, and
// a dry run of its replacement would find them taken.
func withoutAllocations(content, live map[string]any) map[string]any {
	u := (&unstructured.Unstructured{Object: content}).DeepCopy()
	spec, _ := u.Object["spec"].(map[string]any)
	current, _, _ := unstructured.NestedMap(live, "spec")
	if ip, found := spec["clusterIP"]; found && ip != "None" && ip == current["clusterIP"] {
		delete(spec, "clusterIP")
		delete(spec, "clusterIPs")
	}
	if port, found := spec["healthCheckNodePort"]; found && port == current["healthCheckNodePort"] {
		delete(spec, "healthCheckNodePort")
	}
	taken := map[any]bool{}
	for _, port := range mappingsIn(current["ports"]) {
		taken[port["nodePort"]] = true
	}
	for _, port := range mappingsIn(spec["ports"]) {
		if taken[port["nodePort"]] {
			delete(port, "nodePort")
		}
	}
	return u.Object
}

// mappingsIn returns the items of a list that are mappings.
func mappingsIn(list any) (found []map[string]any) {
	items, _ := list.([]any)
	for _, item := range items {
		if m, ok := item.(map[string]any); ok {
			found = append(found, m)
		}
	}
	return found
}

var (
	exceededQuota = regexp.MustCompile(`exceeded quota: \S+, requested: (\S+), used: (\S+), limited: (\S+)$`)
	oneObject     = regexp.MustCompile(`^(count/\S+|configmaps|replicationcontrollers|secrets|services|services\.loadbalancers|services\.nodeports)=1$`)
)

// isCountedByQuota reports whether an object was refused only because it would be one too many: as
// many exist as there may be. A replacement is not one more, because its predecessor is
// deleted first. Quotas are checked after everything else. Those of pods can also be about what
// they consume.
func isCountedByQuota(err error) bool {
	if !apierrors.IsForbidden(err) {
		return false
	}
	found := exceededQuota.FindStringSubmatch(err.Error())
	return len(found) == 4 && found[2] == found[3] && !strings.Contains(found[1], "count/pods=") &&
		!slices.ContainsFunc(strings.Split(found[1], ","), func(item string) bool { return !oneObject.MatchString(item) })
}
