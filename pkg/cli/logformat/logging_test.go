package logformat

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// timestamps matches the times of lines.
var timestamps = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+(Z|[+-]\d\d:?\d\d)`)

// capture returns the lines of the calls, with TIME instead of the times.
func capture(options Options, calls func(logr.Logger)) string {
	var out bytes.Buffer
	calls(New(&out, options))
	return timestamps.ReplaceAllString(out.String(), "TIME")
}

// example is the object of the tests.
var example = corev1.ObjectReference{APIVersion: "kopf.dev/v1", Kind: "KopfExample", Namespace: "default", Name: "one", UID: "u-i-d"}

func TestFormats(t *testing.T) {
	calls := map[string]func(logr.Logger){
		"a line of the operator": func(l logr.Logger) { l.WithName("peering").Info("The operator is paused.", "peers", 2) },
		"a line of an object": func(l logr.Logger) {
			l.WithValues("object", example, "handler", "createFn").Info("The handler succeeded.")
		},
		"a line of an object by its name": func(l logr.Logger) { l.WithValues("object", "default/one").V(1).Info("It is in progress.") },
		"an error":                        func(l logr.Logger) { l.Error(errors.New("no"), "The handler failed.", "object", "one") },
	}
	tests := map[string]struct {
		options Options
		want    map[string]string
	}{
		"full": {Options{Prefix: true}, map[string]string{
			"a line of the operator":          "TIME\tINFO\tpeering\tThe operator is paused.\t{\"peers\": 2}\n",
			"a line of an object":             "TIME\tINFO\t[default/one] The handler succeeded.\t{\"handler\": \"createFn\"}\n",
			"a line of an object by its name": "TIME\tDEBUG\t[default/one] It is in progress.\n",
			"an error":                        "TIME\tERROR\t[one] The handler failed.\t{\"error\": \"no\"}\n",
		}},
		"full, without prefixes": {Options{Format: Full}, map[string]string{
			"a line of an object": "TIME\tINFO\tThe handler succeeded.\t{\"object\": \"default/one\", \"handler\": \"createFn\"}\n",
		}},
		"full, in colors": {Options{Colors: true}, map[string]string{
			"a line of an object by its name": "TIME\t\x1b[35mDEBUG\x1b[0m\tIt is in progress.\t{\"object\": \"default/one\"}\n",
		}},
		"plain": {Options{Format: Plain, Prefix: true}, map[string]string{
			"a line of the operator":          "The operator is paused. {\"peers\": 2}\n",
			"a line of an object by its name": "[default/one] It is in progress.\n",
			"an error":                        "[one] The handler failed. {\"error\": \"no\"}\n",
		}},
		"json": {Options{Format: JSON}, map[string]string{
			"a line of the operator":          `{"severity":"info","timestamp":"TIME","logger":"peering","message":"The operator is paused.","peers":2}` + "\n",
			"a line of an object":             `{"severity":"info","timestamp":"TIME","message":"The handler succeeded.","object":{"apiVersion":"kopf.dev/v1","kind":"KopfExample","name":"one","uid":"u-i-d","namespace":"default"},"handler":"createFn"}` + "\n",
			"a line of an object by its name": `{"severity":"debug","timestamp":"TIME","message":"It is in progress.","object":{"name":"one","namespace":"default"}}` + "\n",
			"an error":                        `{"severity":"error","timestamp":"TIME","message":"The handler failed.","object":{"name":"one"},"error":"no"}` + "\n",
		}},
		"json, with prefixes and another key": {Options{Format: JSON, Prefix: true, ReferenceKey: "k8s-obj"}, map[string]string{
			"an error": `{"severity":"error","timestamp":"TIME","message":"[one] The handler failed.","k8s-obj":{"name":"one"},"error":"no"}` + "\n",
		}},
	}
	for name, test := range tests {
		for call, want := range test.want {
			t.Run(name+"/"+call, func(t *testing.T) {
				test.options.Verbosity = 6
				if got := capture(test.options, calls[call]); got != want {
					t.Errorf("got  %q\nwant %q", got, want)
				}
			})
		}
	}
}

func TestVerbosity(t *testing.T) {
	tests := map[string]struct {
		verbosity int
		want      string
	}{
		"errors only": {Errors, "error"},
		"normal":      {0, "info error"},
		"more":        {1, "decision info error"},
		"all":         {6, "request decision info error"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := capture(Options{Format: Plain, Verbosity: test.verbosity}, func(l logr.Logger) {
				l.V(8).Info("body")
				l.V(6).Info("request")
				l.V(1).Info("decision")
				l.Info("info")
				l.Error(nil, "error")
			})
			if strings.Join(strings.Fields(got), " ") != test.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestALineHasOneObject(t *testing.T) {
	got := capture(Options{Format: Plain, Prefix: true}, func(l logr.Logger) {
		l = l.WithValues("object", "ns/a")
		l.Info("compared", "object", "ns/b")
		l.Info("counted", "objects", 3)
		l.WithValues("object", 5).Info("odd")
	})
	want := "[ns/a] compared {\"object\": \"ns/b\"}\n[ns/a] counted {\"objects\": 3}\n[ns/a] odd {\"object\": 5}\n"
	if got != want {
		t.Errorf("got %q", got)
	}
	if got := capture(Options{Format: Plain, Prefix: true}, func(l logr.Logger) { l.Info("five", "object", 5) }); got != "five {\"object\": 5}\n" {
		t.Errorf("got %q", got)
	}
}

func TestTheStackOfAPanic(t *testing.T) {
	call := func(l logr.Logger) {
		l.Error(io.EOF, "It failed.", "stack", "goroutine 1:\n\tmain.go:1\x1b[0m", "delay", "1s")
	}
	if got := capture(Options{Format: Plain}, call); got != "It failed. {\"delay\": \"1s\", \"error\": \"EOF\"}\ngoroutine 1:\n\tmain.go:1\\u001b[0m\n" {
		t.Errorf("got %q", got)
	}
	if got := capture(Options{Format: JSON}, call); strings.Count(got, "\n") != 1 || !strings.Contains(got, `"stack":"goroutine 1:\n\tmain.go:1\u001b[0m"`) {
		t.Errorf("got %q", got)
	}
}

// Control characters are escaped, and a message stays one line.
func TestControlCharactersAreEscaped(t *testing.T) {
	harmful := "a\nb\r\t\x1b[2J\x7f\u009b1A\u2028\u202e\x9bz"
	for _, format := range Formats() {
		t.Run(string(format), func(t *testing.T) {
			got := capture(Options{Format: format, Prefix: true}, func(l logr.Logger) {
				l.WithName(harmful).WithValues("object", harmful).Info(harmful, harmful, harmful, "error", errors.New(harmful))
			})
			if strings.Count(got, "\n") != 1 || strings.ContainsAny(got, "\r\x1b\x7f\u009b\u2028\u202e") || strings.Contains(got, "\x9b") {
				t.Errorf("got %q", got)
			}
			if format == JSON && !json.Valid([]byte(got)) {
				t.Errorf("invalid JSON: %s", got)
			}
		})
	}
	if got := capture(Options{Format: Plain}, func(l logr.Logger) { l.Info("größer — ✓\ttab") }); got != "größer — ✓\\ttab\n" {
		t.Errorf("got %q", got)
	}
}

// Lines contain the names of objects, not their content, which can be a Secret.
func TestObjectsAreLoggedByName(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, StringData: map[string]string{"key": "canary"}}
	for _, format := range Formats() {
		got := capture(Options{Format: format}, func(l logr.Logger) {
			l.Info("here", "secret", secret)
			l.WithValues("secret", secret).Info("there")
		})
		if strings.Contains(got, "canary") || strings.Count(got, `"s"`) != 2 {
			t.Errorf("%s: got %s", format, got)
		}
	}
}

// Equal lines about many objects are not sampled.
func TestEveryLineIsWritten(t *testing.T) {
	got := capture(Options{}, func(l logr.Logger) {
		for range 1000 {
			l.Info("The handler succeeded.")
		}
	})
	if count := strings.Count(got, "\n"); count != 1000 {
		t.Errorf("got %d lines", count)
	}
}

type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestAClosedLogIsIgnored(t *testing.T) {
	New(closed{}, Options{}).Info("unheard")
}

func BenchmarkLine(b *testing.B) {
	logger := New(io.Discard, Options{Prefix: true}).WithValues("object", "default/one", "resource", "kopfexamples.v1.kopf.dev")
	for b.Loop() {
		logger.Info("The handler succeeded.", "handler", "createFn")
	}
}
