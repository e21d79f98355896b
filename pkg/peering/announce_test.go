package peering

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/settings"
)

// ofRing are the options of a replica with shards: it has an entry only while it is told to.
func ofRing(o *Options) {
	o.Silent = true
	o.Lease = "ring"
}

func TestReplicasWithShardsAreOnePeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, object := gomega.NewWithT(t), newFakeObject()
		a := runPeering(t, object.find, "a", prioritized(1), ofRing)
		b := runPeering(t, object.find, "b", prioritized(1), ofRing)
		advance(time.Hour)
		g.Expect(object.identities()).To(gomega.BeEmpty())
		g.Expect(object.writes()).To(gomega.BeZero())

		a.Announce(true)
		synctest.Wait()
		g.Expect(object.identities()).To(gomega.Equal([]string{"a"}))
		advance(time.Hour)
		g.Expect(object.records()["a"].IsDead(time.Now())).To(gomega.BeFalse(), "it must be renewed")
		low := runPeering(t, object.find, "low", prioritized(0))
		g.Expect(low.history()).To(gomega.Equal([]string{"paused"}))
		for _, replica := range []*operator{a, b} {
			g.Expect(replica.history()).To(gomega.Equal([]string{"active"}), "a replica does not pause another one")
		}

		high := runPeering(t, object.find, "high", prioritized(2))
		for _, replica := range []*operator{a, b} {
			g.Expect(replica.history()).To(gomega.Equal([]string{"active", "paused"}), "one without an entry is paused, too")
		}
		high.stop()
		synctest.Wait()
		for _, replica := range []*operator{a, b} {
			g.Expect(replica.history()).To(gomega.Equal([]string{"active", "paused", "active"}))
		}
	})
}

func TestAnnouncedEntryMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, object := gomega.NewWithT(t), newFakeObject()
		a := runPeering(t, object.find, "a", prioritized(1), ofRing)
		b := runPeering(t, object.find, "b", prioritized(1), ofRing)
		a.Announce(true)
		synctest.Wait()
		a.Announce(false)
		synctest.Wait()
		g.Expect(object.identities()).To(gomega.BeEmpty())
		b.Announce(true)
		synctest.Wait()
		g.Expect(object.identities()).To(gomega.Equal([]string{"b"}))
		advance(time.Hour)
		g.Expect(object.identities()).To(gomega.Equal([]string{"b"}), "a must not renew its entry")

		object.set("c", encoded(map[string]any{"": Record{Priority: 1, LastSeen: time.Now(), Lifetime: time.Hour, Lease: "ring"}.encode()})[""])
		advance(time.Minute)
		g.Expect(object.identities()).To(gomega.Equal([]string{"b"}), "c was killed while it had the entry")
		g.Expect(b.history()).To(gomega.Equal([]string{"active"}))
		b.stop()
		g.Expect(object.identities()).To(gomega.BeEmpty())
	})
}

// Announcements can come and go faster than the writes, and before the object is known.
func TestTheLastAnnouncementCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, object := gomega.NewWithT(t), newFakeObject()
		object.remove()
		a := runPeering(t, object.find, "a", settings.Peering{}, ofRing)
		a.Announce(true)
		advance(time.Minute)
		object.change(func() { object.status = map[string]any{} })
		advance(time.Minute)
		g.Expect(object.identities()).To(gomega.Equal([]string{"a"}))
		for _, announced := range []bool{false, true, false} {
			a.Announce(announced)
		}
		synctest.Wait()
		g.Expect(object.identities()).To(gomega.BeEmpty())
		advance(time.Hour)
		g.Expect(object.identities()).To(gomega.BeEmpty())
	})
}

// An operator that gets a namespace later announces itself there as it does elsewhere.
func TestNewNamespacesHaveTheAnnouncement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, objects := gomega.NewWithT(t), fakeObjects{"a": newFakeObject(), "b": newFakeObject()}
		o := runPeering(t, objects.find, "me", settings.Peering{}, namespaced("a"), ofRing)
		o.SetNamespaces([]string{"a", "b"})
		advance(time.Minute)
		g.Expect(objects["b"].identities()).To(gomega.BeEmpty())
		o.Announce(true)
		synctest.Wait()
		g.Expect(objects["b"].identities()).To(gomega.Equal([]string{"me"}))
		o.SetNamespaces([]string{"a"})
		synctest.Wait()
		o.SetNamespaces([]string{"a", "b"})
		synctest.Wait()
		g.Expect(objects["b"].identities()).To(gomega.Equal([]string{"me"}))
	})
}
