package operator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/handlertest"
	"github.com/kopf-go/kopf/internal/registry"
)

// What client-go logs has the format of the operator.
func TestLibrariesLogToTheLoggerOfTheOperator(t *testing.T) {
	var lines []string
	adoptClient(funcr.New(func(prefix, args string) { lines = append(lines, prefix+" "+args) }, funcr.Options{}))
	t.Cleanup(func() { libraries.Store(nil) })
	klog.Background().WithName("part").WithValues("a", 1).Info("Said.")
	klog.Errorf("old style: %d", 2)
	klog.ErrorS(errors.New("bad"), "Failed.", "b", 3)
	klog.V(8).Info("too much")
	got := strings.Join(lines, "\n")
	for _, want := range []string{`client "level"=0 "msg"="Said." "logger"="part" "a"=1`, "old style: 2", `"Failed." "error"="bad" "b"=3`} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if len(lines) != 3 {
		t.Errorf("got %q", lines)
	}
	libraries.Store(nil)
	klog.Info("lost")
}

// A logger that waits for another one must not wait for itself.
func TestTheLoggerOfControllerRuntimeIsNotItsOwn(t *testing.T) {
	AdoptController(ctrl.Log.WithName("mine"))
	ctrl.Log.Info("not endless")
	AdoptController(logr.Discard())
	ctrl.Log.Info("discarded")
}

// complaint begins what controller-runtime writes if a program logs 30 seconds after its start, and has set no logger.
const complaint = "[controller-runtime] log.SetLogger(...) was never called"

// Libraries write nothing to standard error besides the log of the operator. The log of an operator without any logger
// is lost, and only the complaint says so.
func TestLibrariesWriteNothingToStandardError(t *testing.T) {
	const variable = "KOPF_TEST_LIBRARIES"
	loggers := map[string]logr.Logger{
		"a logger":  funcr.New(func(prefix, line string) { fmt.Println("log: " + prefix + " " + line) }, funcr.Options{}),
		"no logger": {},
	}
	if name := os.Getenv(variable); name != "" {
		runLoggingOperator(t, loggers[name])
		return
	}
	for name := range loggers {
		t.Run(name, func(t *testing.T) {
			command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLibrariesWriteNothingToStandardError$")
			command.Env = append(os.Environ(), variable+"="+name)
			var output, errors bytes.Buffer
			command.Stdout, command.Stderr = &output, &errors
			if err := command.Run(); err != nil {
				t.Fatalf("%v\n%s%s", err, &output, &errors)
			}
			if name == "no logger" {
				if got := errors.String(); !strings.HasPrefix(got, complaint) || strings.Contains(got, "from client-go") {
					t.Errorf("standard error has %q", got)
				}
				return
			}
			if errors.Len() > 0 {
				t.Errorf("standard error has %q", &errors)
			}
			for _, want := range []string{`client "level"=0 "msg"="from client-go"`, `client "msg"="a failure" "error"="bad"`, `part "level"=0 "msg"="from controller-runtime"`} {
				if !strings.Contains(output.String(), "log: "+want) {
					t.Errorf("%s is not in\n%s", want, &output)
				}
			}
		})
	}
}

// runLoggingOperator runs an operator while and after which libraries log.
func runLoggingOperator(t *testing.T, logger logr.Logger) {
	began, early := time.Now(), ctrl.Log.WithName("part") // as a variable of a package
	ctx, stop := context.WithCancel(t.Context())
	var r registry.Registry
	r.Add(handler.ForOperator(handler.OnStartup, handlertest.Returning(func(context.Context, *handler.Call) (any, error) {
		klog.Background().Info("from client-go")
		klog.ErrorS(errors.New("bad"), "a failure")
		stop()
		return nil, nil
	}), handler.ID("startup")))
	o, err := NewOperator(Options{Registry: &r, Logger: logger, Config: &rest.Config{Host: "http://nowhere"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Run(ctx); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(*testing.T) { // where a minute takes no time
		time.Sleep(time.Until(began.Add(time.Minute)))
		early.Info("from controller-runtime")
	})
}
