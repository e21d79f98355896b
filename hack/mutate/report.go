package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// kinds are the columns of the table.
var kinds = []kind{unit, engine, model, kit, virtual, sweep, storm}

// tally counts the mutants of a file.
type tally struct {
	mutants, equivalent, survivors, timeouts int
	killed                                   map[kind]int
}

// report prints a table of the files, and what is wrong: survivors, and mutants that count as
// equivalent although a test kills them. It returns their number.
func report(out io.Writer, files []*sourceFile, found map[*mutant]*finding, reasons map[identity]string) (wrong int) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprint(table, "File\tMutants")
	for _, k := range kinds {
		_, _ = fmt.Fprintf(table, "\t%s", k)
	}
	_, _ = fmt.Fprintln(table, "\tEquivalent\tSurvivors")
	for _, f := range files {
		t := tally{killed: map[kind]int{}}
		for _, m := range f.mutants {
			if one := found[m]; one != nil {
				t.add(one, reasons[m.id] != "")
				wrong += explain(out, m, one, reasons[m.id])
			}
		}
		if t.mutants > 0 {
			t.write(table, f.name)
		}
	}
	_, _ = fmt.Fprintln(out)
	_ = table.Flush()
	return wrong
}

func (t *tally) add(f *finding, equivalent bool) {
	t.mutants++
	switch {
	case f.Killer != "":
		t.killed[f.by.kind]++
		if f.TimedOut {
			t.timeouts++
		}
	case equivalent:
		t.equivalent++
	default:
		t.survivors++
	}
}

func (t *tally) write(out io.Writer, name string) {
	_, _ = fmt.Fprintf(out, "%s\t%d", name, t.mutants)
	for _, k := range kinds {
		_, _ = fmt.Fprintf(out, "\t%d", t.killed[k])
	}
	_, _ = fmt.Fprintf(out, "\t%d\t%d", t.equivalent, t.survivors)
	if t.timeouts > 0 {
		_, _ = fmt.Fprintf(out, "\t(%d killed by a timeout)", t.timeouts)
	}
	_, _ = fmt.Fprintln(out)
}

// explain prints a mutant if something is wrong with it. It returns 1 if so.
func explain(out io.Writer, m *mutant, f *finding, reason string) int {
	switch {
	case f.Killer != "" && reason != "":
		_, _ = fmt.Fprintf(out, "\nNOT EQUIVALENT %s\n\t%s of %s fails, but the list of equivalent mutants has it\n", m, f.Killer, f.by.pkg)
	case f.Killer == "" && reason == "":
		tested := "all tests that run this code pass"
		if !f.Reached {
			tested = "no test runs this code"
		}
		_, _ = fmt.Fprintf(out, "\nSURVIVES %s\n\t%s\n\t%s; to repeat: go run ./hack/mutate -at %s:%d:%d\n", m, m.id.source, tested, m.file, m.line, m.column)
	default:
		return 0
	}
	return 1
}
