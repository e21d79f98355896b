package rbac

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Account is a service account to which roles are bound. Without a name, no bindings are printed.
type Account struct{ Namespace, Name string }

// YAML returns the manifests of roles, with the reason of every rule as a comment, and bindings
// for the account. All have the name.
func YAML(name string, all []Role, account Account) string {
	var b strings.Builder
	for i, role := range all {
		if i > 0 {
			b.WriteString("---\n")
		}
		kind := "ClusterRole"
		meta := "metadata:\n  name: " + name + "\n"
		if role.Namespace != "" {
			kind = "Role"
			meta = meta + "  namespace: " + role.Namespace + "\n"
		}
		fmt.Fprintf(&b, "apiVersion: rbac.authorization.k8s.io/v1\nkind: %s\n%srules:\n", kind, meta)
		for _, rule := range role.Rules {
			b.WriteString(rule.YAML())
		}
		if account.Name != "" {
			fmt.Fprintf(&b, "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: %sBinding\n%sroleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: %s\n  name: %s\n"+
				"subjects:\n  - kind: ServiceAccount\n    name: %s\n    namespace: %s\n", kind, meta, kind, name, account.Name, account.Namespace)
		}
	}
	return b.String()
}

// YAML returns the rule as an item of the rules of a role, indented by two spaces.
func (r Rule) YAML() string {
	var b strings.Builder
	for _, line := range wrapped(r.Reason) {
		b.WriteString("  # " + line + "\n")
	}
	group := r.Group
	if group == "" {
		group = `""`
	}
	fmt.Fprintf(&b, "  - apiGroups: [%s]\n    resources: [%s]\n", group, strings.Join(r.Resources, ", "))
	if len(r.Names) > 0 {
		fmt.Fprintf(&b, "    resourceNames: [%s]\n", strings.Join(r.Names, ", "))
	}
	fmt.Fprintf(&b, "    verbs: [%s]\n", strings.Join(r.Verbs, ", "))
	return b.String()
}

// wrapped divides a text into lines.
func wrapped(text string) (lines []string) {
	const width = 92
	for word := range strings.FieldsSeq(text) {
		if last := len(lines) - 1; last >= 0 && len(lines[last])+len(word) < width {
			lines[last] += " " + word
			continue
		}
		lines = append(lines, word)
	}
	return lines
}

// Comment returns a text as lines of comments.
func Comment(text string) string {
	var b strings.Builder
	for i, line := range wrapped(text) {
		b.WriteString([]string{"# ", "#   "}[min(i, 1)] + line + "\n")
	}
	return b.String()
}

// Line returns the rule in one line, as an item of the rules of a role.
func (r Rule) Line() string {
	group := r.Group
	if group == "" {
		group = `""`
	}
	names := ""
	if len(r.Names) > 0 {
		names = ", resourceNames: [" + strings.Join(r.Names, ", ") + "]"
	}
	return fmt.Sprintf("- {apiGroups: [%s], resources: [%s]%s, verbs: [%s]}", group, strings.Join(r.Resources, ", "), names, strings.Join(r.Verbs, ", "))
}

// Text returns the derived roles as manifests, with their date, and with what could not be
// derived. The time is that of the snapshot of discovery.
func Text(in Input, account Account, at time.Time) string {
	roles, problems := Derive(in)
	var b strings.Builder
	fmt.Fprintf(&b, "# Derived from the handlers and the settings, and from the resources that the cluster served at\n# %s. Print it again after a change of them.\n", at.UTC().Format(time.RFC3339))
	for gv := range in.Snapshot.Failed {
		problems = append(problems, fmt.Errorf("the resources of %s are unknown now, because the API server does not serve them", gv))
	}
	slices.SortFunc(problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	for _, problem := range problems {
		text, code, _ := strings.Cut(problem.Error(), "\n")
		b.WriteString("#\n" + Comment("Not derived: "+text))
		for line := range strings.Lines(code) { // not wrapped, to be copied
			b.WriteString("#     " + strings.TrimSuffix(line, "\n") + "\n")
		}
	}
	return b.String() + YAML(nameOf(in, account), roles, account)
}

// nameOf returns the name of the roles. Two operators in a cluster need two names.
func nameOf(in Input, account Account) string {
	return cmp.Or(in.Settings.Name, account.Name, "operator")
}
