package conformance_test

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/kopf-go/kopf/pkg/serve/conformance"
)

// The adapter for Python passes all checks.
func TestTheAdapterForPythonConforms(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Log("NOT TESTED: there is no python3 in the PATH, so nothing checks the adapter for Python")
		return
	}
	var out, log strings.Builder
	const folder = "../../../examples/languages/python/"
	err := conformance.Run(t.Context(), []string{"python3", folder + "kopf.py", folder + "conformance.py"}, &out, &log)
	if err != nil || !strings.HasSuffix(out.String(), "16 passed, 0 failed, 0 not tested\n") {
		t.Errorf("got %v\n%s%s", err, out.String(), log.String())
	}
}

func TestWorkersThatDoNotConformFail(t *testing.T) {
	const hello = `echo '{"type": "hello", "version": 1, "handlers": [{"create": "a", "id": "conformance-ID"}]}'; `
	// answers reads lines, and answers each call.
	const answers = `read -r start; while read -r line; do id=$(expr "$line" : '.*"type":"call","id":"\([0-9]*\)"') && printf '{"type": "answer", "id": "%s", "answer": %s}\n' "$id" 'ANSWER'; done`
	for name, test := range map[string]struct{ id, answer, want string }{
		"another result":          {"echo", `{"result": 5}`, `FAILED      a result is returned, as the parameter that it was given: the result is 5, not "text"`},
		"an error for a result":   {"echo", `{"error": {"message": "no"}}`, `the error of the answer is "no"`},
		"the answer of others":    {"sleep", `{"result": 1}`, "has the answer 1"},
		"no patch":                {"patch", `{}`, "FAILED      a patch is returned"},
		"another delay":           {"temporary", `{"error": {"message": "later", "delay": 6}}`, "it must have a delay of 5"},
		"no error":                {"permanent", `{}`, "the answer has no error"},
		"a temporary error":       {"permanent", `{"error": {"message": "a", "delay": 1}}`, "it must be permanent"},
		"a permanent error":       {"error", `{"error": {"message": "a", "permanent": true}}`, "it must be neither permanent nor have a delay"},
		"no line":                 {"log", `{}`, "the lines are [], without hello, before the answer"},
		"other sub-handlers":      {"subhandlers", `{"subhandlers": [{"id": "c"}], "result": "c"}`, `the sub-handlers are ["c"], not a and b`},
		"no message to execute":   {"execute", `{"result": "executed"}`, "it has answered without a message of the type execute"},
		"an early answer":         {"finish", `{"error": {"message": "canceled"}}`, "it has answered before its work has ended"},
		"a daemon that has ended": {"daemon", `{"result": "early"}`, "the result is early, not stopped"},
		"no key":                  {"index", `{"index": []}`, "FAILED      an index has keys and values: the index is [], not "},
		"a small answer":          {"large", `{"result": "x"}`, "has 1 bytes"},
		"nonsense":                {"echo", `{"resutl": 5}`, "unknown word resutl: did you mean result?"},
	} {
		t.Run(name, func(t *testing.T) {
			script := strings.Replace(hello, "ID", test.id, 1) + strings.Replace(answers, "ANSWER", test.answer, 1)
			var out, log strings.Builder
			err := conformance.Run(t.Context(), []string{"sh", "-c", script}, &out, &log)
			if !errors.Is(err, conformance.ErrFailed) || !strings.Contains(out.String(), test.want) {
				t.Errorf("got %v, want %q\n%s%s", err, test.want, out.String(), log.String())
			}
		})
	}
}

func TestAProgramThatIsNoWorkerFails(t *testing.T) {
	for script, want := range map[string]string{
		"echo hello":                             "it has broken the protocol",
		"exit 3":                                 "exit status 3",
		`echo '{"type": "hello", "version": 7}'`: "the worker speaks version 7",
		`echo '{"type": "hello", "version": 1, "handlers": [{"craete": "a"}]}'; cat >/dev/null`: "did you mean create?",
	} {
		var out, log strings.Builder
		if err := conformance.Run(t.Context(), []string{"sh", "-c", script}, &out, &log); !errors.Is(err, conformance.ErrFailed) || !strings.Contains(out.String(), want) {
			t.Errorf("%s: got %v, want %q\n%s", script, err, want, out.String())
		}
	}
}
