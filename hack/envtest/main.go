// Command envtest provides kube-apiserver and etcd for the tests and for `make run`,
// and prints the directory that contains them: those of the newest Kubernetes that this
// project supports, or with --oldest those of the oldest. It also provides kubectl of the
// newest one for the tests.
//
// Progress goes to standard error, so that you can use the output directly:
//
//	KUBEBUILDER_ASSETS=$(go run ./hack/envtest --print) go test ./...
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/kopf-go/kopf/hack/envtest/assets"
)

func main() {
	quiet := flag.Bool("print", false, "print only the directory")
	oldest := flag.Bool("oldest", false, "provide the oldest supported release instead of the newest")
	flag.Parse()
	if err := run(*quiet, *oldest); err != nil {
		fmt.Fprintln(os.Stderr, "envtest-assets:", err)
		os.Exit(1)
	}
}

func run(quiet, oldest bool) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ensure := assets.Ensure
	if oldest {
		ensure = func(ctx context.Context, progress io.Writer) (string, error) {
			return assets.EnsureRelease(ctx, assets.Oldest, progress)
		}
	}
	dir, err := ensure(ctx, os.Stderr)
	if err != nil {
		return err
	}
	if _, err := assets.EnsureKubectl(ctx, os.Stderr); err != nil {
		return err
	}
	if !quiet {
		fmt.Print("kube-apiserver and etcd are in ")
	}
	fmt.Println(dir)
	return nil
}
