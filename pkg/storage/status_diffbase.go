package storage

import (
	"context"
	"errors"
	"fmt"

	"github.com/kopf-go/kopf/pkg/model/object"
)

// StatusDiffBase stores the base as text in a field of the object's status, or in any
// other field of the object. The schema of the resource must allow the field: the API
// server silently drops unknown fields.
//
// Specification: Configuration, "Storage transition".
type StatusDiffBase struct {
	// Field holds the base; status.kopf.last-handled-configuration if empty.
	Field object.Path
	// IgnoredFields are left out of the essence, so their changes are not detected.
	IgnoredFields []object.Path
}

var (
	_ DiffBase  = StatusDiffBase{}
	_ CycleBase = StatusDiffBase{}
	_ Hasher    = StatusDiffBase{}
	_ Validator = StatusDiffBase{}
)

func (s StatusDiffBase) field() object.Path {
	if len(s.Field) == 0 {
		return object.Path{"status", "kopf", DefaultKey}
	}
	return s.Field
}

// cycleField returns the field next to the base that holds an open cycle.
func (s StatusDiffBase) cycleField() object.Path {
	field := s.field()
	last := len(field) - 1
	return child(field[:last], field[last]+cycleSuffix)
}

// Build returns the essence without the ignored fields and this storage's own fields.
func (s StatusDiffBase) Build(body *object.Body, extra []object.Path) object.Essence {
	return s.clean(body, extra, BuildEssence(body, extra))
}

func (s StatusDiffBase) clean(_ *object.Body, _ []object.Path, essence object.Essence) object.Essence {
	return Without(Without(essence, s.IgnoredFields...), s.field(), s.cycleField())
}

// Fetch returns the base without the ignored fields.
func (s StatusDiffBase) Fetch(_ context.Context, body *object.Body) (object.Essence, error) {
	essence, err := fetchField(body, s.field(), "last handled state", DecodeBase)
	return Without(essence, s.IgnoredFields...), err
}

// FetchCycle returns the open cycle, without the ignored fields.
func (s StatusDiffBase) FetchCycle(_ context.Context, body *object.Body) (*Cycle, error) {
	c, err := fetchField(body, s.cycleField(), whatCycle, DecodeCycle)
	return c.without(s.IgnoredFields), err
}

// fetchField decodes the text in a field. It returns nothing if there is none.
func fetchField[T any](body *object.Body, field object.Path, what string, decode func(*object.Body, string) (T, error)) (found T, err error) {
	value, ok := body.Lookup(field)
	if !ok {
		return found, nil
	}
	text, isText := value.(string)
	err = errors.New("it is not a string")
	if isText {
		found, err = decode(body, text)
	}
	if err != nil {
		var none T
		return none, &BrokenError{What: what, Where: fmt.Sprintf("field %q", field), Err: err}
	}
	return found, nil
}

// Store writes the base.
func (s StatusDiffBase) Store(_ context.Context, body *object.Body, into Patch, essence object.Essence) error {
	text, _, err := EncodeBase(body, essence, 0)
	if err == nil {
		into.put(s.field(), body, text)
	}
	return err
}

// StoreCycle writes the open cycle.
func (s StatusDiffBase) StoreCycle(_ context.Context, body *object.Body, into Patch, c *Cycle) error {
	text, err := EncodeCycle(body, c, 0)
	if err == nil {
		into.put(s.cycleField(), body, text)
	}
	return err
}

// PurgeCycle removes the open cycle.
func (s StatusDiffBase) PurgeCycle(_ context.Context, body *object.Body, into Patch) error {
	into.remove(s.cycleField(), body)
	return nil
}

// Hashes returns why Store hashes the essence.
func (s StatusDiffBase) Hashes(body *object.Body, _ Patch, essence object.Essence) HashReason {
	_, reason, _ := EncodeBase(body, essence, 0)
	return reason
}

// Validate checks the field.
func (s StatusDiffBase) Validate() error { return validateField(s.Field) }
