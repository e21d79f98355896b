package handlerlog

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/kopf-go/kopf/pkg/model/object"
)

const (
	// maxValue is how many bytes of a value are shown: enough for names and errors.
	maxValue = 256
	// maxValues limits the length of a message; longer messages are truncated anyway.
	maxValues = 2048
	// omitted replaces values that have a structure or cannot be shown.
	omitted = "..."
)

// eventMessage converts a line of the log to the message of an event: "message: error
// key=value". It shows only simple values such as texts and numbers, because users who
// can read events may not be allowed to read objects.
func eventMessage(message string, err error, values []any) string {
	var b strings.Builder
	if err == nil {
		b.WriteString(message)
	} else {
		b.WriteString(strings.TrimSuffix(message, ".") + ": " + recoverText(err, func() string { return err.Error() }))
	}
	for i := 0; i < len(values) && b.Len() < maxValues; i += 2 {
		value := "(missing)"
		if i+1 < len(values) {
			value = formatValue(values[i+1])
			if value == "" || strings.ContainsAny(value, " \t\r\n\"=") { // not a single word
				value = strconv.Quote(value)
			}
		}
		b.WriteString(" " + formatValue(values[i]) + "=" + value)
	}
	return b.String()
}

// formatValue returns a short text for a value.
func formatValue(value any) string {
	text := recoverText(value, func() string { return valueText(value) })
	if len(text) > maxValue {
		return strings.ToValidUTF8(text[:maxValue], "") + omitted
	}
	return text
}

// valueText prefers the methods of a value to its structure. All types of the Kubernetes
// API have a text, but it would show everything in them.
func valueText(value any) string {
	switch value := value.(type) {
	case nil:
		return "null"
	case types.NamespacedName, klog.ObjectRef:
		return fmt.Sprint(value)
	case logr.Marshaler: // knows what must not be logged
		return scalarText(value.MarshalLog())
	case object.Value:
		if value.Exists() && value.Known() {
			return valueText(value.Any())
		}
		return value.String()
	case error:
		return value.Error()
	case metav1.Object:
		return strings.TrimPrefix(value.GetNamespace()+"/"+value.GetName(), "/")
	case encoding.TextMarshaler:
		text, _ := value.MarshalText() // shows nothing after an error
		return string(text)
	case json.Marshaler:
		var scalar any // such as a quantity
		if data, err := value.MarshalJSON(); err != nil || json.Unmarshal(data, &scalar) != nil {
			return omitted
		}
		return scalarText(scalar)
	case interface{ Marshal() ([]byte, error) }:
		return omitted
	case fmt.Stringer:
		return value.String()
	default:
		return scalarText(value)
	}
}

// scalarText returns the text of a value without structure.
func scalarText(value any) string {
	switch kind := reflect.ValueOf(value).Kind(); {
	case kind == reflect.Invalid:
		return "null"
	case kind == reflect.String, reflect.Bool <= kind && kind <= reflect.Complex128:
		return fmt.Sprint(value)
	default:
		return omitted
	}
}

// recoverText protects the logger from panics in the methods of values, which would fail
// the handler. Typed nils are the usual reason.
func recoverText(value any, text func() string) (result string) {
	defer func() {
		if recover() == nil {
			return
		}
		result = omitted
		if v := reflect.ValueOf(value); v.Kind() == reflect.Pointer && v.IsNil() {
			result = "null"
		}
	}()
	return text()
}
