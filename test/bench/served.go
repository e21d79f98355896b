package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/kopf-go/kopf/pkg/kopf"
	"github.com/kopf-go/kopf/pkg/serve"
	"github.com/kopf-go/kopf/pkg/serve/protocol"
)

// servedOperator is the operator of kopf serve, with the same handlers as a worker or as programs. Those are this program, too,
// which answers at once: what is measured is what it costs to call them.
type servedOperator struct{ word string } // of the file: worker or run

// answersVariable makes this program a worker, or the program of one call.
const answersVariable = "KOPF_BENCH_ANSWERS"

func (s servedOperator) run(ctx context.Context, env environment) (err error) {
	dir, err := os.MkdirTemp("", "kopf-bench-serve-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "operator.json")
	if err := s.writeFile(file); err != nil {
		return err
	}
	program, err := serve.Load(ctx, serve.Options{Files: []string{file}, Logger: env.logger})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, program.Close()) }()
	if s.word == "run" {
		env.measure(&familyProcess{})
	}
	registry := kopf.NewRegistry()
	program.Declare(registry)
	return operateKopf(ctx, env, registry, quietly)
}

// writeFile writes the file that declares the handlers.
func (s servedOperator) writeFile(path string) error {
	executable, err := os.Executable()
	if err != nil {
		return err
	}
	type m = map[string]any
	variables := m{answersVariable: s.word}
	var handlers []m
	for _, kind := range []string{"create", "update", "delete"} {
		handler := m{kind: "kopfexamples", "id": "apply"}
		if kind == "delete" {
			handler["id"] = "remove"
		}
		if s.word == "worker" {
			handler["worker"] = "answers"
		} else {
			handler["run"], handler["variables"] = []string{executable}, variables
		}
		handlers = append(handlers, handler)
	}
	content := m{"kopf": "v1", "handlers": handlers}
	if s.word == "worker" {
		content["workers"] = m{"answers": m{"command": []string{executable}, "variables": variables}}
	}
	text, err := json.Marshal(content)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// beHandlers is the main function of a worker, and of the program of one call.
func beHandlers(word string) int {
	if err := answerCalls(word, os.Stdin, os.Stdout); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "the handlers:", err)
		return 1
	}
	return 0
}

func answerCalls(word string, in io.Reader, out io.Writer) error {
	answers := json.NewEncoder(out)
	if word == "run" {
		var call protocol.Call
		if err := json.NewDecoder(in).Decode(&call); err != nil {
			return err
		}
		return answers.Encode(answerTo(&call))
	}
	calls := json.NewDecoder(bufio.NewReader(in))
	for {
		var message struct {
			Type, ID string
			Call     protocol.Call
		}
		switch err := calls.Decode(&message); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		reply := map[string]any{}
		switch message.Type {
		case "start":
			reply["type"], reply["version"] = "hello", protocol.Version
		case "call":
			reply["type"], reply["id"], reply["answer"] = "answer", message.ID, answerTo(&message.Call)
		default: // a cancellation: the answer is on its way
			continue
		}
		if err := answers.Encode(reply); err != nil {
			return err
		}
	}
}

// answerTo returns what the handlers in Go do.
func answerTo(call *protocol.Call) map[string]any {
	var object struct{ Spec ExampleSpec }
	if call.Handler == "remove" || json.Unmarshal(call.Object, &object) != nil {
		return map[string]any{}
	}
	return map[string]any{"result": outcome(object.Spec)}
}

// familyProcess is the meter of this process and of the processes that it has waited for.
type familyProcess struct{ ownProcess }

func (f *familyProcess) measure(s *sample) error {
	spent, err := childrenTime()
	if err != nil {
		return err
	}
	err = f.ownProcess.measure(s)
	s.CPU += spent
	return err
}
