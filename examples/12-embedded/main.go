// Embedding: operators as a part of an application that has other things to do, too.
// Here are two of them, with a registry each: they do not see each other's handlers.
// Signals, flags and the log are the application's; kopf.Main is not there.
package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/signal"
	"syscall"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

func main() {
	namespace := flag.String("n", "default", "the namespace to watch")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := run(*namespace); err != nil {
		ctrl.Log.Error(err, "The application has failed.")
		os.Exit(1)
	}
}

// run is the application, until it is interrupted, or one of its operators ends.
func run(namespace string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	known, census := newCensus()
	first := start(ctx, "census", namespace, census)
	second := start(ctx, "greeter", namespace, greetings())
	if first.isReady() && second.isReady() {
		// From here on, whatever the application does: it knows all objects.
		ctrl.Log.Info("The application is ready.", "objects", known.Len())
		select {
		case <-ctx.Done():
		case <-first.done:
		case <-second.done:
		}
	}
	stop() // of no use without each other
	<-first.done
	<-second.done
	ctrl.Log.Info("The application ends: nothing of its operators runs any longer.")
	return errors.Join(first.err, second.err)
}
