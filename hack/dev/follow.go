package main

import (
	"context"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// follow reports on the console what happens to the object, and which events are
// posted for it, from its return on: nothing is missed of an object that is created
// then. It closes the channel when the object is handled. The returned function stops
// the report and waits for its end.
func follow(ctx context.Context, target *target, sample *unstructured.Unstructured, out *console) (<-chan struct{}, func(), error) {
	handled := make(chan struct{})
	if sample == nil {
		return handled, func() {}, nil
	}
	resource, err := target.resourceOf(sample)
	if err != nil {
		return nil, nil, err
	}
	api, err := dynamic.NewForConfig(target.config)
	if err != nil {
		return nil, nil, err
	}
	object := informer(api, resource, sample.GetNamespace(), fields.Set{"metadata.name": sample.GetName()})
	events := informer(api, schema.GroupVersionResource{Version: "v1", Resource: "events"}, sample.GetNamespace(),
		fields.Set{"involvedObject.kind": sample.GetKind(), "involvedObject.name": sample.GetName()})
	listen(object, newTeller(sample, out, handled).object)
	listen(events, newTeller(sample, out, nil).event)
	return handled, start(ctx, object, events), nil
}

func (t *target) resourceOf(sample *unstructured.Unstructured) (schema.GroupVersionResource, error) {
	mapped, err := client.New(t.config, client.Options{})
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	kind := sample.GroupVersionKind()
	mapping, err := mapped.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	return mapping.Resource, nil
}

func informer(api dynamic.Interface, resource schema.GroupVersionResource, namespace string, selected fields.Set) cache.SharedIndexInformer {
	return dynamicinformer.NewFilteredDynamicInformer(api, resource, namespace, 0, nil, func(options *metav1.ListOptions) {
		options.FieldSelector = selected.String()
	}).Informer()
}

// listen calls the function with each state of the object, and with nil after its
// deletion.
func listen(informer cache.SharedIndexInformer, state func(*unstructured.Unstructured)) {
	pass := func(object any) {
		if current, ok := object.(*unstructured.Unstructured); ok {
			state(current)
		}
	}
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    pass,
		UpdateFunc: func(_, object any) { pass(object) },
		DeleteFunc: func(any) { state(nil) },
	})
}

func start(ctx context.Context, informers ...cache.SharedIndexInformer) func() {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	for _, informer := range informers {
		group.Go(func() { informer.RunWithContext(ctx) })
	}
	for _, informer := range informers {
		cache.WaitForCacheSync(ctx.Done(), informer.HasSynced)
	}
	return func() {
		cancel()
		group.Wait()
	}
}

// teller writes the story of one object to the console. Only one informer calls it,
// so it needs no lock.
type teller struct {
	name    string
	out     *console
	story   story
	once    sync.Once
	handled chan struct{}
}

func newTeller(sample *unstructured.Unstructured, out *console, handled chan struct{}) *teller {
	return &teller{name: strings.ToLower(sample.GetKind()) + "/" + sample.GetName(), out: out, handled: handled}
}

func (t *teller) object(current *unstructured.Unstructured) {
	for _, sentence := range t.story.next(current) {
		t.out.say("%s: %s", t.name, sentence)
	}
	if isHandled(current) {
		t.once.Do(func() { close(t.handled) })
	}
}

func (t *teller) event(posted *unstructured.Unstructured) {
	if posted != nil {
		t.out.say("%s: event %s", t.name, eventSentence(posted))
	}
}
