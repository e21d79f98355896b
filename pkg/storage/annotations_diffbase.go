package storage

import (
	"cmp"
	"context"
	"errors"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage/internal/annotation"
)

// DefaultKey is the name of the annotation, or status field, that holds the base.
const DefaultKey = "last-handled-configuration"

// AnnotationsDiffBase keeps the base in an annotation of the object: the default
// storage, and the one that works for every resource. Its zero value is what
// every operator of Kopf uses by default.
//
// The essence is kept as keyed hashes of its values if all annotations would
// outgrow the 256 KiB that Kubernetes allows, and so is the data of a Secret; see
// EncodeBase.
//
// Specification: Configuration, "Change detection".
type AnnotationsDiffBase struct {
	// Prefix is the domain of the annotation; DefaultPrefix if empty. Operators
	// that handle the same objects must have different ones.
	Prefix string
	// Key is the name of the annotation; DefaultKey if empty.
	Key string
	// IgnoredFields are no part of the essence: a change of them is no change.
	IgnoredFields []object.Path
	// WithoutV1 neither reads nor writes the annotation that early operators of
	// Kopf use in place of the current one if prefix and key are long.
	WithoutV1 bool
}

var (
	_ DiffBase  = AnnotationsDiffBase{}
	_ CycleBase = AnnotationsDiffBase{}
	_ Hasher    = AnnotationsDiffBase{}
	_ Validator = AnnotationsDiffBase{}
)

func (s AnnotationsDiffBase) prefix() string { return cmp.Or(s.Prefix, DefaultPrefix) }

func (s AnnotationsDiffBase) keys(body *object.Body) []string {
	return annotation.Keys(s.prefix(), cmp.Or(s.Key, DefaultKey), body, s.WithoutV1)
}

// Build makes the essence without the ignored fields and this storage's own annotations.
func (s AnnotationsDiffBase) Build(body *object.Body, extra []object.Path) object.Essence {
	return s.clean(body, extra, BuildEssence(body, extra))
}

func (s AnnotationsDiffBase) clean(body *object.Body, _ []object.Path, essence object.Essence) object.Essence {
	essence = Without(essence, s.IgnoredFields...)
	if annotation.All(essence) == nil {
		return essence
	}
	for _, key := range append(s.keys(body), s.cycleKey(body)) {
		essence = Without(essence, annotation.Path(key))
	}
	return essence
}

// Fetch reads the base. Fields that are ignored by now are left out of it, so
// that to ignore one more field is no change of all objects.
func (s AnnotationsDiffBase) Fetch(_ context.Context, body *object.Body) (object.Essence, error) {
	return s.fetch(body, s.keys(body), "last handled state")
}

func (s AnnotationsDiffBase) fetch(body *object.Body, keys []string, what string) (object.Essence, error) {
	found, err := fetchAnnotation(body, keys, what, func(text string) (*object.Essence, error) {
		essence, err := DecodeBase(body, text)
		if essence == nil {
			return nil, err
		}
		return &essence, nil
	})
	if found == nil {
		return nil, err
	}
	return Without(*found, s.IgnoredFields...), nil
}

// Store writes the base. It fails if the object's other annotations leave no room
// for it.
func (s AnnotationsDiffBase) Store(_ context.Context, body *object.Body, into Patch, essence object.Essence) error {
	return s.store(body, into, s.keys(body), essence)
}

func (s AnnotationsDiffBase) store(body *object.Body, into Patch, keys []string, essence object.Essence) error {
	text, _, err := encodeLine(body, into, keys, essence)
	if err != nil {
		return err
	}
	for _, key := range keys {
		into.put(annotation.Path(key), body, text)
	}
	mark(s.prefix(), body, into)
	return nil
}

// Hashes tells why Store keeps the essence as hashes.
func (s AnnotationsDiffBase) Hashes(body *object.Body, into Patch, essence object.Essence) HashReason {
	_, reason, _ := encodeLine(body, into, s.keys(body), essence)
	return reason
}

// encodeLine ends the text with a line break, as kubectl does, to be shown well.
func encodeLine(body *object.Body, into Patch, keys []string, essence object.Essence) (string, HashReason, error) {
	text, reason, err := EncodeBase(body, essence, max(1, annotation.Room(body, into, keys)-len("\n")))
	return text + "\n", reason, err
}

// Validate checks the prefix and the key.
func (s AnnotationsDiffBase) Validate() error {
	return errors.Join(validatePrefix(s.Prefix), validateKey(s.Key))
}

// cycleSuffix makes the place of an open cycle's essence from that of the base.
const cycleSuffix = "-started"

// cycleKey is where the essence of an open cycle is kept: beside the base, under
// a prefix of which all operators know that it is an operator's. Prefixes that
// begin with "kopf." are not marked, and Kopf would take the annotation for a
// change of the object; so theirs goes under the one prefix that it always knows.
func (s AnnotationsDiffBase) cycleKey(body *object.Body) string {
	name := cmp.Or(s.Key, DefaultKey) + cycleSuffix
	prefix := s.prefix()
	if !annotation.NeedsMarker(prefix) && !annotation.IsKnownPrefix(prefix) {
		name = prefix + "/" + name
		prefix = DefaultPrefix
	}
	return annotation.Key(prefix, name, body)
}

// FetchCycle reads the essence of the open cycle.
func (s AnnotationsDiffBase) FetchCycle(_ context.Context, body *object.Body) (object.Essence, error) {
	return s.fetch(body, []string{s.cycleKey(body)}, "state at the start of the handling cycle")
}

// StoreCycle writes the essence of the open cycle.
func (s AnnotationsDiffBase) StoreCycle(_ context.Context, body *object.Body, into Patch, essence object.Essence) error {
	return s.store(body, into, []string{s.cycleKey(body)}, essence)
}

// PurgeCycle removes the essence of the open cycle.
func (s AnnotationsDiffBase) PurgeCycle(_ context.Context, body *object.Body, into Patch) error {
	into.remove(annotation.Path(s.cycleKey(body)), body)
	return nil
}
