package peering

import (
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/peering"
	"github.com/kopf-go/kopf/pkg/settings"
)

func TestFreezeAndResume(t *testing.T) {
	tests := map[string]struct {
		identity string
		scoped   bool
	}{
		"namespace, default identity": {"", true},
		"cluster, given identity":     {"maintenance", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			target, namespaces := peering.Target{Name: cluster.Namespace(t)}, []string(nil)
			if test.scoped {
				target.Namespace, namespaces = target.Name, []string{target.Name}
			}
			object := create(t, cluster, api, target.Namespace, target.Name)
			o := runPeering(t, cluster.Config(), "me", settings.Peering{Name: target.Name}, namespaces...)
			g.Eventually(o.history).Should(gomega.Equal([]string{"active"}))
			for range 2 { // repeating is no error
				g.Expect(peering.Freeze(t.Context(), cluster.Config(), target, peering.FreezeOptions{
					Identity: test.identity, Priority: peering.DefaultFreezePriority, Lifetime: time.Hour,
				})).To(gomega.Equal(peering.Frozen{Paused: []string{"me"}}))
			}
			g.Eventually(o.history).Should(gomega.Equal([]string{"active", "paused"}))
			g.Expect(peering.Resume(t.Context(), cluster.Config(), target, test.identity)).To(gomega.Succeed())
			again := peering.Resume(t.Context(), cluster.Config(), target, test.identity)
			g.Expect(again).To(gomega.MatchError(gomega.MatchRegexp("there is no freeze by .*, nor by others; the entries are: me$")))
			g.Eventually(o.history).Should(gomega.Equal([]string{"active", "paused", "active"}))
			g.Expect(entries(cluster, object)()).To(gomega.HaveLen(1))
		})
	}
}

// Another freeze is no operator, and does not pause.
func TestFreezesAreNotPaused(t *testing.T) {
	g := gomega.NewWithT(t)
	target := peering.Target{Name: "default", Namespace: cluster.Namespace(t)}
	create(t, cluster, api, target.Namespace, target.Name)
	for priority, identity := range []string{"a", "b", "a"} {
		g.Expect(peering.Freeze(t.Context(), cluster.Config(), target, peering.FreezeOptions{
			Identity: identity, Priority: priority, Lifetime: time.Hour,
		})).To(gomega.Equal(peering.Frozen{}))
	}
}

func TestFreezeExpires(t *testing.T) {
	g := gomega.NewWithT(t)
	namespace := cluster.Namespace(t)
	object := create(t, cluster, api, namespace, "default")
	o := runPeering(t, cluster.Config(), "me", settings.Peering{}, namespace)
	g.Eventually(o.history).Should(gomega.Equal([]string{"active"}))
	target := peering.Target{Name: "default", Namespace: namespace}
	frozen, err := peering.Freeze(t.Context(), cluster.Config(), target, peering.FreezeOptions{Priority: 0, Lifetime: time.Second})
	g.Expect(frozen, err).To(gomega.Equal(peering.Frozen{Paused: []string{"me"}}))
	g.Eventually(o.history).Should(gomega.Equal([]string{"active", "paused"}))
	g.Eventually(o.history).Should(gomega.Equal([]string{"active", "paused", "active"}))
	g.Eventually(entries(cluster, object)).Should(gomega.HaveLen(1))
}

func TestFreezeFailures(t *testing.T) {
	g := gomega.NewWithT(t)
	target := peering.Target{Name: "none", Namespace: cluster.Namespace(t)}
	_, err := peering.Freeze(t.Context(), cluster.Config(), target, peering.FreezeOptions{Lifetime: time.Minute})
	g.Expect(peering.IsNotFound(err)).To(gomega.BeTrue())
	g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring(`"name":"none"}}' | kubectl create -f -`)))
	g.Expect(peering.IsNotFound(peering.Resume(t.Context(), cluster.Config(), target, ""))).To(gomega.BeTrue())
	_, err = peering.Freeze(t.Context(), cluster.Config(), target, peering.FreezeOptions{})
	g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("needs a lifetime")))
	_, err = peering.Freeze(t.Context(), withoutPermissions(), target, peering.FreezeOptions{Lifetime: time.Minute})
	g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("forbidden")))
}
