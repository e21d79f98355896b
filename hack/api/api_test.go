package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kopf-go/kopf/hack/source"
)

// checkout is a module with a promised package, and one that it uses.
var checkout = map[string]string{
	"go.mod": "module example.com/m\n\ngo 1.26\n",
	"pkg/kopf/kopf.go": `package kopf

import (
	"time"

	"example.com/m/pkg/internal/hidden"
	"example.com/m/pkg/model/object"
)

const B, A = 2, time.Second

var Variable map[string]int

type Hidden = hidden.Type

type Object = object.Object

// Struct has a comment that is not recorded.
type Struct[T any] struct {
	promoted
	*object.Object
	Field    T ` + "`json:\"field\"`" + `
	internal int
}

func (*Struct[T]) Pointer(name string, rest ...T) (err error) { return nil }
func (Struct[T]) Value()                                     {}
func (Struct[T]) internalMethod()                            {}

type promoted struct{ Inner int }

func (promoted) Promoted() {}

type Interface interface {
	Exported()
	internal()
}

func Function[T any](one T, stop <-chan time.Time) {}

func internal() {}
`,
	"pkg/internal/hidden/hidden.go": "package hidden\n\ntype Type struct{ Field int }\n\nfunc (Type) Method() {}\n",
	"pkg/model/object/object.go":    "package object\n\ntype Object struct{}\n\nfunc (*Object) Name() string { return \"\" }\n",
}

const described = `package kopf // import "example.com/m/pkg/kopf"

import "example.com/m/pkg/internal/hidden"
import "example.com/m/pkg/model/object"
import "time"

const A time.Duration = 1000000000
const B = 2

var Variable map[string]int

func Function[T any](one T, stop <-chan time.Time)

type Hidden = hidden.Type
// which is struct {
	Field int
}
func (Type) Method()

type Interface interface {
	Exported()
	// and unexported methods
}

type Object = object.Object

type Struct[T any] struct {
	Inner int
	*object.Object
	Field T json:"field"
	// and unexported fields
}
func (*Struct[T]) Pointer(name string, rest ...T) (err error)
func (Struct[T]) Promoted()
func (Struct[T]) Value()
`

func TestDescribe(t *testing.T) {
	dir := t.TempDir()
	for name, content := range checkout {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := source.Load(t.Context(), dir, "./...")
	if err != nil {
		t.Fatal(err)
	}
	var promised []string
	for _, pkg := range tree.Promised() {
		promised = append(promised, fileOf(pkg))
	}
	if got := strings.Join(promised, " "); got != "model.object.txt kopf.txt" {
		t.Errorf("the promised packages are %s", got)
	}
	if got := describe(tree.Package("pkg/kopf")); got != described {
		t.Errorf("got:\n%s", got)
	}
}

func TestRecordIsComparedAndStored(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "api")
	if err := store(folder, map[string]string{"gone.txt": "func Gone()\n", "kept.txt": "func Old()\nfunc Same()\n"}); err != nil {
		t.Fatal(err)
	}
	changed := map[string]string{"kept.txt": "func New()\nfunc Same()\n"}
	var out strings.Builder
	err := compare(&out, folder, changed)
	if want := "api/gone.txt:\n- func Gone()\napi/kept.txt:\n- func Old()\n+ func New()\n"; err == nil || out.String() != want {
		t.Errorf("got %v and\n%s", err, out.String())
	}
	if err := store(folder, changed); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if err := compare(&out, folder, changed); err != nil || out.String() != "" {
		t.Errorf("after it was stored: %v and\n%s", err, out.String())
	}
}
