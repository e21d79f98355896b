package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// checkout is a module with one of everything that is counted.
var checkout = map[string]string{
	"go.mod":     "module example.com/m\n\ngo 1.26\n",
	layersFile:   "package arch\n\nvar layers = []layer{{folders: []string{\"pkg/top/...\"}}, {folders: []string{\"pkg/low\", \"pkg/side\"}}}\n",
	"cmd/m/m.go": "package main\n\nimport _ \"example.com/m/pkg/top\"\n\nfunc main() {}\n",
	"pkg/top/top.go": `package top

import (
	"io"

	"example.com/m/pkg/low"
)

// Reader reads.
type Reader struct{ low.Counter }

func (r *Reader) Read([]byte) (int, error) { return 0, io.EOF }
func (r *Reader) fill()                    { take() }
func (r *Reader) Undocumented()            {}
`,
	"pkg/top/more.go": `package top

func (r *Reader) drain() {
	r.fill()
}

type bucket struct{}

func (bucket) fill() {}

func take() {}
`,
	"pkg/top/top_test.go":                "package top\n",
	"pkg/top/testdata/x/x.go":            "package x\n",
	"pkg/top/inner/inner.go":             "package inner\n\nimport _ \"example.com/m/pkg/top\"\n",
	"pkg/low/low.go":                     "// Package low is low.\npackage low\n\n// Counter counts.\ntype Counter struct{}\n\n// Count counts.\nfunc (Counter) Count() {}\n\nfunc take() {}\n",
	"pkg/side/side.go":                   sideways,
	"pkg/settings/settings.go":           "package settings\n\ntype a struct{}\n\nfunc (a) fill() {}\n\ntype b struct{}\n\nfunc (b) fill() {}\n",
	"pkg/reconcile/pass.go":              "package reconcile\n\ntype pass struct{ q queue }\n\nfunc (p pass) run() { p.q.get() }\n",
	"pkg/reconcile/queue.go":             "package reconcile\n\nimport _ \"example.com/m/pkg/reconcile/internal/record\"\n\ntype queue struct{}\n\nfunc (queue) get() {\n\tvar p pass\n\tp.run()\n}\n",
	"pkg/reconcile/execute.go":           "package reconcile\n\nimport \"example.com/m/pkg/reconcile/internal/record\"\n\nfunc execute(p pass) { record.Store() }\n",
	"pkg/reconcile/novelty.go":           "package reconcile\n\nfunc novelty(q queue) {}\n",
	"pkg/reconcile/internal/record/r.go": "package record\n\n// Store stores.\nfunc Store() {}\n",
}

// sideways is a package next to low, with two implementations of one interface.
const sideways = `package side

import _ "example.com/m/pkg/low"

type option interface{ apply() }

type first struct{}

func (first) apply() {}

type second struct{}

func (second) apply() {}

func use(option) {}
`

func measureCheckout(t *testing.T) *house {
	t.Helper()
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
	found, err := measure(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestMeasure(t *testing.T) {
	found := measureCheckout(t)
	for name, test := range map[string]struct{ got, want any }{
		"production":      {found.sizes.production.String(), "94, 12, 8"},
		"tests":           {found.sizes.tests.String(), "5, 3, 3"},
		"largest package": {found.sizes.packages[0], counted{"pkg/reconcile", 4}},
		"largest receiver, without the method of io.Reader": {
			found.receivers[0], receiver{name: "pkg/top.Reader", methods: 3, files: 2, required: 1, promoted: 1},
		},
		"names within a package":     {texts(found.names.ambiguous), []string{"pkg/top.fill 2"}},
		"their share":                {found.names.within, share{2, 12}},
		"names in all packages":      {found.names.overall, share{5, 12}},
		"every declaration":          {found.names.declared, share{6, 14}},
		"imports against the layers": {found.layers, []string{"pkg/side → pkg/low"}},
		"folders":                    {found.folders.String(), "0 of 2"},
		"files without a room":       {found.homeless, []string{"novelty.go"}},
		"rooms of the engine":        {found.engine.String(), "1 of 4"},
		"documented":                 {found.documents, share{4, 6}},
		"undocumented":               {found.undocumented, []string{"pkg/top.Read", "pkg/top.Undocumented"}},
		"functions":                  {fmt.Sprint(found.functions.median, found.functions.maximum), "1 4"},
	} {
		if !reflect.DeepEqual(test.got, test.want) {
			t.Errorf("%s: got %v, want %v", name, test.got, test.want)
		}
	}
}

func TestDraw(t *testing.T) {
	found := draw(map[arrow]int{
		{"roof", "middle"}: 3, {"middle", "ground"}: 2, {"ground", "roof"}: 1, {"middle", "middle"}: 4,
	})
	if order := strings.Join(found.order, " "); order != "roof middle ground" {
		t.Errorf("the order is %s", order)
	}
	if want := []string{"ground → roof 1"}; found.back != 1 || found.arrows != 10 || !reflect.DeepEqual(texts(found.upward), want) {
		t.Errorf("got %+v", found)
	}
}

func TestTableShowsTheHousesSideBySide(t *testing.T) {
	var out strings.Builder
	err := write(&out, []column{
		{title: "Before", rows: []row{{"Files", "2"}, {"Lines", "20"}}},
		{title: "After", rows: []row{{"Files", "1"}, {"Lines", "10"}}},
	})
	want := "| | Before | After |\n|---|---|---|\n| Files | 2 | 1 |\n| Lines | 20 | 10 |\n"
	if err != nil || out.String() != want {
		t.Errorf("got %v and\n%s", err, out.String())
	}
}
