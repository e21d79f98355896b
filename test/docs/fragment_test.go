package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
)

// fragment is a listing of Go in parts that the compiler accepts.
type fragment struct {
	block
	// declarations and statements have as many lines as the listing; the lines of the
	// other part are empty.
	declarations, statements string
	// complete reports that the listing has a package clause and imports, and so
	// everything that it needs.
	complete bool
}

var (
	packageClause = regexp.MustCompile(`(?m)^package \w+$`)
	// omission matches a line that stands for code that is left out.
	omission = regexp.MustCompile(`(?m)^\s*…$`)
)

// parse divides a listing into its parts. It returns the error of the whole listing if
// there is no way to divide it.
func parse(one block) (fragment, error) {
	text := omission.ReplaceAllString(one.text, "")
	if clause := packageClause.FindString(text); clause != "" {
		text = strings.Replace(text, clause, "", 1)
		file, err := syntax(text, "")
		return fragment{block: one, declarations: text, complete: err == nil && len(file.Imports) > 0}, err
	}
	found := fragment{block: one}
	for rest := text; rest != ""; {
		part := leading(rest)
		rest = rest[len(part):]
		empty := strings.Repeat("\n", strings.Count(part, "\n"))
		if _, err := syntax(part, ""); err == nil {
			found.declarations, found.statements = found.declarations+part, found.statements+empty
			continue
		}
		if _, err := syntax("", part); err != nil {
			return found, err
		}
		found.declarations, found.statements = found.declarations+empty, found.statements+part
	}
	return found, nil
}

// leading returns the longest beginning of the text, up to an empty line, that is all
// declarations or all statements. It returns the whole text if there is none.
func leading(text string) string {
	for end := len(text); end > 0; end = strings.LastIndex(text[:end-1], "\n\n") + 1 {
		_, asDeclarations := syntax(text[:end], "")
		_, asStatements := syntax("", text[:end])
		if asDeclarations == nil || asStatements == nil {
			return text[:end]
		}
	}
	return text
}

// syntax parses declarations and statements.
func syntax(declarations, statements string) (*ast.File, error) {
	return parser.ParseFile(token.NewFileSet(), "", render(nil, "", 1, declarations, statements), parser.SkipObjectResolution)
}

// render returns a file whose positions are those of the page.
func render(imports map[string]string, page string, line int, declarations, statements string) string {
	var file strings.Builder
	file.WriteString("package listing\n")
	for name, path := range imports {
		fmt.Fprintf(&file, "import %s %q\n", name, path)
	}
	fmt.Fprintf(&file, "//line %s:%d\n%s\n", page, line, declarations)
	if strings.TrimSpace(statements) != "" {
		fmt.Fprintf(&file, "//line generated:1\nfunc _(ctx context.Context) error {\n//line %s:%d\n%s\nreturn nil\n}\n", page, line, statements)
	}
	return file.String()
}
