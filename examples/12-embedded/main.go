// This example embeds two operators in an application. Each has its own registry, so they do
// not share handlers. The application handles signals, flags, and the log, because it does
// not call kopf.Main.
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

// run runs the application until it is interrupted, or until one of its operators ends.
func run(namespace string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	known, census := newCensus()
	first := start(ctx, "census", namespace, census)
	second := start(ctx, "greeter", namespace, greetings())
	if first.waitReady() && second.waitReady() {
		// All objects are known now, and the application can do its work.
		ctrl.Log.Info("The application is ready.", "objects", known.Len())
		select {
		case <-ctx.Done():
		case <-first.done:
		case <-second.done:
		}
	}
	stop() // the application needs both operators
	<-first.done
	<-second.done
	ctrl.Log.Info("The application stops: its operators have stopped.")
	return errors.Join(first.err, second.err)
}
