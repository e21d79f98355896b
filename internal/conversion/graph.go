package conversion

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Graph has the conversions of one resource. It does not change after it is made.
type Graph struct {
	Name  string // of the definition: "kopfexamples.kopf.dev"
	Group string
	Kind  string
	steps Set // at most one for each pair of versions
}

// add adds a conversion. It returns an error if there is another one for the same versions.
func (g *Graph) add(d *Declaration) error {
	i := slices.IndexFunc(g.steps, func(other *Declaration) bool { return other.From == d.From && other.To == d.To })
	if i >= 0 {
		return fmt.Errorf("%s: %s is already declared at %s: remove one of the two", d.DeclaredAt, d, g.steps[i].DeclaredAt)
	}
	g.steps = append(g.steps, d)
	return nil
}

// Versions returns the versions that the declarations name, in their order.
func (g *Graph) Versions() []string {
	var versions []string
	for _, d := range g.steps {
		for _, version := range []string{d.From, d.To} {
			if !slices.Contains(versions, version) {
				versions = append(versions, version)
			}
		}
	}
	return versions
}

// Pairs calls a function with each pair of versions between which the declarations lead.
func (g *Graph) Pairs(call func(from, to string)) {
	for _, from := range g.Versions() {
		for _, to := range g.Versions() {
			if _, found := g.way(from, to); found && from != to {
				call(from, to)
			}
		}
	}
}

// check returns the mistakes that are certain without the definition. Objects of a version that
// nothing leads from cannot be stored, unless the version is the stored one, and then they cannot be
// read in another one. Of versions that nothing connects, one is neither the stored version nor
// leads to it.
func (g *Graph) check() error {
	versions := g.Versions()
	var problems []error
	for _, version := range versions {
		isFrom := func(d *Declaration) bool { return d.From == version }
		if slices.ContainsFunc(g.steps, isFrom) {
			continue
		}
		to := g.steps[slices.IndexFunc(g.steps, func(d *Declaration) bool { return d.To == version })]
		problems = append(problems, fmt.Errorf("%s: %s is converted from %s to %s, and from %s to no version: declare kopf.OnConvert from %q to %q, too",
			to.DeclaredAt, g.Name, to.From, to.To, version, version, to.From))
	}
	if len(problems) > 0 {
		return errors.Join(problems...)
	}
	connected := []string{versions[0]}
	for range versions {
		for _, d := range g.steps {
			if slices.Contains(connected, d.From) != slices.Contains(connected, d.To) {
				connected = append(connected, d.From, d.To)
			}
		}
	}
	for _, d := range g.steps {
		if !slices.Contains(connected, d.From) {
			return fmt.Errorf("%s: %s has no conversion between the versions %s and %s, in either direction: declare kopf.OnConvert from one of %s to one of %s, and back",
				d.DeclaredAt, g.Name, versions[0], d.From, versions[0], d.From)
		}
	}
	return nil
}

// Path returns the conversions that lead from one version to another: as few as possible, and the
// first declared ones of several ways.
func (g *Graph) Path(from, to string) (Set, error) {
	if way, found := g.way(from, to); found {
		return way, nil
	}
	return nil, g.noWay(from, to)
}

func (g *Graph) way(from, to string) (way Set, found bool) {
	ways := map[string]Set{from: {}}
	for next := []string{from}; len(next) > 0; next = next[1:] {
		at := next[0]
		if at == to {
			return ways[to], true
		}
		for _, d := range g.steps {
			if _, known := ways[d.To]; d.From == at && !known {
				ways[d.To] = append(slices.Clone(ways[at]), d)
				next = append(next, d.To)
			}
		}
	}
	return nil, false
}

// noWay says which declarations would lead from one version to another.
func (g *Graph) noWay(from, to string) error {
	var leading []string // versions that lead to the wanted one
	for _, version := range g.Versions() {
		if version == from || version == to {
			continue
		}
		if _, found := g.way(version, to); found {
			leading = append(leading, version)
		}
	}
	text := fmt.Sprintf("no conversion leads from %s to %s: declare kopf.OnConvert from %q to %q", from, to, from, to)
	if len(leading) > 0 {
		text += ", or to a version that leads there: " + strings.Join(leading, ", ")
	}
	return errors.New(text)
}

// Missing returns an error that names the conversions that the API server can ask for, and to which
// nothing leads: from all versions in which objects are stored or served to those in which they are
// stored or served from now on.
func (g *Graph) Missing(u Usage) error {
	var problems []error
	for _, from := range u.All() {
		for _, to := range u.Targets() {
			if _, err := g.Path(from, to); err != nil {
				problems = append(problems, err)
			}
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %w", g.Name, errors.Join(problems...))
}

// Usage says what the versions of a definition are used for.
type Usage struct {
	Served  []string
	Storage string   // new objects are stored in it
	Stored  []string // objects can be stored in them
}

// Targets returns the versions to which the API server converts objects: those that clients ask for, and the
// storage version.
func (u Usage) Targets() []string {
	if slices.Contains(u.Served, u.Storage) || u.Storage == "" {
		return u.Served
	}
	return append(slices.Clone(u.Served), u.Storage)
}

// All returns the versions in which objects can be.
func (u Usage) All() []string {
	all := u.Targets()
	for _, version := range u.Stored {
		if !slices.Contains(all, version) {
			all = append(slices.Clone(all), version)
		}
	}
	return all
}
