package storage

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage/internal/wire"
)

// Cycle contains the states of an object at which the handlers of its open cycle have
// ended. An object can change while some handlers are retried, so that they end at
// different states; each handler is called next for the changes since its own.
type Cycle struct {
	// Token identifies the cycle. The Records of its ended handlers have the same one. If
	// none has, the cycle was finished by an operator that does not know this format.
	Token string
	// First is the state at which the first handler ended.
	First object.Essence
	// States are the later states at which handlers ended, the oldest first.
	States []object.Essence
	// At contains the ids of the handlers that ended at one of the States, with its index, or
	// with -1 for First. All others with a Record of this cycle ended at First.
	At map[string]int
	// Ordered contains the ids of ended handlers whose sub-handlers follow each other.
	Ordered []string
	// Again contains the sorted ids of the handlers that have seen a later state than the one at which they
	// count as ended, or than the base, with those of their sequence. The object can return to the earlier state, so they must be called
	// again without a change.
	Again []string
	// Since is the time of the first pass in a cycle of the former format, which has no
	// token. Records that were started later do not belong to it.
	Since time.Time
}

// sinceKey is the key of the time within the essence, in the former format.
const sinceKey = "kopf-cycle-since"

// wireCycle is the stored form of a cycle.
type wireCycle struct {
	Token  string            `json:"cycle"`
	First  json.RawMessage   `json:"first"`
	States []json.RawMessage `json:"states,omitempty"`
	At     map[string]int    `json:"at,omitempty"`

	Ordered []string `json:"ordered,omitempty"`
	Again   []string `json:"again,omitempty"`
}

// emptyState is the smallest stored state.
var emptyState = json.RawMessage("{}")

// EncodeCycle returns the text that stores a cycle: JSON on one line. If the limit is above
// zero, it is the maximum size in bytes. What does not fit is hashed as in EncodeBase, or left
// out: the latest states first, so that their handlers count as ended at an earlier state, and are called again. It
// fails only if the limit leaves no room even for the hashes of the first state.
func EncodeCycle(body *object.Body, c *Cycle, limit int) (string, error) {
	for n := len(c.States); ; n-- {
		shortened := c
		if n < len(c.States) {
			shortened = c.shortened(n)
		}
		text, err := shortened.encode(body, limit)
		if err == nil || n == 0 {
			return text, err
		}
	}
}

// shortened returns the cycle with some of the states.
func (c *Cycle) shortened(states int) *Cycle {
	short := *c
	short.States = c.States[:states]
	short.At = maps.Clone(c.At)
	short.Again = slices.Clone(c.Again)
	for id, index := range c.At {
		if index < states {
			continue
		}
		short.Again = append(short.Again, id)
		short.At[id] = states - 1
		if states == 0 {
			delete(short.At, id)
		}
	}
	slices.Sort(short.Again)
	short.Again = slices.Compact(short.Again)
	return &short
}

// encode encodes the cycle. If the whole does not fit, each state gets an equal share of the room.
func (c *Cycle) encode(body *object.Body, limit int) (string, error) {
	text, err := c.encodeStates(body, 0)
	if err != nil || limit <= 0 || len(text) <= limit {
		return text, err
	}
	withoutStates := c.wire()
	withoutStates.First = emptyState
	withoutStates.States = slices.Repeat([]json.RawMessage{emptyState}, len(c.States))
	empty, err := wire.Compact(withoutStates)
	if err != nil {
		return "", err
	}
	count := 1 + len(c.States)
	text, err = c.encodeStates(body, max(1, (limit-len(empty))/count+len(emptyState)))
	if err == nil && len(text) > limit {
		err = &tooLargeError{"the state of the handling cycle", len(text)}
	}
	return text, err
}

// wire returns the stored form without the states.
func (c *Cycle) wire() wireCycle {
	return wireCycle{Token: c.Token, At: c.At, Ordered: c.Ordered, Again: c.Again}
}

// encodeStates encodes the cycle with the same limit for each state.
func (c *Cycle) encodeStates(body *object.Body, limit int) (string, error) {
	stored := c.wire()
	text, _, err := EncodeBase(body, c.First, limit)
	if err != nil {
		return "", err
	}
	stored.First = json.RawMessage(text)
	for _, state := range c.States {
		text, _, err := EncodeBase(body, state, limit)
		if err != nil {
			return "", err
		}
		stored.States = append(stored.States, json.RawMessage(text))
	}
	return wire.Compact(stored)
}

// DecodeCycle decodes the text that EncodeCycle has stored for the object. It returns nil for
// null, and fails if the text is no cycle.
func DecodeCycle(body *object.Body, text string) (*Cycle, error) {
	decoded, err := wire.ParseMapping(text, nil)
	if err != nil || decoded == nil {
		return nil, err
	}
	token, isToken := decoded["cycle"].(string)
	if _, isFormer := decoded[sinceKey]; isFormer || isEnvelope(decoded) || !isToken {
		return decodeFormerCycle(body, decoded)
	}
	c := &Cycle{Token: token}
	c.First, err = decodeState(body, decoded["first"])
	if err != nil {
		return nil, err
	}
	states, _ := decoded["states"].([]any)
	for _, state := range states {
		essence, err := decodeState(body, state)
		if err != nil {
			return nil, err
		}
		c.States = append(c.States, essence)
	}
	at, _ := decoded["at"].(map[string]any)
	for id, index := range at {
		i, isInteger := index.(int64)
		if !isInteger || i < -1 || i >= int64(len(c.States)) {
			return nil, fmt.Errorf("the state of the handler %q is not one of the %d states", id, len(c.States))
		}
		if c.At == nil {
			c.At = make(map[string]int, len(at))
		}
		c.At[id] = int(i)
	}
	c.Ordered, err = decodeIDs(decoded, "ordered")
	if err != nil {
		return nil, err
	}
	c.Again, err = decodeIDs(decoded, "again")
	if err != nil {
		return nil, err
	}
	return c, nil
}

// decodeIDs returns the ids of handlers in a field.
func decodeIDs(decoded map[string]any, field string) (ids []string, err error) {
	list, isList := decoded[field].([]any)
	if !isList && decoded[field] != nil {
		return nil, fmt.Errorf("the field %q is not a list", field)
	}
	for _, one := range list {
		id, isText := one.(string)
		if !isText {
			return nil, fmt.Errorf("an id in the field %q is not a text", field)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func decodeState(body *object.Body, value any) (object.Essence, error) {
	mapping, isMapping := value.(map[string]any)
	if !isMapping {
		return nil, errors.New("a state is not a JSON object")
	}
	return decodeMapping(body, mapping)
}

// decodeFormerCycle decodes the former format: an essence with the time of the first pass.
func decodeFormerCycle(body *object.Body, decoded map[string]any) (*Cycle, error) {
	first, err := decodeMapping(body, decoded)
	if err != nil {
		return nil, err
	}
	text, _ := first[sinceKey].(string)
	// Without a time, it comes from elsewhere: the zero time is older than all records.
	since, _ := time.Parse(time.RFC3339Nano, text)
	delete(first, sinceKey)
	return &Cycle{First: first, Since: since}, nil
}

// without returns the cycle without the fields in all its states.
func (c *Cycle) without(fields []object.Path) *Cycle {
	if c == nil || len(fields) == 0 {
		return c
	}
	c.First = Without(c.First, fields...)
	for i, state := range c.States {
		c.States[i] = Without(state, fields...)
	}
	return c
}
