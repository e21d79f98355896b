package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kopf-go/kopf/hack/mutate/active"
)

// faultsTimeout limits the tests on a real API server.
const faultsTimeout = 20 * time.Minute

// stormSeeds is the number of storms that a mutant must pass: five times as many as in make test,
// since the storms for hours are those that are meant to find what nobody has thought of.
const stormSeeds = "100"

// binary is the instrumented test program of a stage.
type binary struct {
	stage stage
	path  string
	dir   string // where its tests run
	// reach contains the tests that come by a mutant. It is nil if that is unknown: then all
	// tests of the stage run.
	reach map[int][]string
	cost  map[string]time.Duration
}

// Tests up to quickTest run first, and those above slowTest last: a few tests, such as those
// that measure memory, take longer than all others of their package, and hardly ever kill a
// mutant alone. It is the time of processors, with the start of the test program, so that it
// does not depend on what else the machine does.
const (
	quickTest = 200 * time.Millisecond
	slowTest  = 600 * time.Millisecond
)

// build builds the test program of a stage in dir.
func build(ctx context.Context, root, dir, overlay string, s stage) (*binary, error) {
	b := &binary{stage: s, path: filepath.Join(dir, strings.ReplaceAll(s.pkg, "/", "_")+".test"), dir: filepath.Join(root, s.pkg)}
	if _, err := os.Stat(b.path); err == nil {
		return b, nil // of another stage
	}
	command := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", b.path, "./"+s.pkg)
	command.Dir = root
	if output, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("the mutants of %s do not compile: %w\n%s", s.pkg, err, output)
	}
	return b, nil
}

// measureReach runs each test without a mutant, and records which mutants it comes by.
func (b *binary) measureReach(ctx context.Context, timeout time.Duration) error {
	b.reach, b.cost = map[int][]string{}, map[string]time.Duration{}
	if _, err := os.Stat(b.path); os.IsNotExist(err) {
		return nil // the package has no tests
	}
	tests, err := b.list(ctx)
	if err != nil {
		return err
	}
	for _, test := range tests {
		reached, err := b.reachedBy(ctx, test, timeout)
		if err != nil {
			return err
		}
		for _, n := range reached {
			b.reach[n] = append(b.reach[n], test)
		}
	}
	return nil
}

// list returns the names of the tests of the stage.
func (b *binary) list(ctx context.Context) ([]string, error) {
	command := exec.CommandContext(ctx, b.path, "-test.list", ".")
	command.Dir = b.dir
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("the tests of %s cannot be listed: %w", b.stage.pkg, err)
	}
	wanted, err := regexp.Compile(b.stage.tests)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(strings.Fields(string(output)), func(name string) bool {
		return !wanted.MatchString(name) || name == b.stage.except || strings.HasPrefix(name, "Benchmark")
	}), nil
}

// reachedBy returns the mutants that a test comes by.
func (b *binary) reachedBy(ctx context.Context, test string, timeout time.Duration) ([]int, error) {
	file := b.path + ".reached"
	defer func() { _ = os.Remove(file) }()
	cost, output, err := b.run(ctx, []string{test}, timeout, active.ReachedVariable+"="+file)
	if b.cost[test] = cost; err != nil {
		return nil, fmt.Errorf("%s of %s fails without a mutant: %w\n%s", test, b.stage.pkg, err, output)
	}
	text, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return nil, nil
	}
	var reached []int
	for _, field := range strings.Fields(string(text)) {
		n, err := strconv.Atoi(field)
		if err != nil {
			return nil, err
		}
		reached = append(reached, n)
	}
	return reached, err
}

// run runs tests until one fails, and returns the time of processors.
func (b *binary) run(ctx context.Context, tests []string, timeout time.Duration, environment ...string) (cost time.Duration, output string, err error) {
	// The tests end themselves after the timeout; a test that cannot is ended a moment later.
	ctx, cancel := context.WithTimeout(ctx, timeout+5*time.Second)
	defer cancel()
	arguments := []string{"-test.timeout", timeout.String(), "-test.run", "^(" + strings.Join(tests, "|") + ")$"}
	if b.stage.kind != kit { // its own tests run tests that fail, after which no others would run
		arguments = append(arguments, "-test.failfast")
	}
	if b.stage.kind == storm {
		arguments = append(arguments, "-seeds", stormSeeds)
	}
	command := exec.CommandContext(ctx, b.path, arguments...)
	command.Dir = b.dir
	command.Env = append(os.Environ(), environment...)
	text, err := command.CombinedOutput()
	if state := command.ProcessState; state != nil {
		cost = state.UserTime() + state.SystemTime()
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return cost, string(text), err
}

// try runs the tests of the stage with a mutant, the slow ones last.
func (b *binary) try(ctx context.Context, m *mutant, o options) (r result, output string) {
	if b.reach == nil {
		return b.tryWith(ctx, m, []string{b.stage.tests}, max(o.timeout, faultsTimeout))
	}
	quick, others := partition(b.reach[m.number], func(test string) bool { return b.cost[test] <= quickTest })
	slow, others := partition(others, func(test string) bool { return b.cost[test] > slowTest })
	if o.quick {
		slow = nil
	}
	for _, tests := range [][]string{quick, others, slow} {
		if len(tests) > 0 && r.Killer == "" {
			r, output = b.tryWith(ctx, m, tests, o.timeout)
		}
	}
	return r, output
}

// partition returns the tests that meet a condition, and the others.
func partition(tests []string, condition func(test string) bool) (yes, no []string) {
	for _, test := range tests {
		if condition(test) {
			yes = append(yes, test)
		} else {
			no = append(no, test)
		}
	}
	return yes, no
}

// tryWith runs some tests with a mutant.
func (b *binary) tryWith(ctx context.Context, m *mutant, tests []string, timeout time.Duration) (result, string) {
	_, output, err := b.run(ctx, tests, timeout, fmt.Sprintf("%s=%d", active.Variable, m.number))
	if err == nil {
		return result{Reached: true}, output
	}
	return resultOf(output), output
}
