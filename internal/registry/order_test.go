package registry_test

import (
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
	"github.com/kopf-go/kopf/pkg/model/selector"
)

func TestMistakesInTheOrderOfHandlers(t *testing.T) {
	kex := selector.New("kopfexamples")
	add := func(r *registry.Registry, id string, options ...handler.ChangeOption) {
		r.Add(handler.Update(kex, change(one), append(options, handler.ID(id))...))
	}
	for name, test := range map[string]struct {
		declare func(r *registry.Registry)
		want    string
	}{
		"in order": {func(r *registry.Registry) {
			add(r, "a")
			add(r, "b", handler.After("a"))
			add(r, "c", handler.After("a", "b"), handler.AfterFailure("b"))
		}, ""},
		"of fields": {func(r *registry.Registry) {
			add(r, "a", handler.Field("spec.size"))
			add(r, "a", handler.Field("spec.color"))
			add(r, "b", handler.After("a"))
			add(r, "c", handler.After("a/spec.size"))
		}, ""},
		"an unknown id": {func(r *registry.Registry) {
			add(r, "backup")
			add(r, "restore", handler.AfterFailure("bakup"))
		}, `registry/order_test.go:17: the handler "restore" waits for "bakup": no handler of changes has this id; did you mean backup?`},
		"a timer": {func(r *registry.Registry) {
			r.Add(handler.Timer(kex, change(one), handler.ID("tick")))
			add(r, "a", handler.After("tick"))
		}, `the handler "a" waits for "tick": no handler of changes has this id`},
		"another cause": {func(r *registry.Registry) {
			r.Add(handler.Delete(kex, change(one), handler.ID("clean")))
			add(r, "a", handler.After("clean"))
		}, `the handler "a" waits for "clean": the delete handler "clean" is never called for the same change`},
		"one of several causes": {func(r *registry.Registry) {
			r.Add(handler.Delete(kex, change(one), handler.ID("b")))
			add(r, "b")
			add(r, "a", handler.After("b"))
		}, ""},
		"itself": {func(r *registry.Registry) { add(r, "a", handler.After("a")) }, "is a circle: a waits for a"},
		"a circle": {func(r *registry.Registry) {
			add(r, "z", handler.After("a"))
			add(r, "a", handler.After("b"))
			add(r, "b", handler.AfterFailure("c"))
			add(r, "c", handler.After("a"))
		}, "is a circle: a waits for b waits for c waits for a"},
		"no id": {func(r *registry.Registry) { add(r, "a", handler.After()) }, "kopf.After needs the ids of other handlers"},
	} {
		t.Run(name, func(t *testing.T) {
			var r registry.Registry
			test.declare(&r)
			_, err := r.Handlers(scheme.Scheme)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v", err)
			}
		})
	}
}
