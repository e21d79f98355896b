package reconcile

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/reconcile/internal/kube"
)

func TestAStandbyKnowsWhatItHasNotSeen(t *testing.T) {
	tests := map[string]struct {
		now      kube.Version
		stale    bool // what was seen must not be handled
		released bool // it is not there any more
	}{
		"the last version was seen":          {kube.Version{UID: "u-1", ResourceVersion: "7"}, false, false},
		"a later version is there":           {kube.Version{UID: "u-1", ResourceVersion: "8"}, true, false},
		"the object is gone":                 {kube.Version{}, false, true},
		"another one of the name is there":   {kube.Version{UID: "u-2", ResourceVersion: "9"}, true, true},
		"versions are compared, not counted": {kube.Version{UID: "u-1", ResourceVersion: "10"}, true, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var m memory
			m.catchUp(seen(t, "u-1", "7"), test.now)
			if m.stale("7") != test.stale || m.released != test.released {
				t.Errorf("got %+v", m.recollection)
			}
		})
	}
}

func TestAStandbyRemembersWhatIsThereUntilTheWatchShowsIt(t *testing.T) {
	var m memory
	m.raise(kube.Version{UID: "u-1", ResourceVersion: "8"})
	m.renew(types.UID("u-1")) // the watch shows its creation
	if !m.stale("7") || m.stale("8") || m.stale("9") {
		t.Errorf("got %+v", m.recollection)
	}
}
