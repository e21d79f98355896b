package peering

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onsi/gomega"

	"github.com/kopf-go/kopf/pkg/settings"
)

// fakeObjects are peering objects by namespace; other namespaces have none.
type fakeObjects map[string]*fakeObject

func (p fakeObjects) find(ctx context.Context, target Target, group string) (peeringAPI, error) {
	if object := p[target.Namespace]; object != nil {
		return object.find(ctx, target, group)
	}
	return nil, target.notFound(group, true)
}

func namespaced(namespaces ...string) func(*Options) {
	return func(o *Options) { o.Namespaced, o.Namespaces = true, namespaces }
}

func TestStandaloneOperatorIgnoresThePeering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, object := gomega.NewWithT(t), newFakeObject()
		object.set("high", entry(1, time.Hour))
		o := runPeering(t, object.find, "me", settings.Peering{Standalone: true})
		advance(time.Hour)
		g.Expect(o.history()).To(gomega.Equal([]string{"active"}))
		g.Expect(object.writes()).To(gomega.BeZero())
	})
}

func TestAnyNamespacePausesTheOperator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, objects := gomega.NewWithT(t), fakeObjects{"a": newFakeObject(), "b": newFakeObject()}
		o := runPeering(t, objects.find, "me", settings.Peering{}, namespaced("a", "b", "without"))
		g.Expect(o.history()).To(gomega.Equal([]string{"active"}))
		objects["b"].set("high", entry(1, time.Hour))
		synctest.Wait()
		g.Expect(o.history()).To(gomega.Equal([]string{"active", "paused"}))
		_, why := o.State()
		g.Expect(why).To(gomega.Equal(`KopfPeering "default" in the namespace "b" has operators of the higher priority: high`))
		objects["a"].set("high", entry(1, time.Hour))
		synctest.Wait()
		objects["b"].set("high", nil)
		synctest.Wait()
		g.Expect(o.history()).To(gomega.Equal([]string{"active", "paused"}))
		objects["a"].set("high", nil)
		synctest.Wait()
		g.Expect(o.history()).To(gomega.Equal([]string{"active", "paused", "active"}))
	})
}

func TestMandatoryPeeringMustExistInEveryNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, objects := gomega.NewWithT(t), fakeObjects{"a": newFakeObject()}
		o := runPeering(t, objects.find, "me", settings.Peering{Name: "mine", Mandatory: true}, namespaced("a", "b"))
		g.Expect(o.history()).To(gomega.Equal([]string{"paused"}))
		_, why := o.State()
		g.Expect(why).To(gomega.Equal(`KopfPeering "mine" in the namespace "b" is missing`))
	})
}

func TestThereIsNoNotificationBeforeAllNamespacesAreKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, objects := gomega.NewWithT(t), fakeObjects{"a": newFakeObject(), "b": newFakeObject()}
		objects["b"].fail(errors.New("down"))
		o := runPeering(t, objects.find, "me", settings.Peering{}, namespaced("a", "b"))
		advance(time.Hour)
		g.Expect(o.history()).To(gomega.BeEmpty())
		paused, why := o.State()
		g.Expect(paused).To(gomega.BeTrue())
		g.Expect(why).To(gomega.Equal("the peering is not known yet"))
		objects["b"].fail(nil)
		advance(10 * time.Second)
		g.Expect(o.history()).To(gomega.Equal([]string{"active"}))
	})
}

func TestSetNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, objects := gomega.NewWithT(t), fakeObjects{"a": newFakeObject(), "b": newFakeObject()}
		o := runPeering(t, objects.find, "me", settings.Peering{}, namespaced())
		g.Expect(o.history()).To(gomega.Equal([]string{"active"}), "there are no namespaces")
		objects["b"].set("high", entry(1, time.Hour))
		o.SetNamespaces([]string{"a", "b"})
		synctest.Wait()
		g.Expect(o.history()).To(gomega.Equal([]string{"active", "paused"}))
		o.SetNamespaces([]string{"a"})
		synctest.Wait()
		g.Expect(o.history()).To(gomega.Equal([]string{"active", "paused", "active"}))
		g.Expect(objects["a"].identities()).To(gomega.Equal([]string{"me"}))
		g.Expect(objects["b"].identities()).To(gomega.Equal([]string{"high"}))
		o.stop()
		g.Expect(objects["a"].identities()).To(gomega.BeEmpty())
		o.SetNamespaces([]string{"b"})
		synctest.Wait()
		g.Expect(objects["b"].identities()).To(gomega.Equal([]string{"high"}), "the peering has stopped")
	})
}

func TestNewNamespaceWithoutMandatoryPeeringPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, objects := gomega.NewWithT(t), fakeObjects{"a": newFakeObject()}
		o := runPeering(t, objects.find, "me", settings.Peering{Mandatory: true}, namespaced("a"))
		o.SetNamespaces([]string{"a", "b"})
		synctest.Wait()
		g.Expect(o.history()).To(gomega.Equal([]string{"active", "paused"}))
	})
}

func TestEntryStaysUntilTheWorkReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, object := gomega.NewWithT(t), newFakeObject()
		p := newPeering(object.find, Options{Identity: "me", Notify: func(bool) {}})
		ctx, cancel := context.WithCancel(t.Context())
		failure := errors.New("failure of the work")
		err := p.RunDuring(ctx, func(ctx context.Context) error {
			synctest.Wait()
			cancel()
			<-ctx.Done()
			advance(time.Minute) // a slow handler
			g.Expect(object.identities()).To(gomega.Equal([]string{"me"}))
			return failure
		})
		g.Expect(err).To(gomega.MatchError(failure))
		g.Expect(object.identities()).To(gomega.BeEmpty())
	})
}

func TestEntryIsWrittenBeforeTheFirstNotification(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, object := gomega.NewWithT(t), newFakeObject()
		var known []string
		runPeering(t, object.find, "me", settings.Peering{}, func(o *Options) {
			o.Notify = func(bool) { known = object.identities() }
		})
		g.Expect(known).To(gomega.Equal([]string{"me"}))
	})
}

func TestRemovingTheEntryTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, object := gomega.NewWithT(t), newFakeObject()
		o := runPeering(t, object.find, "me", settings.Peering{})
		object.fail(errors.New("down"))
		start := time.Now()
		o.stop()
		g.Expect(time.Since(start)).To(gomega.BeNumerically("<=", removeTimeout+removeRetryDelay))
		g.Expect(o.lines()).To(gomega.ContainElement(gomega.ContainSubstring("alive until it expires")))
	})
}

func TestRemovingTheEntryIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, object := gomega.NewWithT(t), newFakeObject()
		o := runPeering(t, object.find, "me", settings.Peering{})
		object.fail(errors.New("busy"))
		var healing sync.WaitGroup
		healing.Go(func() {
			time.Sleep(time.Second)
			object.fail(nil)
		})
		o.stop()
		healing.Wait()
		g.Expect(object.identities()).To(gomega.BeEmpty())
	})
}

func TestIdentityIsTakenFromTheSettings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, object := gomega.NewWithT(t), newFakeObject()
		runPeering(t, object.find, "", settings.Peering{Identity: "mine"})
		g.Expect(object.identities()).To(gomega.Equal([]string{"mine"}))
	})
}

func TestDefaultIdentityIsUnique(t *testing.T) {
	object := newFakeObject()
	if a, b := newPeering(object.find, Options{}), newPeering(object.find, Options{}); a.options.Identity == "" || a.options.Identity == b.options.Identity {
		t.Errorf("got %q and %q", a.options.Identity, b.options.Identity)
	}
}
