package deployment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// entry is a line of the audit log, which has one for every request.
type entry struct {
	Verb       string `json:"verb"`
	RequestURI string `json:"requestURI"`
	User       struct {
		Username string `json:"username"`
	} `json:"user"`
	Object struct {
		Group       string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	Response struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Annotations map[string]string `json:"annotations"`
}

// String formats the request as one line.
func (e entry) String() string {
	return fmt.Sprint(e.Verb, " ", e.RequestURI, " ", e.Response.Code, " ", e.Annotations)
}

// permissions returns the permissions that the request needs. Applying an object also needs
// the permission to create it.
func (e entry) permissions() []permission {
	p := permission{e.Verb, e.Object.Group, e.Object.Resource, e.Object.Namespace, e.Object.Name}
	if e.Object.Subresource != "" {
		p.resource += "/" + e.Object.Subresource
	}
	all := []permission{p}
	if e.Verb == "patch" && e.Response.Code == http.StatusCreated {
		p.verb, p.name = "create", ""
		all = append(all, p)
	}
	return all
}

// journal reads the audit log.
type journal string

// flags returns the flags of an API server that writes an audit log.
func (j journal) flags(t *testing.T) map[string]string {
	t.Helper()
	policy, err := filepath.Abs("testdata/audit.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{"audit-policy-file": policy, "audit-log-path": string(j)}
}

// of returns the requests of a user so far.
func (j journal) of(t *testing.T, user string) (all []entry) {
	t.Helper()
	text, err := os.ReadFile(string(j))
	if err != nil {
		t.Fatal(err)
	}
	// The text after the last newline is still being written.
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	for line := range bytes.Lines(whole) {
		var one entry
		if err := json.Unmarshal(line, &one); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if one.User.Username == user {
			all = append(all, one)
		}
	}
	return all
}

// has returns a function that reports whether the user has made the request.
func (j journal) has(t *testing.T, user, verb, resource string) func() bool {
	return func() bool {
		for _, one := range j.of(t, user) {
			for _, p := range one.permissions() {
				if p.verb == verb && p.resource == resource {
					return true
				}
			}
		}
		return false
	}
}
