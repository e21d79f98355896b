// Command dev implements `make run EXAMPLE=…`: it runs one example operator against a
// Kubernetes API and reports in plain sentences what happens to the sample object.
//
// It starts a control plane, and stops it when the command ends. With -cluster=current,
// it uses the cluster of the current kubeconfig instead, after naming it: to try an
// example must not install definitions in a cluster by accident.
//
// Ctrl-C and SIGTERM stop the operator, then the control plane, and remove the files.
// A second Ctrl-C does not wait: the watchdog of package guard stops the processes in
// the background, as it does when this process is killed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// options holds the flags and arguments of the command line.
type options struct {
	example    string
	cluster    string
	kubeconfig string
	once       bool
	timeout    time.Duration
	arguments  []string
}

func main() {
	// envtest logs through controller-runtime, which complains if there is no logger.
	ctrllog.SetLogger(logr.Discard())
	opts, err := parse(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		os.Exit(2) // parse has printed the reason
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop)

	if err := run(ctx, opts, newConsole(os.Stdout)); err != nil {
		fmt.Fprintln(os.Stderr, "dev:", err)
		os.Exit(1)
	}
}

// parse reads the command line, and prints what is wrong with it. It uses a separate
// flag set, because controller-runtime registers -kubeconfig in the common one.
func parse(args []string) (options, error) {
	var opts options
	flags := flag.NewFlagSet("dev", flag.ContinueOnError)
	flags.StringVar(&opts.cluster, "cluster", temporary, "`which` cluster: temporary, which is started and stopped, or current, that of the kubeconfig")
	flags.StringVar(&opts.kubeconfig, "kubeconfig", "", "with -cluster=current: path of the kubeconfig file (default: $KUBECONFIG, then ~/.kube/config)")
	flags.BoolVar(&opts.once, "once", false, "exit with success as soon as the sample object is handled")
	flags.DurationVar(&opts.timeout, "timeout", 2*time.Minute, "with -once: exit with a failure after this time")
	flags.Usage = func() {
		_, _ = fmt.Fprintln(flags.Output(), "usage: dev [flags] EXAMPLE [arguments of the operator]")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if opts.cluster != temporary && opts.cluster != current {
		err := fmt.Errorf("CLUSTER=%s: use %q for the cluster of your kubeconfig, or leave it out for a temporary control plane", opts.cluster, current)
		_, _ = fmt.Fprintln(flags.Output(), "dev:", err)
		return options{}, err
	}
	opts.example = flags.Arg(0)
	if flags.NArg() > 1 {
		opts.arguments = flags.Args()[1:]
	}
	return opts, nil
}
