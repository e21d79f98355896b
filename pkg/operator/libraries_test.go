package operator

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
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
	adoptController(ctrl.Log.WithName("mine"))
	ctrl.Log.Info("not endless")
	adoptController(logr.Discard())
	ctrl.Log.Info("discarded")
}
