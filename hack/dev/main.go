// Command dev implements `make run EXAMPLE=…`: it runs one example operator against a
// Kubernetes API and reports in plain sentences what happens to the sample object.
//
// It uses the cluster of the current kubeconfig if that answers. Otherwise it starts
// a control plane, and stops it when the command ends. To use a temporary control
// plane in any case, set KUBECONFIG=/dev/null.
//
// Ctrl-C and SIGTERM stop the operator, then the control plane, and remove the files.
// A second Ctrl-C does not wait: the watchdog of package guard stops the processes in
// the background, as it does when this process is killed.
package main

import (
	"context"
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
	kubeconfig string
	once       bool
	timeout    time.Duration
	arguments  []string
}

func main() {
	// envtest logs through controller-runtime, which complains if there is no logger.
	ctrllog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop)

	if err := run(ctx, parse(), newConsole(os.Stdout)); err != nil {
		fmt.Fprintln(os.Stderr, "dev:", err)
		os.Exit(1)
	}
}

// parse reads the command line. It uses a separate flag set, because
// controller-runtime registers -kubeconfig in the common one.
func parse() options {
	var opts options
	flags := flag.NewFlagSet("dev", flag.ExitOnError)
	flags.StringVar(&opts.kubeconfig, "kubeconfig", "", "path of the kubeconfig file (default: $KUBECONFIG, then ~/.kube/config)")
	flags.BoolVar(&opts.once, "once", false, "exit with success as soon as the sample object is handled")
	flags.DurationVar(&opts.timeout, "timeout", 2*time.Minute, "with -once: exit with a failure after this time")
	flags.Usage = func() {
		_, _ = fmt.Fprintln(flags.Output(), "usage: dev [flags] EXAMPLE [arguments of the operator]")
		flags.PrintDefaults()
	}
	_ = flags.Parse(os.Args[1:]) // exits on errors
	opts.example = flags.Arg(0)
	if flags.NArg() > 1 {
		opts.arguments = flags.Args()[1:]
	}
	return opts
}
