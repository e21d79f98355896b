package relist

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/kopf-go/kopf/pkg/settings"
)

// empty is a cluster without objects, whose watches last.
type empty struct {
	lists atomic.Int64
	takes time.Duration // each list by a watch
}

func (e *empty) List(context.Context, metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	e.lists.Add(1)
	return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}, nil
}

func (e *empty) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	started := watch.NewRaceFreeFake()
	context.AfterFunc(ctx, started.Stop)
	if IsList(options) {
		e.lists.Add(1)
		time.AfterFunc(e.takes, func() {
			started.Action(watch.Bookmark, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				ResourceVersion: "7", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
			}})
		})
	}
	return started, nil
}

// Replicas that get and lose shards list objects again and again. Nothing has failed, so nothing is late.
func TestRefreshesNeedNoPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := &empty{}
		watching := settings.Settings{}.WithDefaults().Watching
		source := NewSource[*metav1.PartialObjectMetadataList](cluster, time.Minute, watching, nil, nil)
		source.Interrupted = func(reason error) { t.Errorf("the watch is said to be interrupted: %v", reason) }
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			Run(ctx, watching, source, &metav1.PartialObjectMetadata{}, cache.NewStore(cache.MetaNamespaceKeyFunc), nil)
		}()
		for range 20 {
			time.Sleep(time.Second)
			before := cluster.lists.Load()
			source.Refresh()
			time.Sleep(time.Millisecond)
			if cluster.lists.Load() == before {
				t.Fatalf("after %d lists, the next one is late", before)
			}
		}
		before := cluster.lists.Load()
		time.Sleep(time.Minute)
		if listed := cluster.lists.Load() - before; listed > 0 {
			t.Errorf("the objects were listed %d times without a reason", listed)
		}
		stop()
		<-done
	})
}

// counted is a store that counts its complete lists.
type counted struct {
	cache.Store
	complete atomic.Int64
}

func (c *counted) Replace(items []any, version string) error {
	c.complete.Add(1)
	return c.Store.Replace(items, version)
}

// Lists that take long must end although the selectors change more often. Then one request follows for all these changes, and none of
// that is a failure.
func TestSelectorsThatChangeLetAListEnd(t *testing.T) {
	for name, test := range map[string]struct {
		changes int // each tenth of a second
		change  func(s *Source)
		between int64 // complete lists after 3.55 s
		want    int64 // in the end
	}{
		"more objects":                {35, (*Source).Refresh, 3, 5},
		"more and fewer":              {35, func(s *Source) { s.Refresh(); s.Renew() }, 3, 5},
		"more during the first list":  {9, (*Source).Refresh, 2, 2},
		"fewer during the first list": {9, (*Source).Renew, 2, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			cluster := &empty{takes: time.Second}
			watching := settings.Settings{}.WithDefaults().Watching
			source := NewSource[*metav1.PartialObjectMetadataList](cluster, time.Minute, watching, nil, nil)
			source.Interrupted = func(reason error) { t.Errorf("%s: the watch is said to be interrupted: %v", name, reason) }
			store := &counted{Store: cache.NewStore(cache.MetaNamespaceKeyFunc)}
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				Run(ctx, watching, source, &metav1.PartialObjectMetadata{}, store, nil)
			}()
			time.Sleep(50 * time.Millisecond)
			for i := range 35 {
				if i < test.changes {
					test.change(source)
				}
				time.Sleep(100 * time.Millisecond)
			}
			if complete := store.complete.Load(); complete != test.between {
				t.Errorf("%s: %d lists are complete after 3.55 s, not %d", name, complete, test.between)
			}
			time.Sleep(time.Minute)
			if complete, begun := store.complete.Load(), cluster.lists.Load(); complete != test.want || begun != test.want {
				t.Errorf("%s: %d of %d lists are complete, not %d", name, complete, begun, test.want)
			}
			stop()
			<-done
		})
	}
}
