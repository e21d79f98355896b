package kubebuilder

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// apiVersion is the version of requests and answers.
const apiVersion = "v1alpha1"

// request is what kubebuilder asks.
type request struct {
	APIVersion string            `json:"apiVersion"`
	Args       []string          `json:"args"`
	Command    string            `json:"command"`
	Universe   map[string]string `json:"universe"` // the files of the project
	Config     config            `json:"config"`   // of the file PROJECT
}

// config is what the plugin reads in the file PROJECT.
type config struct {
	ProjectName string `json:"projectName"`
	Domain      string `json:"domain"`
	Repo        string `json:"repo"`
	MultiGroup  bool   `json:"multigroup"`
}

// answer is what the plugin answers. The names of the fields of flags are as kubebuilder has them.
type answer struct {
	APIVersion string            `json:"apiVersion"`
	Command    string            `json:"command"`
	Metadata   metadata          `json:"metadata"`
	Universe   map[string]string `json:"universe"` // the files that change
	Error      bool              `json:"error,omitempty"`
	ErrorMsgs  []string          `json:"errorMsgs,omitempty"`
	Flags      []flag            `json:"flags,omitempty"`
}

type metadata struct {
	Description string `json:"description"`
	Examples    string `json:"examples"`
}

type flag struct{ Name, Type, Default, Usage string }

// replaceFlag names a folder with the library.
const replaceFlag = "kopf-replace"

// Answer reads a request, and writes its answer. What is wrong with a project is in the answer; the error is about a
// request that cannot be read.
func Answer(in io.Reader, out io.Writer) error {
	var asked request
	if err := json.NewDecoder(in).Decode(&asked); err != nil {
		return fmt.Errorf("the standard input has no request of kubebuilder: %w", err)
	}
	answered := answer{APIVersion: apiVersion, Command: asked.Command, Universe: map[string]string{}}
	if err := answered.complete(&asked); err != nil {
		answered.Universe = map[string]string{}
		answered.Error = true
		answered.ErrorMsgs = []string{err.Error()}
	}
	return json.NewEncoder(out).Encode(answered)
}

// complete does what is asked.
func (a *answer) complete(asked *request) error {
	if asked.APIVersion != apiVersion {
		return fmt.Errorf("kubebuilder speaks the version %q of its protocol, and this plugin %s: use another version of kopf", asked.APIVersion, apiVersion)
	}
	p := &project{request: asked, changed: a.Universe}
	switch asked.Command {
	case "flags":
		a.Flags = []flag{{replaceFlag, "string", "", "the folder of a clone of " + library + ", which the project uses instead of a released version"}}
		return nil
	case "metadata":
		a.Metadata = metadata{
			Description: "Handlers in place of reconcilers: functions for creations, updates, and deletions, in internal/handlers.\n",
			Examples: "  kubebuilder init --plugins go/v4,kopf/v1 --domain example.com --repo example.com/shop\n" +
				"  kubebuilder create api --group shop --version v1 --kind Order --resource --controller=false\n",
		}
		return nil
	case "init", "edit":
		return p.wire()
	case "create api":
		return errors.Join(p.wire(), p.addKind())
	default:
		return nil // the other plugins do everything
	}
}
