package apiserver

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-go/kopf/pkg/kopftest/internal/apiserver/store"
)

func (r *request) notFound() error {
	return apierrors.NewNotFound(r.of.GroupResource(), r.key.Name)
}

// get answers with one object.
func (s *Server) get(w http.ResponseWriter, r *request) error {
	stored := s.store.Get(r.of.Stored.GroupResource(), r.key)
	if stored == nil {
		return r.notFound()
	}
	return s.respondObject(w, r, http.StatusOK, stored)
}

// token is the state of a list that continues.
type token struct {
	Version uint64 `json:"v"`
	After   string `json:"start"`
}

// list answers with a page of objects.
func (s *Server) list(w http.ResponseWriter, r *request) error {
	form, err := viewOf(r.Request)
	if err != nil {
		return err
	}
	selected, err := s.selection(r)
	if err != nil {
		return err
	}
	from, err := s.pageStart(r)
	if err != nil {
		return err
	}
	objects, version, err := s.store.List(r.of.Stored.GroupResource(), from.Version)
	if err != nil {
		return versionError(err, from.Version, s.store.Version())
	}
	objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
		return !selected.reads(o) || from.After != "" && store.Position(o) <= from.After
	})
	end := ""
	if len(objects) > 0 {
		end = store.Position(objects[len(objects)-1])
	}
	objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return !selected.matches(o) })
	metadata := map[string]any{"resourceVersion": strconv.FormatUint(version, 10)}
	if !form.metadataOnly { // Kubernetes 1.37 forgets it in this form
		selected.noteShards(r.of, metadata)
	}
	// A list continues as long as there are objects, selected or not: the last page can be empty.
	if limit, _ := strconv.Atoi(r.query.Get("limit")); limit > 0 && len(objects) >= limit && store.Position(objects[limit-1]) < end { // a bad limit is none
		data, _ := json.Marshal(token{version, store.Position(objects[limit-1])}) // always succeeds
		metadata["continue"] = base64.RawURLEncoding.EncodeToString(data)
		if selected.labels.Empty() && selected.fields.Empty() && selected.shards.Empty() {
			metadata["remainingItemCount"] = int64(len(objects) - limit)
		}
		objects = objects[:limit]
	}
	converted, err := s.writer.hooks.Convert(r.Context(), r.of, objects...)
	if err != nil {
		return err
	}
	return respond(w, http.StatusOK, form.list(r, converted, metadata))
}

// pageStart returns where a list begins: version 0 is the current one.
func (s *Server) pageStart(r *request) (from token, err error) {
	if text := r.query.Get("continue"); text != "" {
		data, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil || json.Unmarshal(data, &from) != nil {
			return from, apierrors.NewBadRequest("continue key is not valid: " + text)
		}
		return from, nil
	}
	version, err := parseVersion(r.query.Get("resourceVersion"))
	if current := s.store.Version(); err == nil && version > current {
		return from, versionError(store.ErrFuture, version, current)
	}
	if err != nil || r.query.Get("resourceVersionMatch") != "Exact" {
		return from, err
	}
	return token{Version: version}, nil
}

// parseVersion returns a version, 0 if there is none.
func parseVersion(text string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	version, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("Invalid value: %q: resourceVersion", text))
	}
	return version, nil
}

// versionError returns the answer to a version that the store does not know.
func versionError(err error, version, current uint64) error {
	switch {
	case errors.Is(err, store.ErrExpired):
		return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", version, current))
	case errors.Is(err, store.ErrFuture):
		status := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", version, current), 1)
		return status
	default:
		return err
	}
}
