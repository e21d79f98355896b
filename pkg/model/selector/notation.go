package selector

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var (
	versionLike  = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?$`)
	validName    = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?$`)
	validVersion = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	validGroup   = regexp.MustCompile(`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`)
)

// notation contains the parsed parts of a selector.
type notation struct {
	grouped bool // false for any group
	group   string
	version string // empty for the preferred version
	name    string
}

func parse(parts []string) (notation, error) {
	switch len(parts) {
	case 1:
		return parseDotted(parts[0])
	case 2:
		return parsePair(parts[0], parts[1])
	case 3:
		return parseTriple(parts[0], parts[1], parts[2])
	case 0:
		return notation{}, errors.New("it is empty: specify the name of the resource")
	default:
		return notation{}, fmt.Errorf("it has %d parts: specify at most the group, the version, and the name", len(parts))
	}
}

// parseDotted parses the name with an optional version and group. A part that looks like a
// version is one, because no group begins like this.
func parseDotted(text string) (notation, error) {
	if strings.Contains(text, "/") {
		return notation{}, errors.New("it is a single part with slashes: " +
			`write kopf.Resource("kopf.dev/v1", "kopfexamples"), or kopf.Resource("kopfexamples.v1.kopf.dev")`)
	}
	name, rest, more := strings.Cut(text, ".")
	version, group, grouped := strings.Cut(rest, ".")
	if !versionLike.MatchString(version) {
		version = ""
		group = rest
		grouped = more
	}
	return notation{grouped: grouped, group: group, version: version, name: name}.normalized(), nil
}

// parsePair parses the API and the name. A single word before the name is a group, except
// for "v1", the version of the core group.
func parsePair(api, name string) (notation, error) {
	group, version, both := cutLast(api, "/")
	switch {
	case both:
		return parseTriple(group, version, name)
	case api == "v1":
		return parseTriple(Core, api, name)
	case versionLike.MatchString(api):
		return notation{}, fmt.Errorf("%q is a version without a group: write %q", api, "the.group/"+api)
	default:
		return notation{grouped: true, group: api, name: name}.normalized(), nil
	}
}

func parseTriple(group, version, name string) (notation, error) {
	if version == "" {
		return notation{}, errors.New("the version is empty: leave it out to use the preferred version")
	}
	return notation{grouped: true, group: group, version: version, name: name}.normalized(), nil
}

func (n notation) normalized() notation {
	if n.group == Core {
		n.group = ""
	}
	return n
}

// validate rejects parts that no cluster can have, so that a typing mistake is not
// mistaken for a resource that is not installed yet.
func (n notation) validate() error {
	switch {
	case n.name == "":
		return errors.New("the name is empty")
	case n.name != Everything && !validName.MatchString(n.name):
		return nameError(n.name)
	case n.version != "" && !validVersion.MatchString(n.version):
		return fmt.Errorf("%q cannot be a version: versions look like v1 or v1beta1", n.version)
	case n.group != "" && !validGroup.MatchString(n.group):
		return fmt.Errorf("%q cannot be a group: groups look like apps or kopf.dev", n.group)
	}
	return nil
}

// nameError returns an error for a name that no resource can have.
func nameError(name string) error {
	switch {
	case strings.Contains(name, "/"):
		return fmt.Errorf("%q has a slash: subresources have no handlers: name the resource itself", name)
	case strings.Contains(name, "."):
		return fmt.Errorf("%q has a dot: specify the group either in the name or separately", name)
	case strings.ContainsAny(name, "*?, |"):
		return fmt.Errorf("%q is a pattern or a list: declare the handler once for every resource, or use kopf.Everything or selector.Func", name)
	default:
		return fmt.Errorf("%q cannot be a name: names consist of letters, digits, and dashes", name)
	}
}

// cutLast is like strings.Cut, but cuts at the last separator.
func cutLast(text, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(text, separator); i >= 0 {
		return text[:i], text[i+len(separator):], true
	}
	return text, "", false
}
