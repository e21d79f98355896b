package arch

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kopf-go/kopf/hack/source"
)

// leaking is a module whose promised package mentions types without a name for users
// in every way that there is.
var leaking = map[string]string{
	"go.mod":                        "module example.com/m\n\ngo 1.26\n",
	"pkg/operator/operator.go":      "package operator\n\ntype Aliased struct{ State State }\n\ntype State int\n\ntype Hidden struct{}\n\nfunc (Aliased) Wait() Hidden { return Hidden{} }\n",
	"pkg/model/object/object.go":    "package object\n\ntype Body struct{}\n",
	"pkg/internal/limits/limits.go": "package limits\n\ntype Number interface{ ~int }\n",
	"pkg/kopf/kopf.go": `package kopf

import (
	"time"

	"example.com/m/pkg/internal/limits"
	"example.com/m/pkg/model/object"
	"example.com/m/pkg/operator"
)

type (
	Aliased = operator.Aliased
	Embeds  struct{ base }
	Doer    interface{ Do(own) }
	Table   map[string]own
)

type base struct{ Field chan<- own }

func (base) Promoted() *own { return nil }

func (Embeds) hidden(own) {}

type own struct{}

func Fine(*object.Body, Aliased, time.Time, error, Doer) {}

func Constrained[T limits.Number]() {}

func Nested(func([]own)) {}

var Variable []operator.Hidden

func internal(own) {}
`,
}

func TestUnnameable(t *testing.T) {
	dir := t.TempDir()
	for name, content := range leaking {
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
	const rest = ", which users cannot name: export it, or alias it, in a promised package"
	want := []string{
		"pkg/kopf.Aliased.State mentions pkg/operator.State" + rest,
		"pkg/kopf.Aliased.Wait mentions pkg/operator.Hidden" + rest,
		"pkg/kopf.Constrained mentions pkg/internal/limits.Number" + rest,
		"pkg/kopf.Doer mentions pkg/kopf.own" + rest,
		"pkg/kopf.Embeds.Field mentions pkg/kopf.own" + rest,
		"pkg/kopf.Embeds.Promoted mentions pkg/kopf.own" + rest,
		"pkg/kopf.Nested mentions pkg/kopf.own" + rest,
		"pkg/kopf.Table mentions pkg/kopf.own" + rest,
		"pkg/kopf.Variable mentions pkg/operator.Hidden" + rest,
	}
	if got := unnameable(tree); !slices.Equal(got, want) {
		for _, one := range got {
			t.Log(one)
		}
		t.Errorf("want %q", want)
	}
}
