package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kopf-go/kopf/hack/envtest/assets"
	"github.com/kopf-go/kopf/pkg/rbac"
)

// Entry is a line of the audit log, which has one for every request.
type Entry struct {
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
func (e Entry) String() string {
	return fmt.Sprint(e.User.Username, " ", e.Verb, " ", e.RequestURI, " ", e.Response.Code, " ", e.Annotations)
}

// Permissions returns the permissions that the request needs. Applying an object also needs
// the permission to create it.
func (e Entry) Permissions() []rbac.Permission {
	p := rbac.Permission{Verb: e.Verb, Group: e.Object.Group, Resource: e.Object.Resource, Namespace: e.Object.Namespace, Name: e.Object.Name}
	if e.Object.Subresource != "" {
		p.Resource += "/" + e.Object.Subresource
	}
	all := []rbac.Permission{p}
	if e.Verb == "patch" && e.Response.Code == http.StatusCreated {
		p.Verb, p.Name = "create", ""
		all = append(all, p)
	}
	return all
}

// isRefused reports whether the user lacks a permission, or is unknown. Quotas, policies, and
// webhooks refuse requests, too.
func (e Entry) isRefused() bool {
	return e.Response.Code == http.StatusUnauthorized || e.Annotations["authorization.k8s.io/decision"] == "forbid"
}

// Refused returns the requests that were refused for lack of a permission.
func Refused(requests []Entry) []Entry {
	return slices.DeleteFunc(slices.Clone(requests), func(e Entry) bool { return !e.isRefused() })
}

// Log is the path of an audit log.
type Log string

// Flags returns the flags of an API server that writes the requests of service accounts to the log.
func (l Log) Flags() (map[string]string, error) {
	root, err := assets.Root()
	return map[string]string{"audit-policy-file": filepath.Join(root, "test", "audit", "policy.yaml"), "audit-log-path": string(l)}, err
}

// All returns the requests so far.
func (l Log) All() (all []Entry, err error) {
	text, err := os.ReadFile(string(l))
	if err != nil {
		return nil, err
	}
	// The text after the last newline is still being written.
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	for line := range bytes.Lines(whole) {
		var one Entry
		if err := json.Unmarshal(line, &one); err != nil {
			return nil, fmt.Errorf("%s: %w", line, err)
		}
		all = append(all, one)
	}
	return all, nil
}

// Of returns the requests of a user so far.
func (l Log) Of(t testing.TB, user string) []Entry {
	t.Helper()
	all, err := l.All()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(e Entry) bool { return e.User.Username != user })
}

// Has returns a function that reports whether the user has made the request.
func (l Log) Has(t testing.TB, user, verb, resource string) func() bool {
	return func() bool {
		return slices.ContainsFunc(l.Of(t, user), func(e Entry) bool {
			return slices.ContainsFunc(e.Permissions(), func(p rbac.Permission) bool { return p.Verb == verb && p.Resource == resource })
		})
	}
}
