package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(operate(role))
	}
	if word := os.Getenv(answersVariable); word != "" {
		os.Exit(beHandlers(word))
	}
	ctrl.SetLogger(logr.Discard()) // of the control plane
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		_, _ = fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1) //nolint:gocritic // the process exits, so the deferred function need not run
	}
}

// options holds the flags of the command line.
type options struct {
	objects  int
	size     int
	workers  int
	clients  int
	window   time.Duration
	interval time.Duration
	profiles string
	// background measures only background handlers, unless there are subjects.
	background bool
	waiting    bool // measure only waiting handlers
	children   bool // measure only the children of objects
	// metacontroller is the path of that program, which is measured with children.
	metacontroller string
	changes        int
	wait           time.Duration
	initial        int  // number of objects at the start of the operator, with waiting
	admission      bool // measure only admission
	calls          int
	neighbors      bool // measure only operators with neighbors
	rate           int  // of the neighbor, in requests per second
	seats          int  // of the API server; 0 for its default
	reject         bool
	// replicaCounts has the numbers of replicas that share the objects. If there are any, only they are measured.
	replicaCounts []int
	resident      int // number of objects that never change; if there are any, only an operator with them is measured
	memory        bool
	moved         int     // how many objects there are when they move among replicas
	pace          float64 // how many objects are created per second for each replica; 0: as many as the API server stores
	limit         string  // of the memory of each operator
	subjects      string
	asJSON        bool
}

func parse(arguments []string, out io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.IntVar(&o.objects, "n", 5000, "number of objects")
	flags.IntVar(&o.size, "size", 1024, "size of a new object, in bytes of JSON")
	flags.IntVar(&o.workers, "workers", 100, "number of objects that an operator handles concurrently")
	flags.IntVar(&o.clients, "clients", 16, "number of concurrent requests of the load")
	flags.DurationVar(&o.window, "window", 10*time.Second, "how long to measure the operators at rest")
	flags.DurationVar(&o.interval, "interval", 5*time.Second, "interval of the timers")
	flags.BoolVar(&o.background, "background", false, "measure only daemons and timers: the subjects "+strings.Join(backgroundSubjects, ", "))
	flags.BoolVar(&o.waiting, "waiting", false, "measure only handlers that wait: the subjects "+strings.Join(waitingSubjects, ", "))
	flags.BoolVar(&o.children, "children", false, "measure only operators that keep children: the subjects "+strings.Join(childrenSubjects, ", "))
	flags.StringVar(&o.metacontroller, "metacontroller", "", "with -children: path of the program Metacontroller, which is measured too, as "+childrenExternal+" (default: not measured)")
	flags.IntVar(&o.changes, "changes", 1000, "with -children: number of changes of children, one after the other, whose time is measured")
	flags.DurationVar(&o.wait, "wait", 10*time.Second, "how long handlers wait")
	flags.IntVar(&o.initial, "initial", 10_000, "with -waiting: number of objects that exist when the operator starts")
	flags.BoolVar(&o.admission, "admission", false, "measure only admission webhooks")
	flags.IntVar(&o.calls, "calls", 20_000, "number of calls of each admission webhook")
	flags.BoolVar(&o.neighbors, "neighbors", false, "measure only what another client of the API server notices: the subjects "+strings.Join(neighborSubjects, ", "))
	flags.IntVar(&o.rate, "rate", 100, "with -neighbors: requests of the other client per second")
	flags.IntVar(&o.seats, "seats", 0, "with -neighbors: --max-mutating-requests-inflight of the API server; the operator then has a low priority (default: that of the API server, without a priority)")
	flags.BoolVar(&o.reject, "reject", false, "with -seats: the API server refuses requests of the operator, instead of queueing them")
	counts := flags.String("shards", "", "measure only replicas that share the objects: their numbers, such as 1,2,3, and the subjects "+strings.Join(shardSubjects, ", "))
	flags.IntVar(&o.resident, "resident", 0, "measure only an operator with this number of other objects, which are handled already and do not change: the subject "+residents)
	flags.BoolVar(&o.memory, "memory", false, "measure with the API server of the test kit, in memory: for numbers of objects that a real one on this machine is too slow for")
	flags.IntVar(&o.moved, "moved", 10_000, "with -shards: number of objects when a replica joins, and when one is killed; -n, if that is more")
	flags.Float64Var(&o.pace, "pace", 0, "with -shards: number of objects that are created per second for each replica (default: as many as the API server stores)")
	flags.StringVar(&o.limit, "limit", "", "GOMEMLIMIT of the operators, such as 250MiB; printed deployments set it (default: no limit)")
	flags.StringVar(&o.profiles, "profile", "", "directory for CPU and heap profiles of the operators (default: no profiles)")
	flags.StringVar(&o.subjects, "subjects", "", "comma-separated list of subjects to measure, of "+strings.Join(subjectNames(), ", ")+" (default: all except "+oursTyped+", "+oursWorker+", "+oursRun+", and those of -waiting and -children)")
	flags.BoolVar(&o.asJSON, "json", false, "print JSON instead of tables")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	var err error
	o.replicaCounts, err = parseReplicas(*counts)
	return o, err
}

// chosen returns the subjects to measure.
func (o options) chosen() []string {
	switch {
	case o.admission:
		return nil
	case o.subjects != "":
		return strings.Split(o.subjects, ",")
	case o.waiting:
		return waitingSubjects
	case o.children && o.metacontroller != "":
		return slices.Concat(childrenSubjects, externalSubjects)
	case o.children:
		return childrenSubjects
	case o.background:
		return backgroundSubjects
	case o.resident > 0:
		return residentSubjects
	case len(o.replicaCounts) > 0:
		return shardSubjects
	case o.neighbors:
		return neighborSubjects
	default:
		return slices.Concat(defaultSubjects, backgroundSubjects)
	}
}

// check returns an error if a subject is unknown, or if its program is missing.
func (o options) check() error {
	for _, name := range o.chosen() {
		if _, known := subjects[name]; !known {
			return fmt.Errorf("unknown subject %q: use some of %s", name, strings.Join(subjectNames(), ", "))
		}
		if !slices.Contains(externalSubjects, name) {
			continue
		}
		if o.metacontroller == "" {
			return fmt.Errorf("the subject %s is a program that is not part of this project: build Metacontroller (https://metacontroller.github.io), and add -metacontroller PATH", name)
		}
		if _, err := exec.LookPath(o.metacontroller); err != nil {
			return fmt.Errorf("-metacontroller must be the path of a program: %w", err)
		}
	}
	return nil
}

// run measures all subjects and prints the figures. Progress goes to the log.
func run(ctx context.Context, arguments []string, out, log io.Writer) error {
	options, err := parse(arguments, log)
	if err != nil {
		return err
	}
	if err := options.check(); err != nil {
		return err
	}
	report := report{Objects: options.objects, Size: options.size, Workers: options.workers, Interval: options.interval, Machine: machine()}
	for _, name := range options.chosen() {
		_, _ = fmt.Fprintf(log, "%s: %d objects\n", name, options.objects)
		if err := report.add(ctx, name, options, log); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if options.admission || options.subjects == "" && !options.background && !options.neighbors && !options.waiting && !options.children && len(options.replicaCounts) == 0 && options.resident == 0 {
		_, _ = fmt.Fprintf(log, "admission: %d calls\n", options.calls)
		if report.Admission, err = measureAdmission(ctx, options); err != nil {
			return fmt.Errorf("admission: %w", err)
		}
	}
	if options.asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(report)
	}
	return report.print(out)
}
