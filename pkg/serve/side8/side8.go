package side8

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	modelobject "github.com/kopf-go/kopf/pkg/model/object"
)

// Variables returns the variables of a program for an object in JSON: K8S with all of it, and one for each field, such as
// K8S_SPEC_MASTER_REPLICAS and K8S_SPEC_HOSTS_0. True is 1, false is 0, and null is empty.
func Variables(object []byte) ([]string, error) {
	var fields map[string]any
	if err := utiljson.Unmarshal(object, &fields); err != nil {
		return nil, fmt.Errorf("the object cannot be decoded: %w", err)
	}
	all := []string{"_DOLLAR=$", "K8S=" + string(object)}
	flatten("K8S", fields, &all)
	all = slices.DeleteFunc(all, func(variable string) bool { return strings.ContainsRune(variable, 0) }) // which no process can get
	slices.Sort(all)
	return all, nil
}

// flatten adds the variables of a value.
func flatten(name string, value any, all *[]string) {
	switch value := value.(type) {
	case map[string]any:
		for key, each := range value {
			if !strings.Contains(key, "=") {
				flatten(strings.ToUpper(name+"_"+key), each, all)
			}
		}
	case []any:
		for i, each := range value {
			flatten(name+"_"+strconv.Itoa(i), each, all)
		}
	default:
		*all = append(*all, name+"="+text(value))
	}
}

// text returns a value that has no parts.
func text(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case bool:
		if value {
			return "1"
		}
		return "0"
	case int64:
		return strconv.FormatInt(value, 10)
	case float64:
		return strconv.FormatFloat(value, 'g', -1, 64)
	default: // null
		return ""
	}
}

// Status returns the status that a program has written as YAML. It is empty if the program has written nothing.
func Status(output []byte) (map[string]any, error) {
	data, err := yaml.YAMLToJSON(output)
	if err != nil {
		return nil, fmt.Errorf("the output is no YAML: %w. Write to standard error what is no status", err)
	}
	if data = bytes.TrimSpace(data); len(data) == 0 || bytes.Equal(data, []byte("null")) {
		return nil, nil
	}
	if data[0] != '{' {
		return nil, errors.New("the output is no mapping: the status has fields")
	}
	var status map[string]any
	if err := utiljson.Unmarshal(data, &status); err != nil {
		return nil, fmt.Errorf("the output cannot be decoded: %w", err)
	}
	return status, nil
}

// Changes reports whether the status changes the one of an object in JSON. It is merged into that, as Side8's operator does.
func Changes(object []byte, status map[string]any) (bool, error) {
	if len(status) == 0 {
		return false, nil
	}
	var current struct {
		Status json.RawMessage `json:"status"`
	}
	if err := json.Unmarshal(object, &current); err != nil {
		return false, fmt.Errorf("the object cannot be decoded: %w", err)
	}
	var before any
	if len(current.Status) > 0 {
		if err := utiljson.Unmarshal(current.Status, &before); err != nil {
			return false, fmt.Errorf("the status cannot be decoded: %w", err)
		}
	}
	return changes(before, status), nil
}

// changes reports whether a merge patch changes a value.
func changes(before, patch any) bool {
	fields, isMapping := patch.(map[string]any)
	if !isMapping {
		return !modelobject.Equal(before, patch)
	}
	present, wasMapping := before.(map[string]any)
	if !wasMapping {
		return true
	}
	for key, value := range fields {
		if old, exists := present[key]; value == nil && exists || value != nil && changes(old, value) {
			return true
		}
	}
	return false
}
