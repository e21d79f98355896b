package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/pkg/model/convergence"
)

// mostTroubles limits what others do to the children of an object in a storm.
const mostTroubles = 20

// addition is what others have added to a child, which no one else may remove.
type addition struct {
	kind, name string
	// has reports whether the child has the addition.
	has func(child map[string]any) bool
	// what describes it.
	what string
}

// meddle lets others do something to a child, by chance.
func (s *subject) meddle(dice *rand.Rand) {
	if !s.storm.families {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deleting || s.absent || s.storm.calm.Load() || s.troubles >= mostTroubles || s.committed.body == nil {
		return
	}
	family := familyOf(s.committed.body)
	child := oneOf(dice, family...)
	child.SetNamespace(s.storm.namespace)
	live, err := s.storm.cluster.Current(child)()
	if err != nil { // it does not exist yet
		s.storm.try(err)
		return
	}
	s.troubles++
	if dice.IntN(6) == 0 {
		s.note("another client has deleted %s", child.GetName())
		s.storm.try(s.storm.cluster.Client().Delete(context.Background(), live))
		return
	}
	how := s.trouble(live, child, dice)
	err = s.storm.cluster.Client().Update(context.Background(), live, client.FieldOwner("another"))
	s.storm.try(err)
	s.note("another client has %s %s, version %s: %s", how, child.GetName(), live.GetResourceVersion(), contentOf(live.Object))
}

// trouble changes a child, and returns how. The subject is locked.
func (s *subject) trouble(live, wanted *unstructured.Unstructured, dice *rand.Rand) string {
	switch what := dice.IntN(10); {
	case what == 0:
		live.SetLabels(map[string]string{"example.com/another": "label"})
		return "relabeled"
	case what == 1 && live.GetAnnotations()[convergence.MarksAnnotation] != "": // otherwise, it belongs to nobody
		live.SetOwnerReferences(nil)
		return "orphaned"
	case what == 2 && len(live.GetOwnerReferences()) > 0:
		annotations := live.GetAnnotations()
		delete(annotations, convergence.MarksAnnotation)
		live.SetAnnotations(annotations)
		return "removed our annotation of"
	case what > 0 && what < 6:
		s.add(live)
		return "added to"
	}
	switch live.GetKind() {
	case "ConfigMap":
		return s.troubleData(live, wanted, dice)
	case "Secret":
		if dice.IntN(2) == 0 {
			delete(live.Object, "data")
			return "emptied"
		}
		_ = unstructured.SetNestedField(live.Object, "bm9uZQ==", "data", "token")
		return "changed"
	case "Service":
		return troubleItems(live, dice, []any{map[string]any{"name": "another", "port": int64(8001), "protocol": "TCP", "targetPort": int64(1)}}, "spec", "ports")
	default:
		containers, _, _ := unstructured.NestedSlice(live.Object, "spec", "template", "spec", "containers")
		main, _ := containers[0].(map[string]any)
		inMain := &unstructured.Unstructured{Object: main}
		how := troubleItems(inMain, dice, []any{map[string]any{"name": "A", "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": "metadata.name"}}}}, "env")
		_ = unstructured.SetNestedSlice(live.Object, containers, "spec", "template", "spec", "containers")
		return how
	}
}

func (s *subject) troubleData(live, wanted *unstructured.Unstructured, dice *rand.Rand) string {
	data, _, _ := unstructured.NestedStringMap(wanted.Object, "data")
	switch dice.IntN(3) {
	case 0:
		unstructured.RemoveNestedField(live.Object, "data", "a")
		return "removed a field of"
	case 1:
		_ = unstructured.SetNestedField(live.Object, "another", "data", "b")
		return "changed"
	default:
		_ = unstructured.SetNestedField(live.Object, accepted(data[tuned]), "data", tuned)
		return "tuned"
	}
}

// troubleItems removes the first item of a list, or replaces all of them, or changes the first one.
func troubleItems(obj *unstructured.Unstructured, dice *rand.Rand, others []any, path ...string) string {
	items, _, _ := unstructured.NestedSlice(obj.Object, path...)
	switch dice.IntN(3) {
	case 0:
		items = slices.DeleteFunc(items, func(item any) bool { return !isAddition(item) })
		items = append(items, others...)
	case 1:
		i := slices.IndexFunc(items, func(item any) bool { return !isAddition(item) })
		if i >= 0 && len(items) > 1 {
			items = slices.Delete(items, i, i+1)
		}
	default:
		for _, item := range items {
			if fields, _ := item.(map[string]any); fields["value"] != nil && !isAddition(item) {
				fields["value"] = "another"
			} else if fields["targetPort"] != nil && !isAddition(item) {
				fields["targetPort"] = int64(2)
			}
		}
	}
	_ = unstructured.SetNestedSlice(obj.Object, items, path...)
	return "changed the items of"
}

// isAddition reports whether others have added an item.
func isAddition(item any) bool {
	fields, _ := item.(map[string]any)
	name, _ := fields["name"].(string)
	return strings.HasPrefix(name, "added-")
}

// add adds something to a child, and notes it. The subject is locked.
func (s *subject) add(live *unstructured.Unstructured) {
	name := fmt.Sprintf("added-%d", s.troubles)
	added := addition{kind: live.GetKind(), name: live.GetName(), what: name}
	path := []string{"metadata", "annotations"}
	switch live.GetKind() {
	case "ConfigMap":
		path = []string{"data"}
	case "Service":
		ports, _, _ := unstructured.NestedSlice(live.Object, "spec", "ports")
		ports = append(ports, map[string]any{"name": name, "port": int64(9000 + s.troubles), "protocol": "TCP", "targetPort": int64(1)})
		_ = unstructured.SetNestedSlice(live.Object, ports, "spec", "ports")
		added.has = func(child map[string]any) bool { return hasItem(child, name, "spec", "ports") }
		s.noteAddition(live, added)
		return
	case "Deployment":
		containers, _, _ := unstructured.NestedSlice(live.Object, "spec", "template", "spec", "containers")
		main, _ := containers[0].(map[string]any)
		env, _, _ := unstructured.NestedSlice(main, "env")
		main["env"] = append(env, map[string]any{"name": name, "value": "mine"})
		_ = unstructured.SetNestedSlice(live.Object, containers, "spec", "template", "spec", "containers")
		added.has = func(child map[string]any) bool {
			containers, _, _ := unstructured.NestedSlice(child, "spec", "template", "spec", "containers")
			main, _ := containers[0].(map[string]any)
			return hasItem(main, name, "env")
		}
		s.noteAddition(live, added)
		return
	}
	_ = unstructured.SetNestedField(live.Object, "mine", append(slices.Clip(path), name)...)
	added.has = func(child map[string]any) bool {
		value, _, _ := unstructured.NestedString(child, append(slices.Clip(path), name)...)
		return value == "mine"
	}
	s.noteAddition(live, added)
}

func (s *subject) noteAddition(live *unstructured.Unstructured, added addition) {
	if s.additions == nil {
		s.additions = map[string][]addition{}
	}
	s.additions[string(live.GetUID())] = append(s.additions[string(live.GetUID())], added)
}

func hasItem(obj map[string]any, name string, path ...string) bool {
	items, _, _ := unstructured.NestedSlice(obj, path...)
	return slices.ContainsFunc(items, func(item any) bool {
		fields, _ := item.(map[string]any)
		return fields["name"] == name
	})
}

// collectionInterval is how often garbage is collected.
const collectionInterval = 200 * time.Millisecond

// collectGarbage deletes the children of objects that are gone, as Kubernetes does, until the channel is closed.
func (s *storm) collectGarbage(end <-chan struct{}) {
	for {
		select {
		case <-end:
			return
		case <-time.After(collectionInterval):
		}
		for _, subject := range s.subjects {
			subject.collectGarbage()
		}
	}
}

func (s *subject) collectGarbage() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.buried == "" {
		return
	}
	for _, child := range s.children() {
		owners := child.GetOwnerReferences()
		if len(owners) == 0 || slices.ContainsFunc(owners, func(owner metav1.OwnerReference) bool { return string(owner.UID) == s.uid }) {
			continue
		}
		uid, version := child.GetUID(), child.GetResourceVersion()
		err := s.storm.cluster.Client().Delete(context.Background(), &child, client.Preconditions{UID: &uid, ResourceVersion: &version})
		s.storm.try(err)
		s.note("the garbage collector deletes %s", child.GetName())
	}
}

// children returns the children by their names, which include strangers. The subject is locked.
func (s *subject) children() (all []unstructured.Unstructured) {
	for _, k := range kin {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(k.apiVersion)
		list.SetKind(k.kind + "List")
		s.storm.try(s.storm.cluster.Client().List(context.Background(), list, client.InNamespace(s.storm.namespace)))
		for _, item := range list.Items {
			if strings.HasPrefix(item.GetName(), s.name+"-") {
				all = append(all, item)
			}
		}
	}
	return all
}
