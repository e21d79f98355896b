package apiserver

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-go/kopf/pkg/kopftest/internal/apiserver/store"
)

// watcher sends the events of one watch.
type watcher struct {
	server   *Server
	r        *request
	w        http.ResponseWriter
	form     view
	selected selection
	cursor   uint64 // the version up to which everything is sent
	seen     orders
	timeout  <-chan time.Time
}

// watch streams events until the client or the server ends it.
func (s *Server) watch(w http.ResponseWriter, r *request) error {
	form, err := viewOf(r.Request)
	if err != nil {
		return err
	}
	version, err := parseVersion(r.query.Get("resourceVersion"))
	if err != nil {
		return err
	}
	sendsInitial, err := r.sendsInitial(version)
	if err != nil {
		return err
	}
	selected, err := s.selection(r)
	if err != nil {
		return err
	}
	if name := r.key.Name; name != "" {
		return errNoRoute
	}
	one := &watcher{server: s, r: r, w: w, form: form, selected: selected, cursor: version}
	one.seen, _ = s.streams.current()
	if seconds, err := strconv.Atoi(r.query.Get("timeoutSeconds")); err == nil && s.options.WatchesEnd {
		timer := time.NewTimer(time.Duration(seconds) * time.Second)
		defer timer.Stop()
		one.timeout = timer.C
	}
	if version == 0 && !sendsInitial { // what happens after the client knows that it watches is an event
		one.cursor = s.store.Version()
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	one.flush()
	if sendsInitial && !one.sendInitial() {
		return nil
	}
	one.follow()
	return nil
}

// sendsInitial reports whether a watch begins with all objects.
func (r *request) sendsInitial(version uint64) (bool, error) {
	initial := r.query.Get("sendInitialEvents")
	match := r.query.Get("resourceVersionMatch")
	var fault *field.Error
	switch {
	case initial != "" && match != string(metav1.ResourceVersionMatchNotOlderThan):
		fault = field.Forbidden(field.NewPath("resourceVersionMatch"), "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
	case initial == "" && match != "":
		fault = field.Forbidden(field.NewPath("resourceVersionMatch"), "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
	}
	if fault != nil {
		return false, apierrors.NewInvalid(schema.GroupKind{Group: "meta.k8s.io", Kind: "ListOptions"}, "", field.ErrorList{fault})
	}
	return isTrue(initial) || initial == "" && version == 0, nil
}

func (o *watcher) flush() {
	if flusher, ok := o.w.(http.Flusher); ok {
		flusher.Flush()
	}
}

// event is an event of a watch, with the fields in the order of a real API server.
type event struct {
	Type   apiwatch.EventType `json:"type"`
	Object any                `json:"object"`
}

// send writes an event, and reports whether the client still reads.
func (o *watcher) send(kind apiwatch.EventType, object any) bool {
	data, err := json.Marshal(event{kind, object})
	if err != nil {
		return false
	}
	_, err = o.w.Write(append(data, '\n'))
	o.flush()
	return err == nil
}

// sendObject sends an event about a stored object. An object that cannot be converted ends the watch.
func (o *watcher) sendObject(kind apiwatch.EventType, stored *unstructured.Unstructured) bool {
	object, err := o.server.writer.convert(o.r, stored)
	if err != nil {
		status := apierrors.NewInternalError(err).Status()
		status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		o.send(apiwatch.Error, status)
		return false
	}
	return o.send(kind, o.form.of(object))
}

// sendInitial sends all objects, and a bookmark at the end for clients that asked for it.
func (o *watcher) sendInitial() bool {
	objects, version, err := o.server.store.List(o.r.of.Stored.GroupResource(), 0)
	if err != nil {
		return false
	}
	for _, object := range objects {
		if o.selected.matches(object) && !o.sendObject(apiwatch.Added, object) {
			return false
		}
	}
	o.cursor = version
	if isTrue(o.r.query.Get("sendInitialEvents")) {
		return o.sendBookmark(map[string]any{metav1.InitialEventsAnnotationKey: "true"})
	}
	return true
}

// sendBookmark tells clients that want it up to which version they know everything.
func (o *watcher) sendBookmark(annotations map[string]any) bool {
	if !isTrue(o.r.query.Get("allowWatchBookmarks")) {
		return true
	}
	metadata := map[string]any{"resourceVersion": strconv.FormatUint(o.cursor, 10), "creationTimestamp": nil}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	return o.send(apiwatch.Bookmark, o.form.of(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": o.r.of.GroupVersion().String(), "kind": o.r.of.Kind, "metadata": metadata,
	}}))
}

// follow sends events as they happen.
func (o *watcher) follow() {
	for {
		given, signal := o.server.streams.current()
		version := o.server.store.Version()
		events, changed, err := o.server.store.Since(o.r.of.Stored.GroupResource(), o.cursor)
		if err != nil && !errors.Is(err, store.ErrFuture) { // the future may come
			var status metav1.Status
			if known, ok := versionError(err, o.cursor, version).(apierrors.APIStatus); ok {
				status = known.Status()
			}
			status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
			o.send(apiwatch.Error, status)
			return
		}
		if !o.sendAll(events) || given.ends != o.seen.ends {
			return
		}
		o.cursor = max(o.cursor, version)
		if given.bookmarks != o.seen.bookmarks && !o.sendBookmark(nil) {
			return
		}
		o.seen = given
		select {
		case <-changed:
		case <-signal:
		case <-o.r.Context().Done():
			return
		case <-o.timeout:
			_ = o.sendBookmark(nil) // the watch ends anyway
			return
		}
	}
}

// sendAll sends events. An object that is not selected anymore is deleted for the client.
func (o *watcher) sendAll(events []store.Event) bool {
	for _, event := range events {
		wasSelected := event.Before != nil && o.selected.matches(event.Before)
		isSelected := event.Type != apiwatch.Deleted && o.selected.matches(event.Object)
		object := event.Object
		kind := apiwatch.Modified
		switch {
		case isSelected && !wasSelected:
			kind = apiwatch.Added
		case wasSelected && !isSelected:
			kind = apiwatch.Deleted
			object = store.WithVersion(event.Before, event.Version)
		case !isSelected:
			o.cursor = event.Version
			continue
		}
		if !o.sendObject(kind, object) {
			return false
		}
		o.cursor = event.Version
	}
	return true
}
