package logformat

import (
	"strings"

	"go.uber.org/zap/zapcore"
	corev1 "k8s.io/api/core/v1"
)

// Object is the key of the object of a line. The value is a corev1.ObjectReference, or a
// text: "namespace/name", or "name" for cluster-scoped objects. Only the first value with
// this key counts; handlers can use the key for other values.
const Object = "object"

// reference identifies an object. Fields can be empty.
type reference corev1.ObjectReference

// objectOf returns the object that a value refers to, if any.
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
		namespace = ""
		name = value.String
	}
	return reference{Namespace: namespace, Name: name}, true
}

// String returns the namespace and the name of the object.
func (r reference) String() string {
	if r.Namespace == "" {
		return r.Name
	}
	return r.Namespace + "/" + r.Name
}

// MarshalLogObject writes the known fields, in the same order as Kopf.
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
