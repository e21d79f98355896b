package deployment

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kopf-go/kopf/internal/manifests"
	"github.com/kopf-go/kopf/pkg/rbac"
)

// Write writes the manifests to a folder: a kustomization for the cluster and one for a namespace, and the
// components that can be added to them. It replaces the files of an earlier call, and leaves others alone.
func (d *Deployment) Write(dir string) error {
	tree, err := d.tree(dir)
	if err != nil {
		return err
	}
	return write(dir, tree)
}

// write writes files to a folder.
func write(dir string, parts []part) error {
	for _, one := range parts {
		file := filepath.Join(dir, filepath.FromSlash(one.path))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // manifests are no secrets
			return err
		}
		if err := os.WriteFile(file, []byte(one.text), 0o644); err != nil { //nolint:gosec // manifests are no secrets
			return err
		}
	}
	return nil
}

// base returns the deployment without what is added by patches, and with the image by its name, so that kustomize
// can set another one.
func (d *Deployment) base() *Deployment {
	base := *d
	base.Namespaced = false
	base.Components = nil
	base.Image = d.Name
	return &base
}

// complete returns the deployment with all components that it can have.
func (d *Deployment) complete() *Deployment {
	complete := *d
	complete.Components = d.available()
	return &complete
}

// tree returns all files.
func (d *Deployment) tree(dir string) ([]part, error) {
	if err := d.checkNamespaces(); err != nil {
		return nil, err
	}
	var all []part
	var failed error
	// folder adds the files of a folder, and the kustomization that lists them.
	folder := func(name, comment, more string, inherited []string, parts []part, err error) {
		if failed == nil {
			failed = err
		}
		resources := slices.Clone(inherited)
		for _, one := range parts {
			resources = append(resources, path.Base(one.path))
		}
		all = append(all, parts...)
		all = append(all, part{name + "/kustomization.yaml", kustomization("Kustomization", comment, resources) + more})
	}
	account, err := d.accountParts()
	folder("rbac/base", "The service account, and the leases of the replicas.", "", nil, account, err)
	folder("rbac/cluster", "This is for an operator of all namespaces.", "", []string{"../base"}, d.operatorParts(false), nil)
	folder("rbac/namespaced", "This is for an operator of one namespace. For several namespaces, bind the role in each.", "",
		[]string{"../base"}, d.operatorParts(true), nil)
	users, err := d.userParts()
	if len(users) > 0 {
		folder("rbac/users", usersComment, "", nil, users, err)
	}
	manager, err := d.base().managerParts()
	folder("manager", "", d.images(), nil, manager, err)
	definitions, folders, err := d.definitionFiles(dir)
	if len(definitions) > 0 {
		folder("crd", "The definitions of the resources.", "", nil, definitions, err)
		folders = append([]string{"../crd"}, folders...)
	}
	for _, component := range d.available() {
		parts, err := d.complete().componentParts(component)
		if err != nil {
			return nil, err
		}
		all = append(all, parts...)
		all = append(all, part{component + "/kustomization.yaml", d.component(component, parts)})
	}
	board, err := files.ReadFile("templates/" + dashboard)
	if err != nil {
		return nil, err
	}
	all = append(all, part{"prometheus/" + dashboard, string(board)})
	namespace, err := d.fromTemplate("default/namespace.yaml", "namespace.yaml")
	if err != nil {
		return nil, err
	}
	all = append(all, namespace, part{"default/kustomization.yaml", d.defaults(folders, len(users) > 0)}, part{"namespaced/kustomization.yaml", d.namespaced()})
	return all, failed
}

// checkNamespaces returns an error if the deployment cannot have both forms: a kustomization and a release have one namespace.
func (d *Deployment) checkNamespaces() error {
	if err := d.checkOneNamespace("a kustomization or a chart"); err != nil {
		return err
	}
	if d.Namespaced {
		return errors.New("a kustomization and a chart have both forms: leave out --namespaced")
	}
	return nil
}

// checkOneNamespace returns an error if there are roles in several namespaces.
func (d *Deployment) checkOneNamespace(what string) error {
	for _, role := range slices.Concat(d.operatorRoles(d.Namespaced), d.leaseRoles(), d.webhookRoles(), d.pageRoles(d.Namespaced)) {
		if role.Namespace != "" && role.Namespace != d.Namespace {
			return fmt.Errorf("the settings of the program name the namespace %s, and %s is for %s alone: print the manifests instead", role.Namespace, what, d.Namespace)
		}
	}
	return nil
}

// kustomization returns the beginning of a kustomization.
func kustomization(kind, comment string, resources []string) string {
	var b strings.Builder
	version := "v1beta1"
	if kind == "Component" {
		version = "v1alpha1"
	}
	if comment != "" {
		b.WriteString(commented(comment))
	}
	fmt.Fprintf(&b, "apiVersion: kustomize.config.k8s.io/%s\nkind: %s\n", version, kind)
	if len(resources) > 0 {
		b.WriteString("resources:\n")
	}
	for _, resource := range resources {
		b.WriteString("  - " + resource + "\n")
	}
	return b.String()
}

// images returns the part of a kustomization that sets the image.
func (d *Deployment) images() string {
	name, digest, hasDigest := strings.Cut(d.Image, "@")
	tag := ""
	if at := strings.LastIndex(name, ":"); at > strings.LastIndex(name, "/") {
		name, tag = name[:at], name[at+1:]
	}
	text := "images:\n  - name: " + d.Name + "\n    newName: " + name + "\n"
	switch {
	case hasDigest:
		return text + "    digest: " + digest + "\n"
	case tag != "":
		return text + fmt.Sprintf("    newTag: %q\n", tag)
	default:
		return text
	}
}

// component returns the kustomization of a component: its files, and its patch of the deployment.
func (d *Deployment) component(name string, parts []part) string {
	var resources []string
	for _, one := range parts {
		resources = append(resources, path.Base(one.path))
	}
	text := kustomization("Component", d.purpose(name), resources)
	if additions := d.additionsOf(name); len(additions) > 0 {
		text += d.patch(additions)
	}
	if name == "certmanager" {
		text += d.withoutSecret()
	}
	if name == "prometheus" {
		text += "configMapGenerator:\n  - name: " + d.Name + "-dashboard\n    namespace: " + d.Namespace + "\n    files:\n      - kopf-operators.json=" + dashboard + "\n" +
			"    options:\n      disableNameSuffixHash: true\n      labels:\n        grafana_dashboard: \"1\"\n"
	}
	return text
}

// patch returns the part of a kustomization with additions to the deployment.
func (d *Deployment) patch(additions []addition) string {
	var b strings.Builder
	fmt.Fprintf(&b, "patches:\n  - target:\n      kind: Deployment\n      name: %s\n    patch: |\n", d.Name)
	for _, a := range additions {
		where := "containers/0/" + a.field
		switch a.field {
		case "args", "env", "ports":
			where += "/-"
		case "volumes":
			where = a.field
		}
		if a.why != "" {
			b.WriteString("      # " + a.why + "\n")
		}
		fmt.Fprintf(&b, "      - op: add\n        path: /spec/template/spec/%s\n        value: %s\n", where, a.value)
	}
	return b.String()
}

// withoutSecret returns patches that remove the role for a Secret with the certificate, which is not needed with one of
// cert-manager.
func (d *Deployment) withoutSecret() string {
	isForSecrets := func(role rbac.Role) bool {
		return !slices.ContainsFunc(role.Rules, func(rule rbac.Rule) bool { return !slices.Equal(rule.Resources, []string{"secrets"}) })
	}
	if !slices.ContainsFunc(d.webhookRoles(), isForSecrets) {
		return ""
	}
	text := "  # The operator keeps no certificate in a Secret.\n"
	for _, kind := range []string{"Role", "RoleBinding"} {
		text += fmt.Sprintf("  - patch: |\n      $patch: delete\n      apiVersion: rbac.authorization.k8s.io/v1\n      kind: %s\n"+
			"      metadata:\n        name: %s-webhook\n        namespace: %s\n", kind, d.Name, d.Namespace)
	}
	return text
}

// defaults returns the kustomization for the cluster.
func (d *Deployment) defaults(definitions []string, hasUsers bool) string {
	resources := append([]string{"namespace.yaml"}, definitions...)
	resources = append(resources, "../rbac/cluster")
	if hasUsers {
		resources = append(resources, "../rbac/users")
	}
	resources = append(resources, "../manager")
	comment := "The operator for all namespaces, made by the command manifests: make it again after a change of the\n" +
		"handlers, and put your own changes into another kustomization that has this one as a resource."
	text := kustomization("Kustomization", comment, resources)
	for _, problem := range d.Problems() {
		first, _, _ := strings.Cut(problem.Error(), "\n")
		text += rbac.Comment("Not derived: " + first)
	}
	text += "# Uncomment what you need: each folder says what it is for. prometheus needs metrics"
	if d.isCalled() {
		text += ", and certmanager\n# needs webhook"
	}
	text += ".\n"
	line := func(text string, isWanted bool) string {
		if isWanted {
			return text + "\n"
		}
		return "# " + text + "\n"
	}
	text += line("components:", len(d.Components) > 0)
	for _, name := range d.available() {
		text += line("  - ../"+name, d.Has(name))
	}
	return text
}

// namespaced returns the kustomization for one namespace.
func (d *Deployment) namespaced() string {
	comment := "The operator for the one namespace where it runs, which must exist: name it here. All objects are in\n" +
		"that namespace, so its administrator can apply them. The definitions must be installed."
	text := kustomization("Kustomization", comment, []string{"../rbac/namespaced", "../manager"})
	head, rest, _ := strings.Cut(text, "resources:\n")
	text = head + "namespace: my-team\nresources:\n" + rest
	if len(d.Components) > 0 {
		text += "components:\n"
	}
	for _, name := range d.available() {
		if d.Has(name) {
			text += "  - ../" + name + "\n"
		}
	}
	return text + d.patch(d.additionsOf("namespaced"))
}

// definitionFiles returns the files with definitions that are copied to the kustomization, and the folders in it that
// have others with a kustomization of their own.
func (d *Deployment) definitionFiles(dir string) (copied []part, folders []string, err error) {
	for _, path := range manifests.Files(d.Definitions) {
		inside, err := relative(dir, filepath.Dir(path))
		if err != nil {
			return nil, nil, err
		}
		if _, err := os.Stat(filepath.Join(filepath.Dir(path), "kustomization.yaml")); err == nil && inside != "" && inside != "crd" {
			if folder := "../" + inside; !slices.Contains(folders, folder) {
				folders = append(folders, folder)
			}
			continue
		}
		text, err := os.ReadFile(path) //nolint:gosec // named by the developer
		if err != nil {
			return nil, nil, err
		}
		copied = append(copied, part{"crd/" + filepath.Base(path), string(text)})
	}
	slices.SortFunc(copied, func(a, b part) int { return strings.Compare(a.path, b.path) })
	return copied, folders, nil
}

// relative returns the path of a folder in another one, or an empty text if it is outside.
func relative(dir, folder string) (string, error) {
	from, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	to, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	path, err := filepath.Rel(from, to)
	if err != nil || !filepath.IsLocal(path) || path == "." {
		return "", nil //nolint:nilerr // on another drive, it is outside
	}
	return filepath.ToSlash(path), nil
}
