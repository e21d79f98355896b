package docs

import (
	"strings"
	"testing"
)

func TestCompilerFindsMistakes(t *testing.T) {
	check := newCompiler(t)
	tests := map[string]struct{ page, want string }{
		"a whole file":                               {"```go\npackage main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(1) }\n```\n", ""},
		"a whole file with an unused import":         {"```go\npackage main\n\nimport \"fmt\"\n\nfunc main() {}\n```\n", `p.md:4: "fmt" imported and not used`},
		"a package without imports":                  {"```go\npackage a\n\nfunc init() { fmt.Println(1) }\n```\n", ""},
		"declarations":                               {"```go\nfunc f(c *kopf.Change) string { return c.Name() }\n```\n", ""},
		"declarations with a mistake":                {"```go\nfunc f(c *kopf.Change) int {\n\treturn c.Name()\n}\n```\n", "p.md:3: cannot use c.Name()"},
		"an unused variable of a function":           {"```go\nfunc f() {\n\tx := 1\n}\n```\n", "p.md:3: declared and not used: x"},
		"statements":                                 {"```go\nerr := kopf.Run(ctx, kopf.Options{Registry: kopf.DefaultRegistry})\n```\n", ""},
		"statements with a mistake":                  {"```go\nx := 1\n\nx = kopf.Nothing\n```\n", "p.md:4: undefined: kopf.Nothing"},
		"both":                                       {"```go\nx := f()\n\nfunc f() int { return 1 }\n\nx++\n```\n", ""},
		"both with a mistake":                        {"```go\nx := f()\n\nfunc f() int {\n\treturn y\n}\n```\n", "p.md:5: undefined: y"},
		"what an earlier listing declares":           {"```go\nfunc f() int { return 1 }\n```\n```go\nx := f()\n```\n", ""},
		"what it declares again":                     {"```go\nfunc f() int { return 1 }\n```\n```go\nfunc f() string { return \"\" }\n\nvar s string = f()\n```\n", ""},
		"what a comment declares":                    {"<!-- go\nimport \"net/url\"\n\nvar u *url.URL\n-->\n```go\nx := url.Values{}\ny := u.Host\n```\n", ""},
		"what is declared nowhere":                   {"```go\nx := f()\n```\n", "p.md:2: undefined: f"},
		"a mistake in a comment":                     {"<!-- go\nvar x int = \"\"\n-->\n", "p.md:2: cannot use"},
		"a line that is left out":                    {"```go\nx := 1\n…\nx++\n```\n", ""},
		"neither declarations nor statements":        {"```go\nx := [\n```\n", "p.md:2: this is neither declarations nor statements"},
		"a mistake after a replaced declaration":     {"```go\nfunc f() int { return 1 }\n\nfunc g() int { return f() }\n```\n```go\nfunc f() {}\n\nvar x string = g()\n```\n", "p.md:9: cannot use g()"},
		"a method of a type that is declared before": {"```go\ntype a struct{}\n\nfunc (*a) b() {}\n```\n```go\nnew(a).b()\n```\n", ""},
		"another language":                           {"```yaml\na: b\n```\n", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(check.page(blocksOf("p.md", test.page)), "\n")
			if (test.want == "") != (got == "") || !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
