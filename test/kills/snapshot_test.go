package kills

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// snapshot has the content of all objects of some kinds, by their kinds and names, as texts that are
// the same in each life.
func (l *life) snapshot(names *strings.Replacer, namespaces []string, kinds ...schema.GroupVersionKind) (map[string]string, error) {
	found := map[string]string{}
	for _, namespace := range namespaces {
		for _, kind := range kinds {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(kind)
			if err := cluster.Client().List(l.t.Context(), list, client.InNamespace(namespace)); err != nil {
				return nil, err
			}
			for _, obj := range list.Items {
				text, err := describe(&obj, names)
				if err != nil {
					return nil, err
				}
				found[kind.Kind+" "+names.Replace(namespace)+"/"+obj.GetName()] = text
			}
		}
	}
	return found, nil
}

// These differ from life to life.
var (
	uids   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	times  = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)?`)
	hashes = regexp.MustCompile(`\\"(wanted|binding)\\":\\"[0-9a-f]+\\"`)
)

// describe returns the content of an object, and which managers own which fields.
func describe(obj *unstructured.Unstructured, names *strings.Replacer) (string, error) {
	obj = obj.DeepCopy()
	obj.SetResourceVersion("")
	for _, path := range [][]string{{"spec", "clusterIP"}, {"spec", "clusterIPs"}} {
		unstructured.RemoveNestedField(obj.Object, path...)
	}
	entries := obj.GetManagedFields()
	for i := range entries {
		entries[i].Time = nil
	}
	obj.SetManagedFields(entries)
	text, err := json.Marshal(obj)
	if err != nil {
		return "", err
	}
	described := names.Replace(string(text))
	described = uids.ReplaceAllString(described, "UID")
	described = times.ReplaceAllString(described, "TIME")
	return hashes.ReplaceAllString(described, `$1`), nil
}

// differences returns what is different, by object.
func differences(want, got map[string]string) []string {
	var lines []string
	for key, text := range want {
		switch other, found := got[key]; {
		case !found:
			lines = append(lines, key+" is missing")
		case other != text:
			lines = append(lines, key+" is\n\t"+other+"\n, not\n\t"+text)
		}
	}
	for key := range got {
		if _, found := want[key]; !found {
			lines = append(lines, key+" is left over: "+got[key])
		}
	}
	slices.Sort(lines)
	return lines
}
