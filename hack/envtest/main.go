// Command envtest provides kube-apiserver and etcd for the tests and for `make run`,
// and prints the directory that contains them.
//
// Progress goes to standard error, so that you can use the output directly:
//
//	KUBEBUILDER_ASSETS=$(go run ./hack/envtest --print) go test ./...
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/kopf-go/kopf/hack/envtest/assets"
)

func main() {
	quiet := flag.Bool("print", false, "print only the directory")
	flag.Parse()
	if err := run(*quiet); err != nil {
		fmt.Fprintln(os.Stderr, "envtest-assets:", err)
		os.Exit(1)
	}
}

func run(quiet bool) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := assets.Ensure(ctx, os.Stderr)
	if err != nil {
		return err
	}
	if !quiet {
		fmt.Print("kube-apiserver and etcd are in ")
	}
	fmt.Println(dir)
	return nil
}
