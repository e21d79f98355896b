// Command dev is behind `make run EXAMPLE=…`: it runs one example operator
// against a Kubernetes API and tells in human terms what happens to its sample
// object.
//
// The cluster of the current kubeconfig is used where one answers. Otherwise a
// control plane of its own is started, and is gone when the command ends. To get
// that one in any case, set KUBECONFIG=/dev/null.
//
// Ctrl-C and SIGTERM stop the operator, then the control plane, and remove what
// was written. A second Ctrl-C does not wait for them: the watchdog of package
// guard stops them in the background, as it does when this process is killed.
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

// options are the command line.
type options struct {
	example    string
	kubeconfig string
	once       bool
	timeout    time.Duration
	arguments  []string
}

func main() {
	// envtest logs through controller-runtime, which complains when nobody listens.
	ctrllog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop)

	if err := run(ctx, parse(), newConsole(os.Stdout)); err != nil {
		fmt.Fprintln(os.Stderr, "dev:", err)
		os.Exit(1)
	}
}

// parse has a flag set of its own: controller-runtime puts a -kubeconfig into the
// common one.
func parse() options {
	var opts options
	flags := flag.NewFlagSet("dev", flag.ExitOnError)
	flags.StringVar(&opts.kubeconfig, "kubeconfig", "", "the kubeconfig file to try (default: $KUBECONFIG, then ~/.kube/config)")
	flags.BoolVar(&opts.once, "once", false, "end with success as soon as the sample object is handled")
	flags.DurationVar(&opts.timeout, "timeout", 2*time.Minute, "with -once: end with a failure after this time")
	flags.Usage = func() {
		_, _ = fmt.Fprintln(flags.Output(), "usage: dev [flags] EXAMPLE [arguments of the operator]")
		flags.PrintDefaults()
	}
	_ = flags.Parse(os.Args[1:]) // exits by itself
	opts.example = flags.Arg(0)
	if flags.NArg() > 1 {
		opts.arguments = flags.Args()[1:]
	}
	return opts
}
