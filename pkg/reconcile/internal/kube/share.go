package kube

import (
	"sync/atomic"

	"github.com/tidwall/gjson"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/shards"
)

// Share is the part of the objects of a resource that one stream shows: those of some shards. The shards can change: with
// more of them, the stream must list the objects again. A watch shows the shards of the list that it follows, without those that
// are not wanted anymore when it begins. A nil Share shows all objects.
type Share struct {
	// Division is how the objects are divided.
	Division shards.Division
	// Namespaced is set if the objects of the resource are in namespaces.
	Namespaced bool
	// Whole makes the stream show the objects of all shards, and only list them again if the shards change.
	Whole bool
	// Wanted returns the shards that the next list must show.
	Wanted func() shards.Set
	// Left is called before a watch begins that shows fewer shards than the last list or watch. Nil: it is not needed.
	Left func()
	// Ignored is called whenever it turns out that the API server does not know the selector. It can be nil.
	Ignored func()

	listed atomic.Pointer[shards.Set] // the shards of the last list, or of the one that has begun
	lists  atomic.Uint64              // the number of lists that have begun
	// complete are the shards of the last list that was complete, and completed is its number. Until the next one is, the
	// watch that it replaces may still show them.
	complete  atomic.Pointer[shards.Set]
	completed atomic.Uint64
	foreign   atomic.Bool // the API server has sent an object of another shard, since the list has begun
}

// nothing is a field selector for no object: it is no name.
const nothing = metav1.ObjectNameField + "=-"

// Narrow restricts a request of a reflector to the objects of the shards, as far as the API server can.
func (s *Share) Narrow(options *metav1.ListOptions) {
	if s == nil {
		return
	}
	isPage := options.Continue != "" || options.ResourceVersionMatch == metav1.ResourceVersionMatchExact
	isWatch := options.Watch || options.AllowWatchBookmarks
	isInitial := options.SendInitialEvents != nil && *options.SendInitialEvents
	if isInitial || !isPage && !isWatch {
		s.lists.Add(1)
		begun := s.Wanted()
		s.listed.Store(&begun)
		s.foreign.Store(false)
	}
	if isWatch && !isInitial {
		s.leave()
	}
	s.restrict(options)
}

// leave leaves out the shards that are not wanted anymore.
func (s *Share) leave() {
	before := s.Listed()
	after := before.And(s.Wanted())
	if after.Equal(before) {
		return
	}
	s.listed.Store(&after)
	if s.Left != nil {
		s.Left()
	}
}

// restrict adds the selector for the shards of the last list.
func (s *Share) restrict(options *metav1.ListOptions) {
	if s == nil || s.Whole {
		return
	}
	if held := s.Listed(); held.IsEmpty() {
		options.FieldSelector = both(options.FieldSelector, nothing)
	} else {
		options.ShardSelector = s.Division.Selector(held, s.Namespaced)
	}
}

// Listed returns the shards of the last list, or of the one that has begun.
func (s *Share) Listed() shards.Set {
	listed := s.listed.Load()
	if listed == nil {
		return shards.Set{}
	}
	return *listed
}

// Lists returns the number of lists that have begun. A list that begins later shows the shards that are wanted now.
func (s *Share) Lists() uint64 {
	if s == nil {
		return 0
	}
	return s.lists.Load()
}

// Complete records that the list is complete.
func (s *Share) Complete() {
	if s != nil {
		s.complete.Store(s.listed.Load())
		s.completed.Store(s.lists.Load())
	}
}

// Has reports whether the stream shows an object.
func (s *Share) Has(namespace string, uid types.UID) bool {
	return s == nil || s.Whole || s.Listed().Has(s.Division.Of(namespace, uid))
}

// hasJSON is like Has, for an object whose fields a function gets out of its JSON. What is no object belongs to every share:
// bookmarks and errors. It reads each field that it needs, and no other, because it is called for the objects of all shards.
func (s *Share) hasJSON(get func(path string) gjson.Result) bool {
	if s == nil || s.Whole {
		return true
	}
	name, namespace := get("metadata.uid").Str, ""
	if s.Division.ByNamespace {
		namespace = get("metadata.namespace").Str
	}
	uid := types.UID(name)
	if uid == "" || s.Has(namespace, uid) {
		return true
	}
	s.observeForeign(namespace, uid)
	return false
}

// Filter is who leaves out the objects of other replicas.
type Filter string

// The filters of streams.
const (
	ByServer   Filter = "server"   // the API server has sent no object of another replica since the last list
	ByOperator Filter = "operator" // the operator drops them before they are decoded
	Unfiltered Filter = "none"     // the stream shows all objects, as for an index
)

// Filter returns who leaves out the objects of other replicas. It is empty without shards.
func (s *Share) Filter() Filter {
	switch {
	case s == nil:
		return ""
	case s.Whole:
		return Unfiltered
	case s.foreign.Load():
		return ByOperator
	default:
		return ByServer
	}
}

// observeForeign records that the API server has sent an object of another replica.
func (s *Share) observeForeign(namespace string, uid types.UID) {
	if s.foreign.Load() {
		return
	}
	last := s.complete.Load()
	if last != nil && s.completed.Load() != s.lists.Load() && last.Has(s.Division.Of(namespace, uid)) {
		return
	}
	s.foreign.Store(true)
	if s.Ignored != nil && !s.Listed().IsEmpty() && s.Division.Selector(s.Listed(), s.Namespaced) != "" {
		s.Ignored()
	}
}
