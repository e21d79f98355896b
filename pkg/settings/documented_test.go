package settings_test

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/kopf-go/kopf/pkg/settings"
)

// A new setting, or a changed default, must be in the documentation.
func TestEverySettingIsDocumentedWithItsDefault(t *testing.T) {
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	of := reflect.ValueOf(settings.Default())
	for field, value := range of.Fields() {
		rows := []string{row(field.Name, value)}
		if value.Kind() == reflect.Struct {
			rows = rowsOf(field.Name, value)
		}
		for _, row := range rows {
			if !strings.Contains(string(text), row) {
				t.Errorf("docs/configuration.md has no row %q", row)
			}
		}
	}
}

func rowsOf(group string, of reflect.Value) []string {
	var rows []string
	for field, value := range of.Fields() {
		rows = append(rows, row(group+"."+field.Name, value))
	}
	return rows
}

func row(name string, value reflect.Value) string {
	return fmt.Sprintf("\n| %#q | %s |", name, documented(value))
}

// documented returns a default as it is in the documentation.
func documented(value reflect.Value) string {
	switch v := value.Interface().(type) {
	case []time.Duration:
		return "`" + strings.Trim(strings.ReplaceAll(fmt.Sprint(v), " ", ", "), "[]") + "`"
	case fmt.Stringer:
		return "`" + v.String() + "`"
	case bool, int, float32:
		return fmt.Sprintf("`%v`", v)
	}
	switch {
	case value.Kind() == reflect.Func:
		return "`lifecycles.AllAtOnce`" // the only one; another test holds it
	case value.Kind() == reflect.Interface:
		return fmt.Sprintf("`%T`", value.Interface())
	case value.IsZero():
		return "none"
	}
	return fmt.Sprintf("`%v`", value)
}
