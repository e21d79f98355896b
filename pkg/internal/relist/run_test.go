package relist

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kopf-go/kopf/pkg/settings"
)

// lasting is a cluster whose watches last.
type lasting struct {
	lists   atomic.Int64
	takes   time.Duration // each list by a watch
	objects []string
}

func (e *lasting) List(context.Context, metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	e.lists.Add(1)
	return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}, nil
}

func (e *lasting) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	started := watch.NewRaceFreeFake()
	context.AfterFunc(ctx, started.Stop)
	if IsList(options) {
		e.lists.Add(1)
		time.AfterFunc(e.takes, func() {
			for _, name := range e.objects {
				started.Add(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "6"}})
			}
			started.Action(watch.Bookmark, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				ResourceVersion: "7", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
			}})
			started.Action(watch.Bookmark, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "8"}})
		})
	}
	return started, nil
}

// Replicas that get and lose shards list objects again and again. Nothing has failed, so nothing is late.
func TestRefreshesNeedNoPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := &lasting{}
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

// answered is a cluster whose lists by watches are answered by a function, if that has an error.
type answered struct {
	lasting
	began  time.Time
	asked  []time.Duration // when the lists began
	answer func(list int) error
}

func (a *answered) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if IsList(options) {
		a.asked = append(a.asked, time.Since(a.began))
		if err := a.answer(len(a.asked)); err != nil {
			return nil, err
		}
	}
	return a.lasting.Watch(ctx, options)
}

func TestPausesGrowWhileListsFail(t *testing.T) {
	failed := apierrors.NewInternalError(errors.New("failed"))
	butTheFourth := func(list int) error {
		if list == 4 {
			return nil
		}
		return failed
	}
	watching := settings.Settings{}.WithDefaults().Watching
	watching.ReconnectBackoff, watching.ReconnectLimit = time.Second, 6*time.Second
	tests := map[string]struct {
		answer func(list int) error
		asked  int // Refresh is called so many seconds after the start, or never
		want   []int
	}{
		"they fail":                    {func(int) error { return failed }, 0, []int{0, 1, 3, 7, 13, 19}},
		"the server asks for patience": {func(int) error { return apierrors.NewTooManyRequests("later", 10) }, 0, []int{0, 10, 20}},
		"a list is needed meanwhile":   {func(int) error { return failed }, 4, []int{0, 1, 3, 4, 8}},
		"a list that fails takes long": {func(list int) error { time.Sleep(3 * time.Second); return failed }, 0, []int{0, 4, 9}},
		"a list is needed during a list": {func(list int) error {
			if list == 1 {
				time.Sleep(3 * time.Second)
			}
			return failed
		}, 1, []int{0, 3, 4, 6}},
		"a watch lasts":    {butTheFourth, 100, []int{0, 1, 3, 7, 100, 101, 103}},
		"a watch is short": {butTheFourth, 10, []int{0, 1, 3, 7, 10, 16}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := &answered{began: time.Now(), answer: test.answer}
				source := NewSource[*metav1.PartialObjectMetadataList](cluster, time.Minute, watching, nil, nil)
				ctx, stop := context.WithCancel(klog.NewContext(t.Context(), unwanted(t)))
				done := make(chan struct{})
				go func() {
					defer close(done)
					Run(ctx, watching, source, &metav1.PartialObjectMetadata{}, cache.NewStore(cache.MetaNamespaceKeyFunc), nil)
				}()
				if test.asked > 0 {
					time.AfterFunc(time.Duration(test.asked)*time.Second, source.Refresh)
				}
				last := time.Duration(test.want[len(test.want)-1]) * time.Second
				time.Sleep(last*3/2 + time.Second/2)
				stop()
				<-done
				if len(cluster.asked) < len(test.want) {
					t.Fatalf("the lists began at %v, not %v", cluster.asked, test.want)
				}
				for i, want := range test.want[1:] {
					pause := time.Duration(want-test.want[i]) * time.Second
					got := cluster.asked[i+1] - cluster.asked[i]
					if cluster.asked[i+1] < time.Duration(want)*time.Second || got > pause+time.Duration(float64(pause)*jitter)+time.Millisecond {
						t.Errorf("the lists began at %v, not %v", cluster.asked, test.want)
					}
				}
			})
		})
	}
}

// unwanted is a logger that nothing may use.
func unwanted(t *testing.T) logr.Logger {
	return funcr.New(func(_, text string) { t.Errorf("it is logged: %s", text) }, funcr.Options{Verbosity: 10})
}

// noting is a store that notes bookmarks.
type noting struct {
	cache.ReflectorStore
	bookmarks []string
}

func (n *noting) Bookmark(version string) error {
	n.bookmarks = append(n.bookmarks, version)
	return nil
}

func TestStoresAreToldWhatTheReflectorSees(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		watching := settings.Settings{}.WithDefaults().Watching
		source := NewSource[*metav1.PartialObjectMetadataList](&lasting{objects: []string{"one", "two"}}, time.Minute, watching, nil, nil)
		content := cache.NewStore(cache.MetaNamespaceKeyFunc)
		for _, store := range []cache.ReflectorStore{&noting{ReflectorStore: content}, content} {
			ctx, stop := context.WithCancel(klog.NewContext(t.Context(), unwanted(t)))
			ends := 0
			time.AfterFunc(10*time.Second, source.Refresh)
			time.AfterFunc(20*time.Second, source.Interrupt)
			began := time.Now()
			Run(ctx, watching, source, &metav1.PartialObjectMetadata{}, store, func() bool {
				ends++
				return time.Since(began) > 15*time.Second
			})
			stop()
			if names := content.ListKeys(); ends != 2 || len(names) != 2 {
				t.Errorf("after %d ends, the store has %v", ends, names)
			}
			if n, ok := store.(*noting); ok && !slices.Equal(n.bookmarks, []string{"8", "8"}) {
				t.Errorf("the store is told about the bookmarks %v", n.bookmarks)
			}
		}
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
			cluster := &lasting{takes: time.Second}
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

// answering is a client that gives one answer to all requests, and keeps the selectors of them.
type answering struct {
	err  error
	seen []string
}

func (a *answering) List(_ context.Context, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	a.seen = append(a.seen, "list "+options.LabelSelector)
	return &metav1.PartialObjectMetadataList{}, a.err
}

func (a *answering) Watch(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	a.seen = append(a.seen, "watch "+options.LabelSelector)
	return watch.NewFake(), a.err
}

// What a list finds, the watch after it reports: only a failure of a list is news.
func TestRequestsAreNarrowedAndReported(t *testing.T) {
	failed := apierrors.NewInternalError(errors.New("failed"))
	for name, test := range map[string]struct {
		err     error
		stopped bool
		want    []error // that are reported
	}{
		"answers":                {nil, false, []error{nil}},
		"failures":               {failed, false, []error{failed, failed}},
		"answers after the end":  {nil, true, nil},
		"failures after the end": {failed, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			client := &answering{err: test.err}
			var reported []error
			narrow := func(options *metav1.ListOptions) { options.LabelSelector = "app=web" }
			source := NewSource(client, time.Minute, settings.Settings{}.WithDefaults().Watching, narrow, func(err error) { reported = append(reported, err) })
			ctx, stop := context.WithCancel(t.Context())
			if test.stopped {
				stop()
			}
			list, err := source.ListFunc(ctx, metav1.ListOptions{})
			if !errors.Is(err, test.err) || (list == nil) != (test.err != nil) {
				t.Errorf("the list is %v, %v", list, err)
			}
			if _, err := source.WatchFunc(ctx, metav1.ListOptions{}); !errors.Is(err, test.err) {
				t.Errorf("the watch fails: %v", err)
			}
			stop()
			if want := []string{"list app=web", "watch app=web"}; !slices.Equal(client.seen, want) {
				t.Errorf("the requests are %v, not %v", client.seen, want)
			}
			if !slices.Equal(reported, test.want) {
				t.Errorf("%v is reported, not %v", reported, test.want)
			}
		})
	}
}
