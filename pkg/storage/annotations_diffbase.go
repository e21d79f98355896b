package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/storage/internal/annotation"
)

// DefaultKey is the name of the annotation, or status field, that holds the base.
const DefaultKey = "last-handled-configuration"

// AnnotationsDiffBase stores the base in an annotation of the object. It is the
// default storage, and works for every resource. Its zero value matches the default
// of Kopf's operators.
//
// If the annotations would exceed the 256 KiB that Kubernetes allows, the essence is
// stored as keyed hashes of its values. The data of Secrets is always hashed; see
// EncodeBase.
//
// Specification: Configuration, "Change detection".
type AnnotationsDiffBase struct {
	// Prefix is the domain of the annotation; DefaultPrefix if empty. Operators
	// that handle the same objects must use different prefixes.
	Prefix string
	// Key is the name of the annotation; DefaultKey if empty.
	Key string
	// IgnoredFields are left out of the essence, so their changes are not detected.
	IgnoredFields []object.Path
	// WithoutV1 disables reading and writing the annotation under the name that
	// early operators of Kopf use if the prefix and the key are long.
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

// Build returns the essence without the ignored fields and this storage's annotations.
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

// Fetch returns the base without the ignored fields, so that ignoring another field
// does not count as a change of all objects.
func (s AnnotationsDiffBase) Fetch(_ context.Context, body *object.Body) (object.Essence, error) {
	found, err := fetchAnnotation(body, s.keys(body), func() string { return "last handled state" }, func(text string) (*object.Essence, error) {
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

// Store writes the base. It fails if the object's other annotations leave too little
// room.
func (s AnnotationsDiffBase) Store(_ context.Context, body *object.Body, into Patch, essence object.Essence) error {
	text, _, err := encodeLine(body, into, s.keys(body), essence)
	if err != nil {
		return err
	}
	s.put(body, into, s.keys(body), text)
	return nil
}

func (s AnnotationsDiffBase) put(body *object.Body, into Patch, keys []string, text string) {
	for _, key := range keys {
		into.put(annotation.Path(key), body, text)
	}
	ensureMarker(s.prefix(), body, into)
}

// Hashes returns why Store hashes the essence.
func (s AnnotationsDiffBase) Hashes(body *object.Body, into Patch, essence object.Essence) HashReason {
	_, reason, _ := encodeLine(body, into, s.keys(body), essence)
	return reason
}

// encodeLine appends a line break, as kubectl does, for readable output.
func encodeLine(body *object.Body, into Patch, keys []string, essence object.Essence) (line string, reason HashReason, err error) {
	text, err := inRoom(body, into, keys, func(limit int) (text string, err error) {
		text, reason, err = EncodeBase(body, essence, limit)
		return text, err
	})
	return text + "\n", reason, err
}

// inRoom encodes a text for the annotations, whose line break is not included. It leaves room for
// the records of the next cycle, unless the text does not fit then: what is now goes before what
// may come later.
func inRoom(body *object.Body, into Patch, keys []string, encode func(limit int) (string, error)) (string, error) {
	room := annotation.Room(body, into, keys) - len("\n")
	text, err := encode(max(1, room-annotation.Reserve))
	if !isTooLarge(err) {
		return text, err
	}
	text, err = encode(max(1, room))
	if !isTooLarge(err) {
		return text, err
	}
	return "", fmt.Errorf("%w: shorten or remove other annotations of the object, by at least %d bytes", err, (len(text)-room)*len(keys))
}

// Validate checks the prefix and the key.
func (s AnnotationsDiffBase) Validate() error {
	return errors.Join(validatePrefix(s.Prefix), validateKey(s.Key))
}

// cycleSuffix is appended to the name of the base to store an open cycle.
const cycleSuffix = "-started"

// whatCycle describes the content for errors.
const whatCycle = "state of the handling cycle"

// cycleKey returns the annotation that holds an open cycle. It uses a
// prefix that all operators ignore. Prefixes that begin with "kopf." are not marked,
// and Kopf would see a change of the object, so their annotation is stored under the
// default prefix, which Kopf always ignores.
func (s AnnotationsDiffBase) cycleKey(body *object.Body) string {
	name := cmp.Or(s.Key, DefaultKey) + cycleSuffix
	prefix := s.prefix()
	if !annotation.NeedsMarker(prefix) && !annotation.IsKnownPrefix(prefix) {
		name = prefix + "/" + name
		prefix = DefaultPrefix
	}
	return annotation.Key(prefix, name, body)
}

// FetchCycle reads the open cycle, without the ignored fields.
func (s AnnotationsDiffBase) FetchCycle(_ context.Context, body *object.Body) (*Cycle, error) {
	found, err := fetchAnnotation(body, []string{s.cycleKey(body)}, func() string { return whatCycle }, func(text string) (*Cycle, error) { return DecodeCycle(body, text) })
	return found.without(s.IgnoredFields), err
}

// StoreCycle writes the open cycle. It fails if the object's other annotations leave too
// little room.
func (s AnnotationsDiffBase) StoreCycle(_ context.Context, body *object.Body, into Patch, c *Cycle) error {
	keys := []string{s.cycleKey(body)}
	text, err := inRoom(body, into, keys, func(limit int) (string, error) { return EncodeCycle(body, c, limit) })
	if err != nil {
		return err
	}
	s.put(body, into, keys, text+"\n")
	return nil
}

// PurgeCycle removes the open cycle.
func (s AnnotationsDiffBase) PurgeCycle(_ context.Context, body *object.Body, into Patch) error {
	into.remove(annotation.Path(s.cycleKey(body)), body)
	return nil
}
