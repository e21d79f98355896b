package kopftest_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/kopftest"
)

// Tests need not set the loggers of libraries: client-go would write lines to standard error, and controller-runtime
// a complaint if it logs 30 seconds after the start of the program.
func TestLibrariesOfTheKitWriteNothingToStandardError(t *testing.T) {
	const variable = "KOPF_TEST_LIBRARIES"
	began := time.Now()
	declare := func() *kopf.Registry {
		r := kopf.NewRegistry()
		r.OnStartup(func(context.Context, *kopf.Startup) error {
			klog.Info("from client-go")
			return nil
		}, kopf.ID("startup"))
		return r
	}
	tests := map[string]func(t *testing.T){
		"New": func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { kopftest.New(t, declare) })
		},
		"Run": func(t *testing.T) {
			var starting sync.WaitGroup // of tests in parallel
			for range 2 {
				starting.Go(func() { kopftest.Run(t, kopftest.NewAPIServer(t).Config(), declare()) })
			}
			starting.Wait()
		},
	}
	if name := os.Getenv(variable); name != "" {
		tests[name](t)
		synctest.Test(t, func(*testing.T) { // where a minute takes no time
			time.Sleep(time.Until(began.Add(time.Minute)))
			ctrl.Log.Info("from controller-runtime")
		})
		return
	}
	for name := range tests {
		t.Run(name, func(t *testing.T) {
			command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLibrariesOfTheKitWriteNothingToStandardError$")
			command.Env = append(os.Environ(), variable+"="+name)
			var output, errors bytes.Buffer
			command.Stdout, command.Stderr = &output, &errors
			if err := command.Run(); err != nil || errors.Len() > 0 {
				t.Errorf("%v, standard error has %q, and standard output %s", err, &errors, &output)
			}
		})
	}
}
