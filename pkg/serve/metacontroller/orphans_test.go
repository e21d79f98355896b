package metacontroller

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// A parent that is woken by an orphan sees it, although it is not in the index yet.
func TestOrphansAreSeenBeforeTheyAreIndexed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		os := &orphans{}
		web := labels.SelectorFromSet(labels.Set{"app": "web"})
		expect := func(namespace string, want ...string) {
			t.Helper()
			got := map[string]bool{}
			for _, o := range os.matching(namespace, web) {
				got[o.Name] = true
			}
			for _, name := range want {
				if !got[name] {
					t.Errorf("%s is missing", name)
				}
			}
			if len(got) != len(want) {
				t.Errorf("got %v, want %v", got, want)
			}
		}
		add := func(namespace, name string, its labels.Set) {
			os.add(orphan{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}, uid: types.UID(name), labels: its})
		}
		add("here", "one", labels.Set{"app": "web"})
		add("here", "other", labels.Set{"app": "db"})
		add("there", "two", labels.Set{"app": "web"})
		expect("here", "one")
		expect("", "one", "two")
		add("here", "one", labels.Set{"app": "db"})
		os.remove("two")
		expect("")
		add("here", "three", labels.Set{"app": "web"})
		time.Sleep(indexTime)
		expect("here")
		time.Sleep(time.Second)
		add("here", "four", labels.Set{"app": "web"})
		expect("here", "four")
		if len(os.latest) != 1 {
			t.Errorf("%d are kept", len(os.latest))
		}
	})
}
