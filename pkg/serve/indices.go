package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/serve/document"
	"github.com/kopf-go/kopf/pkg/serve/protocol"
)

// text is JSON. The keys of indices are compared as texts, so the members of objects in them are in order. Values are texts,
// too, because each call with the index has all of them, as they are.
type text string

// indices are those of all files, by their names.
type indices map[string]*kopf.Index[text, text]

// indicesOf returns an empty index for each name that handlers fill.
func indicesOf(documents []*served) indices {
	all := indices{}
	for _, d := range documents {
		for _, declared := range d.declarations {
			if declared.Kind == document.Index && all[declared.ID] == nil {
				all[declared.ID] = &kopf.Index[text, text]{}
			}
		}
	}
	return all
}

func (all indices) names() []string { return slices.Sorted(maps.Keys(all)) }

// entries returns the contents of some indices, in the order of their keys.
func (all indices) entries(names []string) map[string][]protocol.IndexEntry {
	if len(names) == 0 {
		return nil
	}
	found := map[string][]protocol.IndexEntry{}
	for _, name := range names {
		content := maps.Collect(all[name].All())
		entries := make([]protocol.IndexEntry, 0, len(content))
		for _, key := range slices.Sorted(maps.Keys(content)) {
			entry := protocol.IndexEntry{Key: json.RawMessage(key)}
			for _, value := range content[key] {
				entry.Values = append(entry.Values, json.RawMessage(value))
			}
			entries = append(entries, entry)
		}
		found[name] = entries
	}
	return found
}

// named returns indices as options have them.
func (all indices) named(names []string) []kopf.AnyIndex {
	var found []kopf.AnyIndex
	for _, name := range names {
		found = append(found, all[name])
	}
	return found
}

// index returns the keys and values of an object. Nil means that the index keeps what it has.
func (h *handler) index(ctx context.Context, i *kopf.Indexed) (map[text]text, error) {
	call, err := h.about(protocol.Index, i)
	if err != nil {
		return nil, err
	}
	addAttempt(call, i)
	reply, err := h.ask(ctx, call, h.conversation(ctx, i.Logger()))
	if err != nil {
		return nil, err
	}
	if err := failure(reply.Error); err != nil {
		return nil, err
	}
	if len(reply.Patch) > 0 || len(reply.Operations) > 0 || len(reply.Conditions) > 0 {
		return nil, errors.New("the answer of an index handler has changes of the object: an index writes nothing, so leave them out")
	}
	for _, event := range reply.Events {
		post(ctx, event)
	}
	if reply.Index == nil {
		return nil, nil
	}
	values := map[text]text{}
	for _, each := range reply.Index {
		key, err := json.Marshal(each.Key)
		if err != nil {
			return nil, fmt.Errorf("a key of the index cannot be encoded: %w", err)
		}
		value, err := json.Marshal(each.Value)
		if err != nil {
			return nil, fmt.Errorf("a value of the index cannot be encoded: %w", err)
		}
		if _, twice := values[text(key)]; twice {
			return nil, fmt.Errorf("the answer has the key %s of the index twice: an object has one value for each key, which can be a list", key)
		}
		values[text(key)] = text(value)
	}
	return values, nil
}
