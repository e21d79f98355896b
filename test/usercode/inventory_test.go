package usercode

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// covered names the sites for everything that takes code of users. Methods of Registry and Typed are as the functions
// of their name. A reason in place of sites begins with "no:".
var covered = map[string][]string{
	"kopf.OnCreate":          {"create", "filter of a creation handler", "result", "error", "memo", "value of a patch"},
	"kopf.OnUpdate":          {"update", "filter of an update handler", "decoding"},
	"kopf.OnField":           {"field", "value before", "value after"},
	"kopf.OnDelete":          {"delete", "filter of a deletion handler"},
	"kopf.OnResume":          {"resume", "filter of a resume handler"},
	"kopf.OnEvent":           {"event", "filter of an event handler", "result of an event handler", "error of an event handler", "decoding for an event handler", "filter of an event handler while recording"},
	"kopf.Daemon":            {"daemon", "filter of a daemon"},
	"kopf.Timer":             {"timer", "filter of a timer", "result of a timer", "error of a timer", "decoding for a timer"},
	"kopf.NewIndex":          {"index", "filter of an index"},
	"kopf.NewIndexOf":        {"index"},
	"kopf.FillIndex":         {"index"},
	"kopf.FillIndexOf":       {"index"},
	"kopf.Ensure":            {"ensure", "filter of children"},
	"kopf.OnChild":           {"child", "filter of a child handler"},
	"kopf.OnChildOf":         {"child"},
	"kopf.OnDrift":           {"drift", "filter of a drift handler"},
	"kopf.OnValidate":        {"validate", "filter of a review", "error of a review", "decoding for a review"},
	"kopf.OnMutate":          {"mutate", "transformation of a review"},
	"kopf.OnConvert":         {"conversion", "error of a conversion"},
	"kopf.OnConvertOf":       {"conversion"},
	"kopf.OnStartup":         {"startup"},
	"kopf.OnCleanup":         {"cleanup"},
	"kopf.OnLogin":           {"login"},
	"kopf.OnProbe":           {"no: a request of the kubelet calls it; pkg/health has tests for panics and for probes that do not return"},
	"kopf.When":              {"filter of an update handler", "filter of a sub-handler", "filter of a sub-handler that is executed"},
	"kopf.WhenObject":        {"filter of a Go type"},
	"kopf.MatchFunc":         {"label", "annotation", "value", "value before", "value after"},
	"kopf.InitialDelayFunc":  {"initial delay"},
	"kopf.IntervalFunc":      {"interval"},
	"kopf.ScheduleFunc":      {"schedule"},
	"memo.New":               {"memo", "memo in a filter"},
	"selector.Func":          {"selector"},
	"kopf.Update":            {"transformation of a Go type"},
	"kopf.Arguments":         {"no: users call its methods; only their tests implement it"},
	"memo.Holder.Memo":       {"no: users call it, and pass the arguments of a handler"},
	"kopf.Change.Subhandler": {"sub-handler", "sub-handler that is executed", "filter of a sub-handler", "filter of a sub-handler that is executed"},
	"kopf.Commands":          {"no: it is called once, in the goroutine of the program, before anything runs"},
	"kopf.Configure":         {"no: as Commands"},
	"kopf.Main":              {"no: as Commands"},
	"kopf.LogOnly":           {"no: users call it"},
	"kopf.Options.Connect":   {"connect"},
	"kopf.Options.Tracer":    {"tracer", "end of a span"},
	"tracing.Tracer.Start":   {"tracer", "end of a span"},
	"kopf.Options.Logger":    {"no: the log is where misbehavior is reported; one that blocks stops everything that logs, as in any program"},

	"settings.Execution.Lifecycle":                 {"lifecycle"},
	"settings.Admission.Server":                    {"admission server"},
	"settings.AdmissionServer.Serve":               {"admission server"},
	"settings.AdmissionEndpoint.Publish":           {"no: a function of this library for servers"},
	"settings.AdmissionEndpoint.ReportCertificate": {"no: as Publish"},
	"settings.AdmissionEndpoint.IsLeader":          {"no: as Publish"},

	"storage.DiffBase.Build":              {"DiffBase.Build"},
	"storage.DiffBase.Fetch":              {"DiffBase.Fetch"},
	"storage.DiffBase.Store":              {"DiffBase.Store"},
	"storage.CycleBase.FetchCycle":        {"CycleBase.FetchCycle"},
	"storage.CycleBase.StoreCycle":        {"CycleBase.StoreCycle"},
	"storage.CycleBase.PurgeCycle":        {"CycleBase.PurgeCycle"},
	"storage.Hasher.Hashes":               {"Hasher.Hashes"},
	"storage.Progress.Fetch":              {"Progress.Fetch"},
	"storage.Progress.Store":              {"Progress.Store"},
	"storage.Progress.Purge":              {"Progress.Purge"},
	"storage.Progress.Clear":              {"no: it is called where Build is called, and only there"},
	"storage.TouchPurger.PurgeTouch":      {"Progress.PurgeTouch"},
	"storage.RecordLister.UnknownRecords": {"RecordLister.UnknownRecords"},
	"storage.TraceRemover.RemoveTraces":   {"no: only commands call it, and a person can interrupt them"},
	"storage.Eraser.Erase":                {"Eraser.Erase"},
	"storage.Validator.Validate":          {"no: as Commands"},
	"storage.InStatus.StoresInStatus":     {"no: it says what the storage is, where Store is called"},
}

// Whoever lets users pass more code adds it to the sweep.
func TestAllCodeOfUsersIsCovered(t *testing.T) {
	expected := map[string]bool{}
	for name := range inventory(t) {
		expected[shortName(name)] = true
	}
	for name := range expected {
		if len(covered[name]) == 0 {
			t.Errorf("%s takes code of users: add a site that misbehaves, or the reason why there is none", name)
		}
	}
	for name, by := range covered {
		if !expected[name] {
			t.Errorf("%s does not take code of users anymore", name)
		}
		for _, one := range by {
			if !isSite(one) && !strings.HasPrefix(one, "no: ") {
				t.Errorf("%s: there is no site %q", name, one)
			}
		}
	}
}

func isSite(name string) bool {
	_, forObjects := sites[name]
	_, own := ownSites[name]
	return forObjects || own || reviewSites[name] != nil || conversionSites[name] != nil
}

// shortName returns the name without the type whose methods declare handlers, or change typed objects.
func shortName(name string) string {
	parts := strings.Split(name, ".")
	if len(parts) == 3 && parts[1] == "Arguments" {
		return parts[0] + "." + parts[1]
	}
	if len(parts) == 3 && (parts[1] == "Registry" || parts[1] == "Typed" || strings.HasSuffix(parts[1], "Of")) {
		return parts[0] + "." + parts[2]
	}
	return name
}

// inventory returns everything that takes code of users: parameters of the facade that are functions, and the methods
// of the interfaces that users implement.
func inventory(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, folder := range []string{"kopf", "settings", "storage", "model/memo", "model/selector", "tracing"} {
		files, err := filepath.Glob(filepath.Join("..", "..", "pkg", folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(folder, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, text, 0)
			if err != nil {
				t.Fatal(err)
			}
			folder := filepath.Base(folder)
			for _, declared := range parsed.Decls {
				switch declared := declared.(type) {
				case *ast.FuncDecl:
					addFunction(found, folder, declared)
				case *ast.GenDecl:
					addTypes(found, folder, declared)
				}
			}
		}
	}
	return found
}

// addFunction adds an exported function or method with a parameter that is a function.
func addFunction(found map[string]bool, folder string, f *ast.FuncDecl) {
	name := folder + "." + f.Name.Name
	if f.Recv != nil {
		receiver := typeName(f.Recv.List[0].Type)
		if !ast.IsExported(receiver) {
			return
		}
		name = folder + "." + receiver + "." + f.Name.Name
	}
	if !f.Name.IsExported() || f.Recv != nil && folder != "kopf" {
		return
	}
	for _, parameter := range f.Type.Params.List {
		if isCode(parameter.Type) {
			found[name] = true
		}
	}
}

// addTypes adds the methods of exported interfaces, and the fields of exported structures that are functions or
// interfaces of users.
func addTypes(found map[string]bool, folder string, d *ast.GenDecl) {
	for _, one := range d.Specs {
		declared, ok := one.(*ast.TypeSpec)
		if !ok || !declared.Name.IsExported() {
			continue
		}
		switch shape := declared.Type.(type) {
		case *ast.InterfaceType:
			for _, method := range shape.Methods.List {
				for _, name := range method.Names {
					found[folder+"."+declared.Name.Name+"."+name.Name] = true
				}
			}
		case *ast.StructType:
			for _, field := range shape.Fields.List {
				for _, name := range field.Names {
					if name.IsExported() && isCode(field.Type) {
						found[folder+"."+declared.Name.Name+"."+name.Name] = true
					}
				}
			}
		}
	}
}

// isCode reports whether a type is a function, by its form or by its name.
func isCode(of ast.Expr) bool {
	switch of := of.(type) {
	case *ast.FuncType:
		return true
	case *ast.Ellipsis:
		return isCode(of.Elt)
	default:
		name := typeName(of)
		return strings.HasSuffix(name, "Func") || name == "Lifecycle" || name == "Logger" || name == "Tracer" || name == "AdmissionServer"
	}
}

// typeName returns the name of a type without its package, its parameters, and its pointer.
func typeName(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return typeName(of.X)
	case *ast.IndexExpr:
		return typeName(of.X)
	case *ast.IndexListExpr:
		return typeName(of.X)
	case *ast.SelectorExpr:
		return of.Sel.Name
	case *ast.Ident:
		return of.Name
	default:
		return ""
	}
}
