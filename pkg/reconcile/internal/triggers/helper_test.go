package triggers_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/reconcile/internal/triggers"
)

var (
	webs    = schema.GroupKind{Group: "example.com", Kind: "Web"}
	ofPods  = selector.New("v1", "pods")
	podKind = selector.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}
)

// pods returns the kind of pods, whose watch has the given objects.
func pods(listed ...*object.Snapshot) *triggers.ChildKind {
	return &triggers.ChildKind{Resource: podKind, Selectors: []selector.Selector{ofPods}, Objects: func() []*object.Snapshot { return listed }}
}

// pod is a pod in the namespace ns. Its fields are "owner=uid", "label=value", "size=1", and
// "uid=…", which is the name otherwise.
func pod(t testing.TB, name string, fields ...string) *object.Snapshot {
	t.Helper()
	uid, owners, labels, size := name, []string{}, "", "0"
	for _, field := range fields {
		key, value, _ := strings.Cut(field, "=")
		switch key {
		case "owner":
			owners = append(owners, fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Web","name":"web","uid":%q}`, value))
		case "label":
			labels = value
		case "uid":
			uid = value
		case "size":
			size = value
		}
	}
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"ns","name":%q,"uid":%q,"resourceVersion":%q,"labels":{"parent":%q},"ownerReferences":[%s]},"spec":{"size":%s}}`,
		name, uid, "v"+size, labels, strings.Join(owners, ","), size)
	snapshot, err := object.ParseSnapshot([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return snapshot
}

// witness records the calls.
type witness struct{ lines []string }

func (w *witness) Observe(e triggers.Event) {
	line := fmt.Sprintf("%s %s", e.Child.Snapshot.GetName(), e.Change)
	if e.Before != nil {
		line += " from " + e.Before.GetResourceVersion()
	}
	w.lines = append(w.lines, line)
}

// expect compares what was told since the last time.
func (w *witness) expect(t *testing.T, want ...string) {
	t.Helper()
	if got := strings.Join(w.lines, "; "); got != strings.Join(want, "; ") {
		t.Errorf("got %q, want %q", got, strings.Join(want, "; "))
	}
	w.lines = nil
}

// follow returns a witness of the children of a parent.
func follow(x *triggers.Children, link triggers.Link) *witness {
	w := &witness{}
	x.Follow(link, w, nil)
	return w
}

func ownedBy(uid string) triggers.Link { return triggers.OwnedBy(webs, types.UID(uid)) }

func added(s *object.Snapshot) object.WatchEvent {
	return object.WatchEvent{Type: apiwatch.Added, Snapshot: s}
}

func modified(s *object.Snapshot) object.WatchEvent {
	return object.WatchEvent{Type: apiwatch.Modified, Snapshot: s}
}

func deleted(s *object.Snapshot) object.WatchEvent {
	return object.WatchEvent{Type: apiwatch.Deleted, Snapshot: s}
}

// names describes children.
func names(all []triggers.Child) string {
	var found []string
	for _, child := range all {
		found = append(found, child.Snapshot.GetName())
	}
	return strings.Join(found, " ")
}
