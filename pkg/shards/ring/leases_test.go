package ring

import (
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kopf-go/kopf/pkg/shards"
)

// What a ring names its Leases, others find.
func TestLeasesAreToldApart(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	lease := func(name, ring, holder string, renewed time.Duration) coordinationv1.Lease {
		l := coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if ring != "" {
			l.Labels = map[string]string{label: newNames(Config{Name: ring}).value}
		}
		l.Spec.HolderIdentity = &holder
		l.Spec.RenewTime = ptr.To(metav1.NewMicroTime(now.Add(-renewed)))
		return l
	}
	for _, name := range []string{"web", strings.Repeat("a", 253)} {
		d := shards.Division{Number: 3}
		names := newNames(Config{Name: name, Identity: "pod-1_x", Division: d})
		held := lease(names.shards[2], name, "pod-1_x", time.Second)
		held.Spec.AcquireTime = ptr.To(metav1.NewMicroTime(now.Add(-time.Hour)))
		held.Spec.LeaseDurationSeconds = ptr.To[int32](5)
		never := lease(memberPrefix(name)+"5", name, "pod-5", 0)
		never.Spec.RenewTime = nil
		got := Sort(name, []coordinationv1.Lease{
			lease(name, "", d.String(), 0), lease(names.member, name, "pod-1_x", 0), lease(memberPrefix(name)+"4", name, "pod-0_y", time.Minute), never,
			lease(names.shards[0], name, "", 0), held, lease("other", "other", "pod-9", 0), lease("web-stranger", name, "pod-9", 0), lease(names.shards[1], "", "pod-9", 0),
		}, 15*time.Second)
		switch {
		case got.Division != d || got.Gate.Name != name || len(got.Shards) != 2 || len(got.Members) != 3:
			t.Errorf("got %+v", got)
		case got.Shards[0].IsHeld(now) || !got.Shards[2].IsHeld(now.Add(3*time.Second)) || got.Shards[2].IsHeld(now.Add(4*time.Second)):
			t.Errorf("got %+v", got.Shards)
		case got.Shards[2].Since != now.Add(-time.Hour) || got.Shards[2].Renewed != now.Add(-time.Second) || got.Shards[2].Name != ShardLease(name, 2):
			t.Errorf("got %+v", got.Shards[2])
		case !slices.Equal(got.LiveMembers(now), []string{"pod-1_x"}):
			t.Errorf("got the members %q", got.LiveMembers(now))
		}
	}
	leader := Sort("web", []coordinationv1.Lease{lease("web", "", "pod-1_x", 0)}, 15*time.Second)
	if !leader.Division.IsZero() || !leader.Gate.IsHeld(now) {
		t.Errorf("got %+v", leader)
	}
}
