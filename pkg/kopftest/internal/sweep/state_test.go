package sweep

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func objectsIn(t *testing.T, texts ...string) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, text := range texts {
		one := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &one.Object); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

func view(ignored ...[]string) View {
	return View{
		Strip:    func(raw map[string]any) map[string]any { return raw },
		Progress: func(raw map[string]any) any { return raw["progress"] },
		Ignored:  ignored,
	}
}

const (
	parent = `{kind: Claim, metadata: {namespace: ns, name: one, uid: 11111111-1111-1111-1111-111111111111, resourceVersion: "5"}, status: {at: "2000-01-01T00:00:00Z"}}`
	child  = `{kind: Pod, metadata: {namespace: ns, name: one-abc, generateName: one-, uid: 22222222-2222-2222-2222-222222222222, ownerReferences: [{uid: 11111111-1111-1111-1111-111111111111}]}}`
)

// The same life in two runs has other uids, times, versions, and generated names.
func TestRunsAreComparable(t *testing.T) {
	change := strings.NewReplacer("1111", "3333", "2222", "4444", "one-abc", "one-xyz", `"5"`, `"7"`, "2000", "2001")
	first := view().Take(objectsIn(t, parent, child))
	second := view().Take(objectsIn(t, change.Replace(child), change.Replace(parent)))
	if !first.Equals(second) || len(first.Differences(second)) != 0 {
		t.Errorf("got %v and %v", first, second)
	}
	owners, _, _ := unstructured.NestedSlice(first["Pod ns/one- (1)"].Content, "metadata", "ownerReferences")
	if got := fmt.Sprint(owners); got != "[map[uid:uid of Claim ns/one]]" {
		t.Errorf("got %s", got)
	}
}

func TestDifferencesAreNamed(t *testing.T) {
	before := view().Take(objectsIn(t, `{kind: Claim, metadata: {name: one}, spec: {size: 1, color: red}}`, `{kind: Claim, metadata: {name: two}}`))
	after := view().Take(objectsIn(t, `{kind: Claim, metadata: {name: one}, spec: {size: 2}}`, `{kind: Claim, metadata: {name: three}}`))
	want := []string{
		"Claim one.spec.color is absent instead of \"red\"", "Claim one.spec.size is 2 instead of 1",
		`Claim three is too much: {"kind":"Claim","metadata":{"name":"three"}}`, "Claim two is missing",
	}
	if got := before.Differences(after); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	one := view([]string{"spec"}).Take(objectsIn(t, `{kind: Claim, metadata: {name: one}, spec: {size: 1}}`))
	two := view([]string{"spec"}).Take(objectsIn(t, `{kind: Claim, metadata: {name: one}, spec: {size: 2}}`))
	if !one.Equals(two) {
		t.Error("an ignored field is compared")
	}
}

// How far the operator is does not count as a difference, but it is worth waiting for.
func TestProgressIsNoDifference(t *testing.T) {
	strip := func(map[string]any) map[string]any { return map[string]any{} }
	one := View{Strip: strip, Progress: view().Progress}.Take(objectsIn(t, `{kind: Claim, metadata: {name: one}, progress: 1}`))
	two := View{Strip: strip, Progress: view().Progress}.Take(objectsIn(t, `{kind: Claim, metadata: {name: one}, progress: 2}`))
	if one.Equals(two) || len(one.Differences(two)) != 0 {
		t.Errorf("got %v", one.Differences(two))
	}
}
