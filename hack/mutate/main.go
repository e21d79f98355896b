// Command mutate breaks the write protocol in every small way, and expects that a test fails
// each time. It generates mutants of the sources: every condition becomes true, false, and its
// opposite; comparisons include or exclude equality; guard clauses, cases, and statements that
// set or call something are removed; returned errors and truth values are turned. A mutant that
// no test kills is a behavior that no test names, or code that is not needed.
//
//	go run ./hack/mutate                    # the writer, the records, the detection of causes
//	go run ./hack/mutate pkg/storage        # other files or folders
//	go run ./hack/mutate -unit -quick FILE  # a first look, while tests are being written
//	go run ./hack/mutate -at FILE:LINE[:COLUMN] # the mutants at one place, with the output of tests
//	go run ./hack/mutate -thorough          # survivors also meet faults on a real API server
//	go run ./hack/mutate -storm -n 20       # what random faults alone find in a sample
//
// It prints a table of the files with the kinds of tests that kill their mutants, and the
// survivors, and fails if there are any. equivalent.txt lists mutants that change nothing; without
// -thorough, the tests of whole operators do not try them.
// Lines of the log can be removed without a test that notices, so they are not mutated. Cases
// of type switches are not, either.
//
// All mutants of a package are built at once, as an overlay of its sources: the environment
// of a test process selects one, and tests that do not come by a mutant need not run with it.
// So a mutant takes milliseconds, and thousands of them minutes. Results are kept, also those
// of a run that is interrupted. The existing tools
// (gremlins, go-mutesting, ooze) build once per mutant, from a copy of the module, have no
// list of equivalent mutants, and neither make conditions constant nor remove statements.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/kopf-go/kopf/hack/source"
)

// options are the flags.
type options struct {
	at       string
	list     bool
	unit     bool
	quick    bool
	thorough bool
	storm    bool
	anew     bool
	sample   int
	seed     uint64
	parallel int
	timeout  time.Duration
	results  string // the file of the stored results
	files    []string
}

// again reports whether stored results do not count.
func (o options) again() bool { return o.anew || o.at != "" }

func main() {
	var o options
	flag.StringVar(&o.at, "at", "", "try only the mutants at FILE:LINE or FILE:LINE:COLUMN, again, and print the output of the tests")
	flag.BoolVar(&o.list, "list", false, "print the mutants, and try none")
	flag.BoolVar(&o.unit, "unit", false, "run only the tests of the mutated packages")
	flag.BoolVar(&o.quick, "quick", false, "leave out tests that take long; survivors are tried again without this flag")
	flag.BoolVar(&o.thorough, "thorough", false, "try the survivors with the tests of faults, which need KUBEBUILDER_ASSETS")
	flag.BoolVar(&o.storm, "storm", false, "try a sample of the mutants with random faults alone, which need KUBEBUILDER_ASSETS")
	flag.BoolVar(&o.anew, "anew", false, "try all mutants again, also those with a stored result")
	flag.IntVar(&o.sample, "n", 20, "the size of the sample for -storm")
	flag.Uint64Var(&o.seed, "seed", 1, "chooses the sample for -storm")
	flag.IntVar(&o.parallel, "p", runtime.NumCPU(), "try as many mutants at the same time")
	flag.DurationVar(&o.timeout, "timeout", time.Minute, "a mutant whose tests take longer counts as killed")
	flag.StringVar(&o.results, "results", defaultResults(), "the file that keeps the results of earlier runs")
	flag.Parse()
	o.files = flag.Args()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, ".", o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run tries the mutants of the checkout in dir.
func run(ctx context.Context, out io.Writer, dir string, o options) error {
	tree, err := source.Load(ctx, dir, "./pkg/...")
	if err != nil {
		return err
	}
	files, err := findMutants(tree, o.isWanted)
	if err != nil {
		return err
	}
	mutants := o.chosen(files)
	if len(mutants) == 0 {
		return errors.New("there are no mutants there")
	}
	if o.list {
		for _, m := range mutants {
			_, _ = fmt.Fprintln(out, m)
		}
		return nil
	}
	return o.try(ctx, out, tree, files, mutants)
}

// try runs the tests with the mutants, and reports the results.
func (o options) try(ctx context.Context, out io.Writer, tree *source.Tree, files []*sourceFile, mutants []*mutant) error {
	reasons, err := parseEquivalents(equivalentText)
	if err != nil {
		return err
	}
	results, err := openStore(o.results)
	if err != nil {
		return err
	}
	c, err := newCampaign(tree, files, results, o, out)
	if err != nil {
		return err
	}
	err = errors.Join(c.runAll(ctx, mutants, reasons), c.close())
	if err != nil {
		return err
	}
	if wrong := report(out, files, c.found, reasons); wrong > 0 {
		return fmt.Errorf("%d mutants survive, or are not equivalent", wrong)
	}
	return nil
}

// isWanted reports whether a file is mutated.
func (o options) isWanted(file string) bool {
	wanted := o.files
	if o.at != "" {
		name, _, _ := strings.Cut(o.at, ":")
		wanted = []string{name}
	}
	if len(wanted) == 0 {
		wanted = protocol
	}
	return isBelow(wanted, file)
}

// chosen returns the mutants to try.
func (o options) chosen(files []*sourceFile) []*mutant {
	all := mutantsOf(files)
	if o.at == "" {
		return all
	}
	var chosen []*mutant
	for _, m := range all {
		if strings.HasPrefix(fmt.Sprintf("%s:%d:%d:", m.file, m.line, m.column), strings.TrimSuffix(o.at, ":")+":") {
			chosen = append(chosen, m)
		}
	}
	return chosen
}
