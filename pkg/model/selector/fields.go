package selector

import (
	"errors"
	"strings"
)

// namedField is a field that is set.
type namedField struct {
	label string
	by    criterion
	name  string
}

// givenNames returns the names that are set. Exactly one is valid.
func (f Fields) givenNames() []namedField {
	all := []namedField{
		{"kind", kind, f.Kind},
		{"plural", plural, f.Plural},
		{"singular", singular, f.Singular},
		{"shortName", shortName, f.ShortName},
		{"category", category, f.Category},
	}
	var some []namedField
	for _, g := range all {
		if g.name != "" {
			some = append(some, g)
		}
	}
	return some
}

func (f Fields) criterion() (criterion, string, error) {
	names := f.givenNames()
	switch len(names) {
	case 1:
		return names[0].by, names[0].name, nil
	case 0:
		return nothing, "", errors.New("it has no name: " +
			"set the kind, the plural, or another name, or use kopf.Resource(group, kopf.Everything) for all resources of a group")
	default:
		return nothing, "", errors.New("it has several names: set only one of them, because the others follow from it")
	}
}

// text formats the fields that are set: "kind=Deployment,group=apps".
func (f Fields) text() string {
	var parts []string
	for _, g := range append(f.givenNames(), namedField{label: "version", name: f.Version}, namedField{label: "group", name: f.Group}) {
		if g.name != "" {
			parts = append(parts, g.label+"="+g.name)
		}
	}
	return strings.Join(parts, ",")
}
