package faults

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/model/convergence"
)

// isFamilyWhole returns an error unless the children are exactly as they must be, and the handlers of children have
// seen that. The subject is locked.
func (s *subject) isFamilyWhole(now state) error {
	if !s.storm.families || s.damaged && !s.storm.isRestarted {
		return nil // what is lost with the damage is found by the next operator
	}
	known := s.sight(s.storm.operator, s.uid)
	wanted := map[string]*unstructured.Unstructured{}
	for _, child := range familyOf(now.body) {
		wanted[child.GetKind()+" "+child.GetName()] = child
	}
	seen := 0
	for _, child := range s.children() {
		what := child.GetKind() + " " + child.GetName()
		isOwned := slices.ContainsFunc(child.GetOwnerReferences(), func(owner metav1.OwnerReference) bool { return owner.UID == types.UID(s.uid) })
		if want := wanted[what]; want == nil {
			// Others may have removed what shows that it is ours while no operator saw that.
			isStray := child.GetLabels()[convergence.OwnerLabel] == "" || child.GetAnnotations()[convergence.MarksAnnotation] == "" ||
				len(child.GetOwnerReferences()) == 0 && s.replacements > 0 // an orphan survives its parent
			if !isStray {
				return fmt.Errorf("the child %s is there, and is not wanted: %s", what, textOf(child.Object))
			}
		} else if err := s.isAsWanted(want, &child, isOwned); err != nil {
			return fmt.Errorf("the child %s %w: %s", what, err, textOf(child.Object))
		}
		delete(wanted, what)
		if !isOwned {
			continue
		}
		seen++
		if found := known[child.GetKind()][child.GetName()]; found != contentOf(child.Object) {
			return fmt.Errorf("the handler of children has seen %s as %s, and it is %s", what, found, contentOf(child.Object))
		}
	}
	for what := range wanted {
		return fmt.Errorf("the child %s is missing", what)
	}
	for kind, names := range known {
		seen -= len(names)
		if seen < 0 {
			return fmt.Errorf("the handler of children has seen more %ss than there are: %v", kind, names)
		}
	}
	return nil
}

// isAsWanted returns an error unless a child is as it must be, with what others have added. The subject is locked.
func (s *subject) isAsWanted(want, child *unstructured.Unstructured, isOwned bool) error {
	switch {
	case !isOwned:
		return errors.New("has no owner")
	case child.GetLabels()[convergence.OwnerLabel] == "":
		return errors.New("has no label of the operator")
	}
	for _, added := range s.additions[string(child.GetUID())] {
		if !added.has(child.Object) {
			return fmt.Errorf("has lost the addition %s of another client", added.what)
		}
	}
	if s.storm.rivals { // one of them can accept what the other one restores
		unstructured.RemoveNestedField(want.Object, "data", tuned)
	}
	return includes(want.Object, child.Object, "")
}

// includes returns an error unless a child has what is wanted.
func includes(want, found any, path string) error {
	switch want := want.(type) {
	case map[string]any:
		fields, ok := found.(map[string]any)
		if !ok {
			return fmt.Errorf("%s is missing", path)
		}
		for key, value := range want {
			at, there := path+"."+key, fields[key]
			if key == "stringData" {
				at, there, value = path+".data", fields["data"], encoded(value)
			}
			if key == tuned && there == accepted(value) {
				continue
			}
			if err := includes(value, there, at); err != nil {
				return err
			}
		}
		return nil
	case []any:
		items, _ := found.([]any)
		for i, item := range want {
			j := slices.IndexFunc(items, func(other any) bool { return includes(item, other, "") == nil })
			if j < 0 {
				return fmt.Errorf("%s[%d] is %s in %s", path, i, textOf(item), textOf(items))
			}
		}
		return nil
	}
	if textOf(want) != textOf(found) {
		return fmt.Errorf("%s is %s instead of %s", path, textOf(found), textOf(want))
	}
	return nil
}

// encoded returns the data of a secret for its stringData.
func encoded(values any) map[string]any {
	data := map[string]any{}
	fields, _ := values.(map[string]any)
	for key, value := range fields {
		data[key] = base64.StdEncoding.EncodeToString(fmt.Append(nil, value))
	}
	return data
}
