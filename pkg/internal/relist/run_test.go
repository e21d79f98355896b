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
type empty struct{ lists atomic.Int64 }

func (e *empty) List(context.Context, metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	e.lists.Add(1)
	return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}, nil
}

func (e *empty) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	started := watch.NewRaceFreeFake()
	context.AfterFunc(ctx, started.Stop)
	if IsList(options) {
		e.lists.Add(1)
		started.Action(watch.Bookmark, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: "7", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		}})
	}
	return started, nil
}

// Replicas that get and lose shards list objects again and again. Nothing has failed, so nothing is late.
func TestRefreshesNeedNoPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := &empty{}
		watching := settings.Settings{}.WithDefaults().Watching
		source := NewSource[*metav1.PartialObjectMetadataList](cluster, time.Minute, watching, nil, nil)
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
