package document

import (
	"log/slog"
	"reflect"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/kopf-go/kopf/pkg/backoff"
	"github.com/kopf-go/kopf/pkg/model/object"
	"github.com/kopf-go/kopf/pkg/settings"
)

// Settings are decoded by their Go type, so that a file has the words of the configuration guide, in camelCase,
// and no setting can be forgotten. What only code can give, such as a lifecycle, has no word.

var (
	durationType = reflect.TypeFor[time.Duration]()
	backoffType  = reflect.TypeFor[backoff.Backoff]()
	levelType    = reflect.TypeFor[slog.Level]()
	pathType     = reflect.TypeFor[object.Path]()
)

// settingName returns the word of a field: Execution is execution, QPS is qps, and FormerNames is formerNames.
func settingName(field string) string {
	word := []byte(field)
	for i := range word {
		if word[i] < 'A' || word[i] > 'Z' || i > 0 && i+1 < len(word) && word[i+1] >= 'a' && word[i+1] <= 'z' {
			break
		}
		word[i] += 'a' - 'A'
	}
	return string(word)
}

// isSetting reports whether a file can set a field of the type.
func isSetting(of reflect.Type) bool {
	switch of {
	case durationType, backoffType, levelType, pathType:
		return true
	}
	if _, ok := choices[of]; ok {
		return true
	}
	switch of.Kind() {
	case reflect.Bool, reflect.Int, reflect.Float32, reflect.String:
		return true
	case reflect.Slice:
		return of.Elem() == durationType || of.Elem() == pathType || of.Elem().Kind() == reflect.String
	case reflect.Map:
		return of.Elem().Kind() == reflect.String && of.Key().Kind() == reflect.String
	case reflect.Struct:
		return len(settingsIn(of)) > 0
	default:
		return false
	}
}

// settingsIn returns the names of the words of a group, with the indices of its fields.
func settingsIn(group reflect.Type) (fields []reflect.StructField) {
	for i := range group.NumField() {
		if field := group.Field(i); field.IsExported() && isSetting(field.Type) {
			fields = append(fields, field)
		}
	}
	return fields
}

func decodeSettings(r *reader, n *yaml.Node, into *settings.Settings) {
	decodeGroup(r, n, reflect.ValueOf(into).Elem(), "settings")
}

// decodeGroup decodes a group of settings.
func decodeGroup(r *reader, n *yaml.Node, into reflect.Value, what string) {
	fields := settingsIn(into.Type())
	r.each(n, what, func(key, value *yaml.Node) {
		var known []string
		for _, field := range fields {
			name := settingName(field.Name)
			if name == key.Value {
				decodeSetting(r, value, into.FieldByIndex(field.Index), what+"."+name)
				return
			}
			known = append(known, name)
		}
		r.problem(key, "%s has an unknown word, %s%s", what, key.Value, suggest(key.Value, known, ""))
	})
}

// decodeSetting decodes one setting, or a group.
func decodeSetting(r *reader, n *yaml.Node, into reflect.Value, what string) {
	switch into.Type() {
	case durationType:
		into.SetInt(int64(r.duration(n)))
		return
	case backoffType:
		into.Set(reflect.ValueOf(decodeBackoff(r, n)))
		return
	case levelType:
		into.SetInt(int64(r.level(n, what)))
		return
	case pathType:
		field, err := object.PathOf(r.texts(n)...)
		if err != nil {
			r.problem(n, "%s: %v", what, err)
		}
		into.Set(reflect.ValueOf(field))
		return
	}
	switch into.Kind() {
	case reflect.Interface:
		decodeStorage(r, n, into, what)
	case reflect.Bool:
		into.SetBool(r.flag(n))
	case reflect.Int:
		into.SetInt(int64(r.number(n, -1)))
	case reflect.Float32:
		var number float64
		if resolve(n).Decode(&number) != nil {
			r.problem(n, "%s must be a number, not %s", what, describe(n))
		}
		into.SetFloat(number)
	case reflect.String:
		into.SetString(r.text(n))
	case reflect.Slice:
		decodeSlice(r, n, into, what)
	case reflect.Map:
		all := reflect.MakeMap(into.Type())
		r.each(n, what, func(key, value *yaml.Node) {
			all.SetMapIndex(reflect.ValueOf(key.Value), reflect.ValueOf(r.text(value)))
		})
		into.Set(all)
	default:
		decodeGroup(r, n, into, what)
	}
}

// level returns a level by its name. Those of Python are known, too: people who change over have them.
func (r *reader) level(n *yaml.Node, what string) slog.Level {
	word := strings.ToLower(resolve(n).Value)
	ofPython := map[string]string{"10": "debug", "20": "info", "30": "warn", "40": "error", "50": "error", "critical": "error"}
	switch word {
	case "debug":
		return slog.LevelDebug
	case "info":
		return slog.LevelInfo
	case "warn", "warning":
		return slog.LevelWarn
	case "error":
		return slog.LevelError
	}
	if meant := ofPython[word]; meant != "" {
		r.problem(n, "%s is %s, which is a level of Python: write %s", what, word, meant)
	} else {
		r.problem(n, "%s must be debug, info, warn, or error, not %s", what, describe(n))
	}
	return slog.LevelInfo
}

// decodeSlice decodes a list of texts or durations. An empty list is not nil, which would be the default.
func decodeSlice(r *reader, n *yaml.Node, into reflect.Value, what string) {
	all := reflect.MakeSlice(into.Type(), 0, 0)
	for _, item := range r.list(n, what) {
		each := reflect.New(into.Type().Elem()).Elem()
		decodeSetting(r, item, each, what)
		all = reflect.Append(all, each)
	}
	into.Set(all)
}

// decodeBackoff decodes a constant pause, or one that doubles.
func decodeBackoff(r *reader, n *yaml.Node) backoff.Backoff {
	if resolve(n).Kind != yaml.MappingNode {
		return backoff.Constant(r.duration(n))
	}
	var doubling ExponentialBackoff
	decodeWords(r, n, backoffWords, &doubling, "the backoff")
	return backoff.Exponential(doubling.First, doubling.Longest)
}

// settingsSchema returns the schema of the settings.
func settingsSchema() schema { return groupSchema(reflect.TypeFor[settings.Settings]()) }

func groupSchema(group reflect.Type) schema {
	properties := schema{}
	for _, field := range settingsIn(group) {
		properties[settingName(field.Name)] = settingSchema(field.Type)
	}
	return schema{"type": "object", "additionalProperties": false, "properties": properties}
}

func settingSchema(of reflect.Type) schema {
	switch of {
	case durationType:
		return durationSchema()
	case backoffType:
		return schema{"anyOf": []schema{durationSchema(), backoffWords.schema()}}
	case levelType:
		return enumSchema("debug", "info", "warn", "warning", "error")
	case pathType:
		return textsSchema()
	}
	switch of.Kind() {
	case reflect.Interface:
		return storageSchema(choices[of])
	case reflect.Bool:
		return flagSchema()
	case reflect.Int:
		return schema{"type": "integer"}
	case reflect.Float32:
		return schema{"type": "number"}
	case reflect.String:
		return schema{"type": "string"}
	case reflect.Slice:
		return listSchema(settingSchema(of.Elem()))
	case reflect.Map:
		return mapSchema(schema{"type": "string"})
	default:
		return groupSchema(of)
	}
}
