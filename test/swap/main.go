// Command swap proves that operators can be swapped in the middle of their work: two builds of this
// library, as in a rolling update, a build and a running Kopf, or kopf serve and a running Kopf with the same
// handlers in Python.
//
//	go run ./test/swap -a serve -b kopf -kopf '…'            # handlers.py with kopf serve, and with Kopf
//	go run ./test/swap -a main -b .                          # the build of a git ref, and that of the work tree
//	go run ./test/swap -a . -b kopf -kopf 'kopf run --standalone -n {namespace} {file}'
//	go run ./test/swap -a main -b . -seed 17 -seeds 1 -v     # one seed again, with its history
//
// Each seed has a few objects, which are created, changed, and deleted while one operator after
// another is killed or stopped, and the other one continues. Both have the same handlers
// (operator/main.go, handlers.py): for creations, updates, a field, resumptions, and deletions,
// sub-handlers, and handlers that follow others. Those of this library also have a timer with a
// schedule. The objects say which attempts fail. The handlers write all calls to a journal, and
// a watch has all versions of the objects. From both, oracle.go finds what must not happen:
//
//   - A handler is called again although the object has the record that it has ended.
//   - A handler has another number of attempts than its record says, or is called too early.
//   - A handler that has failed temporarily is not called again.
//   - A record cannot be read, or it, or anything else, is left on the object at the end.
//   - The result of a handler is lost.
//   - A deletion does not end, or ends before its handlers have.
//   - Between builds of this library: a handler misses a change, or sees one twice.
//   - A build that knows the order of handlers does not keep it. Kopf calls them in any order; its
//     records count as those of this library do.
//   - A run of the schedule is made again although it is stored, or is left out; or an operator that
//     does not know schedules, such as Kopf, changes the record of the last run.
//
// What happens depends on the seed, when it happens also on the machine: repeat a seed several
// times. The operators run on a temporary control plane, whose programs `make envtest-assets`
// builds. Kopf is not a part of this repository: the command that runs it comes from -kopf, or from
// the environment variable KOPF_COMMAND. A shell runs it, with KUBECONFIG, and with the path of
// handlers.py in place of {file} and the namespace in place of {namespace}.
//
// Some handlers are known to be called again, mostly because Kopf takes part: a line counts them, and
// excuse in oracle.go gives the reasons.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// options are the flags.
type options struct {
	a, b     string
	kopf     string
	seeds    int
	seed     uint64
	parallel int
	patience time.Duration
	verbose  bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, os.Args[1:])
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "swap:", err)
		os.Exit(1)
	}
}

// parse reads the command line.
func parse(args []string) (o options, err error) {
	flags := flag.NewFlagSet("swap", flag.ContinueOnError)
	flags.StringVar(&o.a, "a", "main", "what runs first if the seed is even: a git ref, . for the work tree, kopf, or serve for the handlers of Kopf with kopf serve")
	flags.StringVar(&o.b, "b", ".", "what runs first if the seed is odd")
	flags.StringVar(&o.kopf, "kopf", os.Getenv("KOPF_COMMAND"), "the `command` that runs Kopf, in a shell with KUBECONFIG: "+
		"{file} are the handlers, {namespace} is the namespace; default: KOPF_COMMAND")
	flags.IntVar(&o.seeds, "seeds", 20, "the number of seeds")
	flags.Uint64Var(&o.seed, "seed", rand.Uint64N(1_000_000), "the first seed; default: a random one")
	flags.IntVar(&o.parallel, "p", 2, "run as many seeds at the same time")
	flags.DurationVar(&o.patience, "patience", 90*time.Second, "how long an operator may take to start, and the last one to finish")
	flags.BoolVar(&o.verbose, "v", false, "print the history of every seed, not only of those that fail")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 || o.seeds < 1 || o.parallel < 1 {
		return o, errors.New("there are no arguments besides the flags, and -seeds and -p are at least 1; see -help")
	}
	return o, nil
}

func run(ctx context.Context, out io.Writer, args []string) (err error) {
	o, err := parse(args)
	if err != nil {
		return err
	}
	ctrl.SetLogger(logr.Discard()) // of the control plane
	dir, err := os.MkdirTemp("", "swap-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	parties, err := prepare(ctx, dir, o)
	if err != nil {
		return err
	}
	arena, err := openArena(dir, o.patience)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, arena.close()) }()
	return swapAll(ctx, out, arena, parties, o)
}

// swapAll runs all seeds, and prints a line for each.
func swapAll(ctx context.Context, out io.Writer, arena *arena, parties [2]party, o options) error {
	results := make(chan result)
	seeds := make(chan uint64)
	for range o.parallel {
		go func() {
			for seed := range seeds {
				results <- arena.swap(ctx, parties, seed)
			}
		}()
	}
	go func() {
		defer close(seeds)
		for i := range o.seeds {
			seeds <- o.seed + uint64(i) //nolint:gosec // not negative
		}
	}()
	var total counts
	failed := 0
	for range o.seeds {
		r := <-results
		total.add(r.counts)
		_, _ = fmt.Fprintln(out, r)
		if r.failed() {
			failed++
		}
		if r.failed() || o.verbose {
			_, _ = fmt.Fprint(out, r.story())
		}
	}
	_, _ = fmt.Fprintf(out, "%d seeds: %s\n", o.seeds, total)
	if err := ctx.Err(); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d seeds have failed; repeat one with -a %s -b %s -seeds 1 -seed N", failed, o.seeds, o.a, o.b)
	}
	return nil
}
