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
	// maxValue is how many bytes of a value are shown: enough for a name or an
	// error, and too little for what only looks like one.
	maxValue = 256
	// maxValues limits what is collected of one line; more would be cut anyway.
	maxValues = 2048
	// omitted stands for a value that has a structure, or cannot be shown.
	omitted = "..."
)

// sentence is a line of the log as the message of an event: "message: error
// key=value". Of the values only texts, numbers and the like are shown: whoever may
// read events need not be allowed to read objects.
func sentence(message string, err error, values []any) string {
	var b strings.Builder
	if err == nil {
		b.WriteString(message)
	} else {
		b.WriteString(strings.TrimSuffix(message, ".") + ": " + safely(err, func() string { return err.Error() }))
	}
	for i := 0; i < len(values) && b.Len() < maxValues; i += 2 {
		value := "(missing)"
		if i+1 < len(values) {
			value = quoted(shown(values[i+1]))
		}
		b.WriteString(" " + shown(values[i]) + "=" + value)
	}
	return b.String()
}

// shown is a value for people.
func shown(value any) string {
	text := safely(value, func() string { return textOf(value) })
	if len(text) > maxValue {
		return strings.ToValidUTF8(text[:maxValue], "") + omitted
	}
	return text
}

// textOf looks at what a value can do before it looks at what it is made of. The
// types of the Kubernetes API all have texts, of everything in them.
func textOf(value any) string {
	switch value := value.(type) {
	case nil:
		return "null"
	case types.NamespacedName, klog.ObjectRef:
		return fmt.Sprint(value)
	case logr.Marshaler: // knows what is not to be logged
		return plain(value.MarshalLog())
	case object.Value:
		if value.Exists() && value.Known() {
			return textOf(value.Any())
		}
		return value.String()
	case error:
		return value.Error()
	case metav1.Object:
		return strings.TrimPrefix(value.GetNamespace()+"/"+value.GetName(), "/")
	case encoding.TextMarshaler:
		text, _ := value.MarshalText() // no text is no text
		return string(text)
	case json.Marshaler:
		return scalarOf(value)
	case interface{ Marshal() ([]byte, error) }:
		return omitted
	case fmt.Stringer:
		return value.String()
	default:
		return plain(value)
	}
}

// scalarOf is what JSON has in one word for a value: a quantity, a time.
func scalarOf(value json.Marshaler) string {
	var scalar any
	if data, err := value.MarshalJSON(); err != nil || json.Unmarshal(data, &scalar) != nil {
		return omitted
	}
	return plain(scalar)
}

// plain is the text of a value without a structure.
func plain(value any) string {
	switch kind := reflect.ValueOf(value).Kind(); {
	case kind == reflect.Invalid:
		return "null"
	case kind == reflect.String, reflect.Bool <= kind && kind <= reflect.Complex128:
		return fmt.Sprint(value)
	default:
		return omitted
	}
}

// quoted makes one word of a text.
func quoted(text string) string {
	if text == "" || strings.ContainsAny(text, " \t\r\n\"=") {
		return strconv.Quote(text)
	}
	return text
}

// safely is for the methods of values, which are somebody's code: a logger that
// panics would fail the handler. Typed nils are the usual reason.
func safely(value any, text func() string) (result string) {
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
