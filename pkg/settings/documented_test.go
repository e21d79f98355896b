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

// Whoever adds a setting, or changes a default, has to say so in the documentation.
func TestEverySettingIsDocumentedWithItsDefault(t *testing.T) {
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	of := reflect.ValueOf(settings.Default())
	for i := range of.NumField() {
		group := of.Type().Field(i).Name
		for j := range of.Field(i).NumField() {
			row := fmt.Sprintf("\n| `%s.%s` | %s |", group, of.Field(i).Type().Field(j).Name, documented(of.Field(i).Field(j)))
			if !strings.Contains(string(text), row) {
				t.Errorf("docs/configuration.md has no row %q", row)
			}
		}
	}
}

// documented is a default as people read it.
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
		return "`handler.AllAtOnce`" // the only one; another test holds it
	case value.Kind() == reflect.Interface:
		return fmt.Sprintf("`%T`", value.Interface())
	case value.IsZero():
		return "none"
	}
	return fmt.Sprintf("`%v`", value)
}
