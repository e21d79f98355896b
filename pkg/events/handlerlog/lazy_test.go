package handlerlog

import (
	"errors"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

func TestLazyLoggerWritesTheSameLines(t *testing.T) {
	write := func(log logr.Logger) {
		log = log.WithName("a").WithValues("x", 1)
		other := log.WithValues("y", 2)
		log.WithName("b").WithValues("z", 3).Info("one", "k", "v")
		other.V(1).Info("two")
		other.V(2).Info("not enabled")
		log.Error(errors.New("e"), "three", "k", "v")
	}
	// The location of the caller reveals the call depth above the sink.
	options := funcr.Options{Verbosity: 1, LogCaller: funcr.All}
	var eager, lazy []string
	into := func(lines *[]string) logr.Logger {
		return funcr.New(func(prefix, args string) { *lines = append(*lines, prefix+": "+args) }, options)
	}
	write(into(&eager))
	write(Lazily(into(&lazy)))
	if strings.Join(lazy, "\n") != strings.Join(eager, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(lazy, "\n"), strings.Join(eager, "\n"))
	}
}

func TestLazyLoggerKeepsLevelAndCaller(t *testing.T) {
	var line string
	log := Lazily(funcr.New(func(_, args string) { line = args }, funcr.Options{Verbosity: 1, LogCaller: funcr.All}).V(1))
	if log.V(1).Enabled() {
		t.Error("the level is lost")
	}
	_, _, here, _ := runtime.Caller(0)
	log.Info("here")
	if want := `"line"=` + strconv.Itoa(here+1); !strings.Contains(line, want) {
		t.Errorf("%s does not contain %s", line, want)
	}
	if Lazily(logr.Discard()).GetSink() != nil {
		t.Error("a discarding logger must not be wrapped")
	}
}
