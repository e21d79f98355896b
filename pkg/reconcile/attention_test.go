package reconcile

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// versionOf returns a version of the object with a size.
func versionOf(t *testing.T, version, size int) *object.Snapshot {
	t.Helper()
	text := fmt.Sprintf(`{"metadata":{"name":"one","uid":"u","resourceVersion":"%d"},"spec":{"size":%d}}`, version, size)
	snapshot, err := object.ParseSnapshot([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return snapshot
}

// A daemon is woken by a change of its field, once, and never by a write of the operator, in whichever order the watch
// and the response show it.
func TestAttentionTellsChangesFromOwnWrites(t *testing.T) {
	key := object.Key{Resource: "kopfexamples", NamespacedName: types.NamespacedName{Name: "one"}}
	type world struct {
		*attentions
		at func(version, size int) *object.Snapshot
	}
	observe := func(w world, version, size int) { w.observe(key, w.at(version, size)) }
	write := func(w world, before, size, after, sizeAfter int, meanwhile ...func()) {
		w.beginWrite(key)
		for _, do := range meanwhile {
			do()
		}
		w.endWrite(key, w.at(before, size).Body(), w.at(after, sizeAfter).Body(), true)
	}
	tests := map[string]struct {
		happens func(w world)
		woken   int
	}{
		"nothing":                       {func(world) {}, 0},
		"a change":                      {func(w world) { observe(w, 11, 2) }, 1},
		"two changes":                   {func(w world) { observe(w, 11, 2); observe(w, 12, 1) }, 2},
		"a change of something else":    {func(w world) { observe(w, 11, 1) }, 0},
		"a version that is shown again": {func(w world) { observe(w, 11, 2); observe(w, 11, 2) }, 1},
		"a version that is outdated":    {func(w world) { observe(w, 9, 2) }, 0},
		"another object of the name": {func(w world) {
			text := `{"metadata":{"name":"one","uid":"other","resourceVersion":"11"}}`
			snapshot, _ := object.ParseSnapshot([]byte(text))
			w.observe(key, snapshot)
		}, 0},
		"a write":                                    {func(w world) { write(w, 10, 1, 11, 2); observe(w, 11, 2) }, 0},
		"a write that is shown early":                {func(w world) { write(w, 10, 1, 11, 2, func() { observe(w, 11, 2) }) }, 0},
		"a change after a write":                     {func(w world) { write(w, 10, 1, 11, 2); observe(w, 12, 3) }, 1},
		"a change back after a write":                {func(w world) { write(w, 10, 1, 11, 2); observe(w, 12, 1) }, 1},
		"a change before a write that is shown late": {func(w world) { write(w, 11, 2, 12, 3); observe(w, 11, 2); observe(w, 12, 3) }, 1},
		"a change during a write":                    {func(w world) { write(w, 10, 1, 11, 2, func() { observe(w, 11, 2); observe(w, 12, 3) }) }, 1},
		"a refused write, and a change during it": {func(w world) {
			w.beginWrite(key)
			observe(w, 11, 2)
			w.endWrite(key, w.at(10, 1).Body(), nil, true)
		}, 1},
		"a write without a response that was committed": {func(w world) {
			w.beginWrite(key)
			observe(w, 11, 2)
			w.endWrite(key, w.at(10, 1).Body(), w.at(10, 2).Body(), false)
		}, 0},
		"a write without a response that was not committed": {func(w world) {
			w.beginWrite(key)
			w.endWrite(key, w.at(10, 1).Body(), w.at(10, 2).Body(), false)
			observe(w, 11, 3)
		}, 1},
		"another history with lower versions": {func(w world) { w.beginAnew(key, w.at(3, 2).Body()); observe(w, 3, 2); observe(w, 4, 3) }, 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := world{&attentions{}, func(version, size int) *object.Snapshot { return versionOf(t, version, size) }}
			woken := 0
			a := &attention{uid: "u", fields: []object.Path{{"spec", "size"}}, wake: func() { woken++ }}
			end := w.follow(key, a, func() *object.Body { return w.at(10, 1).Body() })
			test.happens(w)
			if woken != test.woken {
				t.Errorf("woken %d times, want %d", woken, test.woken)
			}
			end()
			if len(w.of) != 0 {
				t.Errorf("%d entries are left", len(w.of))
			}
		})
	}
}

// A daemon can begin while the pass that has started it writes.
func TestAttentionThatBeginsDuringAWrite(t *testing.T) {
	key := object.Key{Resource: "kopfexamples", NamespacedName: types.NamespacedName{Name: "one"}}
	for name, seen := range map[string]*object.Snapshot{"before it is shown": versionOf(t, 10, 1), "after that": versionOf(t, 11, 2)} {
		t.Run(name, func(t *testing.T) {
			as := &attentions{}
			as.beginWrite(key)
			as.observe(key, versionOf(t, 11, 2))
			a := &attention{uid: "u", fields: []object.Path{{"spec", "size"}}, wake: func() { t.Error("it is woken") }}
			end := as.follow(key, a, seen.Body)
			as.endWrite(key, versionOf(t, 10, 1).Body(), versionOf(t, 11, 2).Body(), true)
			as.observe(key, versionOf(t, 11, 2))
			end()
			if len(as.of) != 0 {
				t.Error("an entry is left")
			}
		})
	}
}
