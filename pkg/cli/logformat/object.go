package logformat

import (
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	corev1 "k8s.io/api/core/v1"
)

// Object is the key of the value that a line is about: a corev1.ObjectReference, or
// a text "namespace/name", or "name" of an object of the cluster. It is the first
// value of that key; handlers can have values of the same key for other things.
const Object = "object"

// reference is what is known of an object.
type reference corev1.ObjectReference

// objectOf is the object that a value stands for, if it does.
func objectOf(value zapcore.Field) (reference, bool) {
	if value.Key != Object {
		return reference{}, false
	}
	if known, ok := value.Interface.(corev1.ObjectReference); ok {
		return reference(known), true
	}
	if value.Type != zapcore.StringType {
		return reference{}, false
	}
	namespace, name, both := strings.Cut(value.String, "/")
	if !both {
		namespace, name = "", value.String
	}
	return reference{Namespace: namespace, Name: name}, true
}

// String names the object for people.
func (r reference) String() string {
	if r.Namespace == "" {
		return r.Name
	}
	return r.Namespace + "/" + r.Name
}

func (r reference) nameField(key string) zapcore.Field { return zap.String(key, r.String()) }

func (r reference) objectField(key string) zapcore.Field { return zap.Object(key, r) }

// MarshalLogObject writes what is known, in the order of Kopf.
func (r reference) MarshalLogObject(line zapcore.ObjectEncoder) error {
	for _, part := range []struct{ key, value string }{
		{"apiVersion", r.APIVersion}, {"kind", r.Kind}, {"name", r.Name}, {"uid", string(r.UID)}, {"namespace", r.Namespace},
	} {
		if part.value != "" {
			line.AddString(part.key, part.value)
		}
	}
	return nil
}
