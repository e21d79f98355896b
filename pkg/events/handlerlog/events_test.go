package handlerlog

import (
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"

	"github.com/kopf-go/kopf/pkg/model/object"
)

var example = object.NewBody(map[string]any{"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": map[string]any{
	"name": "one", "namespace": "ns", "uid": "u-1",
}})

func about() *object.Body { return example }

// board records posted events.
type board struct {
	events []string
	last   corev1.ObjectReference
}

func (b *board) Post(ref corev1.ObjectReference, eventType, reason, message string) {
	b.last = ref
	b.events = append(b.events, eventType+" "+reason+": "+message)
}

// talk logs like a handler.
func talk(log logr.Logger) {
	log.Info("one", "k", "v")
	log.V(1).Info("two")
	log.V(5).Info("three")
	log.Error(errors.New("broken"), "four", "k", 1)
	log.Error(nil, "five")
	log = log.WithName("part").WithValues("x", "y")
	log.Info("six", "k", "v")
}

func TestLinesArePostedFromTheLevelOn(t *testing.T) {
	failures := []string{"Error Logging: four: broken k=1", "Error Logging: five"}
	usual := slices.Concat([]string{"Normal Logging: one k=v"}, failures, []string{"Normal Logging: six x=y k=v"})
	verbose := slices.Insert(slices.Clone(usual), 1, "Debug Logging: two")
	tests := map[string]struct {
		level slog.Level
		want  []string
	}{
		"debugging, without the requests of libraries": {slog.LevelDebug, verbose},
		"one level below":  {-1, verbose},
		"by default":       {slog.LevelInfo, usual},
		"warnings":         {slog.LevelWarn, failures},
		"errors":           {slog.LevelError, failures},
		"above all levels": {slog.LevelError + 1, nil},
	}
	for name, test := range tests {
		for verbosity := range 3 { // the verbosity of the log does not matter
			t.Run(name+", verbosity "+strconv.Itoa(verbosity), func(t *testing.T) {
				b := &board{}
				log := funcr.New(func(string, string) {}, funcr.Options{Verbosity: verbosity})
				talk((&Events{b, test.level}).Logger(log.WithValues("object", "ns/one"), about, "handler", "fn"))
				if !slices.Equal(b.events, test.want) {
					t.Errorf("got %q", b.events)
				}
				if want := (corev1.ObjectReference{APIVersion: "kopf.dev/v1", Kind: "KopfExample", Namespace: "ns", Name: "one", UID: "u-1"}); test.want != nil && b.last != want {
					t.Errorf("they are about %v", b.last)
				}
			})
		}
	}
}

func TestEventsDoNotChangeTheLog(t *testing.T) {
	lines := func(events *Events, kind func(logr.Logger) logr.Logger) string {
		var lines []string
		log := kind(funcr.New(func(prefix, args string) { lines = append(lines, prefix+": "+args) }, funcr.Options{Verbosity: 1, LogCaller: funcr.All}))
		talk(events.Logger(log.WithValues("object", "ns/one"), about, "handler", "fn"))
		return strings.Join(lines, "\n")
	}
	for name, kind := range map[string]func(logr.Logger) logr.Logger{
		"a lazy logger":    Lazily,
		"any other logger": func(log logr.Logger) logr.Logger { return log },
	} {
		t.Run(name, func(t *testing.T) {
			got, want := lines(&Events{&board{}, slog.LevelDebug}, kind), lines(nil, kind)
			if got != want || strings.Count(want, "\n") != 4 {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestLoggedCallerIsTheHandler(t *testing.T) {
	var line string
	log := funcr.New(func(_, args string) { line = args }, funcr.Options{LogCaller: funcr.All})
	log = (&Events{&board{}, 0}).Logger(Lazily(log), about)
	log = log.WithValues("k", "v").WithName("part").WithCallDepth(0)
	_, _, here, _ := runtime.Caller(0)
	log.Info("here")
	if want := `"line"=` + strconv.Itoa(here+1); !strings.Contains(line, want) {
		t.Errorf("%s does not contain %s", line, want)
	}
}

func TestLinesOfDiscardedLogArePosted(t *testing.T) {
	b := &board{}
	log := (&Events{b, 0}).Logger(logr.Discard(), about, "handler", "fn")
	talk(log.WithCallDepth(1))
	if len(b.events) != 4 {
		t.Errorf("got %q", b.events)
	}
	if !log.Enabled() || log.V(1).Enabled() {
		t.Error("only the levels that are posted must be enabled")
	}
	if LogOnly(log).GetSink() != nil {
		t.Error("no level must be enabled")
	}
}

// An operator can reduce the level of everything that its handlers log.
func TestLevelIsRelativeToHandlerLogger(t *testing.T) {
	b := &board{}
	log := funcr.New(func(string, string) {}, funcr.Options{}).V(3)
	talk((&Events{b, 0}).Logger(Lazily(log), about))
	if len(b.events) != 4 {
		t.Errorf("got %q", b.events)
	}
}

func TestLogOnlyDoesNotPost(t *testing.T) {
	b, lines := &board{}, 0
	log := Lazily(funcr.New(func(string, string) { lines++ }, funcr.Options{}))
	talk(LogOnly((&Events{b, slog.LevelDebug}).Logger(log, about, "handler", "fn").WithValues("a", "b")))
	if lines != 4 || b.events != nil {
		t.Errorf("%d lines and %q", lines, b.events)
	}
	if log = funcr.New(nil, funcr.Options{}); LogOnly(log) != log {
		t.Error("a logger that posts nothing must not change")
	}
}

// Lines that are logged with the standard library are posted, too.
func TestSlogLinesArePosted(t *testing.T) {
	b := &board{}
	log := slog.New(logr.ToSlogHandler((&Events{b, 0}).Logger(logr.Discard(), about))).With("a", 1)
	log.Debug("zero")
	log.Info("one", "k", "v")
	log.Warn("two")
	log.Error("three", "err", errors.New("broken"))
	want := []string{"Normal Logging: one a=1 k=v", "Normal Logging: two a=1", "Error Logging: three a=1 err=broken"}
	if !slices.Equal(b.events, want) {
		t.Errorf("got %q", b.events)
	}
}

// A program in another language can have warnings.
func TestWarningsArePosted(t *testing.T) {
	var lines []string
	base := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	for level, want := range map[slog.Level][]string{
		slog.LevelInfo:  {"Warning Logging: It is slow. size=1"},
		slog.LevelWarn:  {"Warning Logging: It is slow. size=1"},
		slog.LevelError: nil,
	} {
		b := &board{}
		Warn((&Events{b, level}).Logger(Lazily(base), about, "handler", "fn"), "It is slow.", "size", 1)
		if !slices.Equal(b.events, want) {
			t.Errorf("got %q at the level %s", b.events, level)
		}
	}
	Warn(base, "It posts nothing.")
	if len(lines) != 4 || !strings.Contains(lines[0], `"msg"="It is slow." "handler"="fn" "size"=1`) {
		t.Errorf("got the lines %q", lines)
	}
}

func TestUnusedLoggerDoesNotAllocateForEvents(t *testing.T) {
	var kept logr.Logger
	base := Lazily(funcr.New(func(string, string) {}, funcr.Options{})).WithValues("object", "ns/one")
	cost := func(events *Events) float64 {
		return testing.AllocsPerRun(100, func() { kept = events.Logger(base, about, "handler", "fn") })
	}
	without, with := cost(nil), cost(&Events{&board{}, 0})
	if with > without {
		t.Errorf("%v allocations, and %v without events", with, without)
	}
	if kept.GetSink() == nil {
		t.Error("there is no logger")
	}
}

// go test -bench=. -benchmem ./pkg/events/handlerlog
func BenchmarkLogger(b *testing.B) {
	base := Lazily(funcr.New(func(string, string) {}, funcr.Options{})).WithValues("object", "ns/one")
	for name, events := range map[string]*Events{"without events": nil, "with events": {&board{}, 0}} {
		b.Run(name+", nothing is logged", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				events.Logger(base, about, "handler", "fn")
			}
		})
		b.Run(name+", a line is logged", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				events.Logger(base, about, "handler", "fn").Info("The claim is created.", "size", "1Gi", "attempt", 1)
			}
		})
	}
}
