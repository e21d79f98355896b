package serve

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/kopf-go/kopf/pkg/serve/document"
)

// followed are the controllers of Metacontroller in the cluster.
type followed struct {
	stores []cache.Store
	signal chan struct{}
	// changed has a value when the controllers have changed, and do not change anymore.
	changed chan []string
}

// follow watches the controllers until the context is done. It returns when they are known.
func follow(ctx context.Context, config *rest.Config) (*followed, error) {
	api, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("the client for the controllers of Metacontroller cannot be made: %w", err)
	}
	f := &followed{signal: make(chan struct{}, 1), changed: make(chan []string)}
	var synced []cache.InformerSynced
	for _, resource := range []string{"compositecontrollers", "decoratorcontrollers"} {
		of := api.Resource(schema.GroupVersionResource{Group: document.MetacontrollerGroup, Version: "v1alpha1", Resource: resource})
		if _, err := of.List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
			return nil, fmt.Errorf("the %s of the cluster cannot be listed: install the definitions of Metacontroller, and permit list and watch, or leave --metacontroller out: %w", resource, err)
		}
		store, informer := f.informer(of)
		f.stores = append(f.stores, store)
		synced = append(synced, informer.HasSynced)
		go informer.RunWithContext(ctx)
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil, context.Cause(ctx)
	}
	go f.settle(ctx)
	return f, nil
}

func (f *followed) informer(of dynamic.ResourceInterface) (cache.Store, cache.Controller) {
	return cache.NewInformerWithOptions(cache.InformerOptions{
		ObjectType: &unstructured.Unstructured{},
		ListerWatcher: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				return of.List(ctx, options)
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				return of.Watch(ctx, options)
			},
		},
		Handler: cache.ResourceEventHandlerDetailedFuncs{
			AddFunc: func(_ any, isInInitialList bool) {
				if !isInInitialList {
					f.wake()
				}
			},
			UpdateFunc: func(before, after any) {
				was, wasObject := before.(*unstructured.Unstructured)
				is, isObject := after.(*unstructured.Unstructured)
				if wasObject && isObject && was.GetGeneration() != is.GetGeneration() {
					f.wake()
				}
			},
			DeleteFunc: func(any) { f.wake() },
		},
	})
}

func (f *followed) wake() {
	select {
	case f.signal <- struct{}{}:
	default:
	}
}

// settle reports changes when there are no others for a while.
func (f *followed) settle(ctx context.Context) {
	var settled <-chan time.Time
	var report chan []string
	for {
		select {
		case <-f.signal:
			settled = time.After(settleTime)
			report = nil
		case <-settled:
			settled = nil
			report = f.changed
		case report <- []string{"the controllers of the cluster"}:
			report = nil
		case <-ctx.Done():
			return
		}
	}
}

// document returns the controllers as they are now. Those that cannot be used are logged, and left out, so that they do not
// keep others from running.
func (f *followed) document(logger logr.Logger) *document.Document {
	var all []*document.Controller
	for _, store := range f.stores {
		for _, item := range store.List() {
			obj, ok := item.(*unstructured.Unstructured)
			if !ok {
				continue
			}
			c, err := document.ParseController(obj.Object)
			if err != nil {
				logger.Error(err, "A controller of the cluster cannot be used.", "kind", obj.GetKind(), "name", obj.GetName())
				continue
			}
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b *document.Controller) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	return document.OfCluster(all)
}
