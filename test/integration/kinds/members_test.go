package kinds

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-go/kopf/test/testenv"
)

// change is what another client does to a union in a child: it replaces the member that the function returns by
// the next one.
type change struct {
	// definition is that of the union, and way leads to it.
	definition string
	way        []any
	// ours and theirs are the fields of the two members.
	ours, theirs map[string]any
}

// changes returns the changes of all unions in a child. The pods of a Deployment stand for those of all kinds.
func (c *catalog) changes(child *specimen) (all []change) {
	g := &generator{catalog: c, kind: child.Kind, edited: true}
	c.eachUnion(child, shortName(child.definition), nil, c.schemas[child.definition], child.ours.Object, func(name string, way []any, s *spec.Schema, value map[string]any) {
		members := g.unions(name)
		at := slices.IndexFunc(members, func(member map[string]any) bool { return isMember(member, s, value) })
		if at < 0 {
			return
		}
		ch := change{definition: name, way: way, ours: map[string]any{}, theirs: map[string]any{}}
		for field := range members[at] {
			if our, has := value[field]; has {
				ch.ours[field] = our
			}
		}
		for field, values := range g.fieldsOf(members[(at+1)%len(members)], name, s) {
			ch.theirs[field] = values[0]
		}
		all = append(all, ch)
	})
	return all
}

// isMember reports whether a value has the fields of a member.
func isMember(member map[string]any, s *spec.Schema, value map[string]any) bool {
	if member[only] != nil {
		return false
	}
	for field, of := range member {
		_, exists := s.Properties[field]
		_, isRule := of.(*rule)
		now, has := value[field]
		if exists && (!has || of != generated && !isRule && !reflect.DeepEqual(of, now)) {
			return false
		}
	}
	return true
}

// eachUnion calls the function for each union in a child.
func (c *catalog) eachUnion(child *specimen, definition string, way []any, s *spec.Schema, value any, do func(name string, way []any, s *spec.Schema, value map[string]any)) {
	if name, resolved := c.resolve(s); name != "" {
		definition, s = name, resolved
	}
	if definition == "core.v1.PodSpec" && child.Kind != "Deployment" {
		return
	}
	switch value := value.(type) {
	case map[string]any:
		if len(s.Properties) > 0 && len(lookup(unions, child.Kind, definition)) > 1 {
			do(definition, way, s, value)
		}
		for _, field := range slices.Sorted(maps.Keys(value)) {
			c.eachUnion(child, definition, append(slices.Clip(way), field), c.field(s, field), value[field], do)
		}
	case []any:
		for i, item := range value {
			if s.Items != nil {
				c.eachUnion(child, definition, append(slices.Clip(way), i), s.Items.Schema, item, do)
			}
		}
	}
}

// switchMember replaces our member in an object by theirs. Beside sets both.
func (ch change) switchMember(content map[string]any, beside bool) {
	union, _ := at(content, ch.way).(map[string]any)
	for field := range ch.ours {
		if _, has := ch.theirs[field]; !has && !beside {
			delete(union, field)
		}
	}
	for field, value := range ch.theirs {
		if _, has := ch.ours[field]; !has || !beside {
			union[field] = runtime.DeepCopyJSONValue(value)
		}
	}
}

// overlaps reports whether a union is a part of the other one.
func (ch change) overlaps(other change) bool {
	n := min(len(ch.way), len(other.way))
	return reflect.DeepEqual(ch.way[:n], other.way[:n])
}

// isImmutable reports whether the API server lets no client change the members.
func (ch change) isImmutable(child *specimen) bool {
	var at string
	for _, step := range ch.way {
		if _, isIndex := step.(int); isIndex {
			step = "*"
		}
		at += fmt.Sprint(step, ".")
	}
	return slices.ContainsFunc(child.immutable(), func(path string) bool {
		for field := range ch.theirs {
			if strings.HasPrefix(at+field+".", path+".") {
				return true
			}
		}
		for field := range ch.ours {
			if strings.HasPrefix(at+field+".", path+".") {
				return true
			}
		}
		return false
	})
}

// accepts reports whether the API server accepts a child with changes.
func (s *sweep) accepts(child *specimen, beside bool, all ...change) bool {
	u := child.ours.DeepCopy()
	for _, ch := range all {
		ch.switchMember(u.Object, beside)
	}
	return cluster.Client().Create(s.t.Context(), u, client.DryRunAll) == nil
}

const (
	accepted = "the API server accepts both members"
	fixed    = "the API server lets nobody change it"
	variants = "it is no union: its members only have all fields together"
)

// exclusive returns the changes of a child of which the API server accepts each member, but not both.
func (s *sweep) exclusive(child *specimen) (all []change) {
	changes := slices.DeleteFunc(s.changes(child), func(ch change) bool { return ch.isImmutable(child) })
	found := make([]bool, len(changes))
	var group errgroup.Group
	group.SetLimit(8)
	for i, ch := range changes {
		group.Go(func() error {
			found[i] = s.accepts(child, false, ch) && !s.accepts(child, true, ch)
			return nil
		})
	}
	_ = group.Wait()
	for i, ch := range changes {
		if found[i] {
			all = append(all, ch)
		}
	}
	return all
}

// unblocked are the unions of which no other member keeps ours from being applied.
var unblocked = map[string]string{
	"ConfigMap":               fixed,
	"Container":               variants,
	"DaemonSetUpdateStrategy": accepted,
	"DeviceConstraint":        accepted,
	"DeviceRequest":           fixed,
	"PersistentVolumeSpec":    fixed,
	"PodSpec":                 variants,
	"Secret":                  fixed,
	"ServiceSpec":             variants,
	"VolumeAttachmentSource":  fixed,
	"rbac.v1.Subject":         accepted,
}

// atOnce is how many unions of a child another client changes at the same time.
const atOnce = 4

// Another client replaces members of unions. The API server then refuses what the function returns beside that, and the
// operator removes the other members, with one dry run for each of those that the refusal does not name.
func TestOtherMembersOfUnions(t *testing.T) {
	s := newSweep(t)
	all := s.split()
	defer s.clear()
	s.start()
	s.create()
	s.requests.Reset()
	s.each(func(child *specimen) error {
		return retry.RetryOnConflict(retry.DefaultRetry, func() (err error) {
			if child.edit, err = cluster.Current(child.ours)(); err != nil {
				return err
			}
			for _, ch := range all[child] {
				ch.switchMember(child.edit.Object, false)
			}
			return cluster.Client().Update(t.Context(), child.edit, client.FieldOwner("other"))
		})
	})
	s.expectRest()
	s.expectEach(s.expectOurMembers)
	tested, members := fields{}, 0
	for _, changes := range all {
		for _, ch := range changes {
			tested[ch.definition] = true
			members++
		}
	}
	tries := slices.DeleteFunc(s.requests.Requests(), func(r testenv.Request) bool { return !strings.Contains(r.URI, "dryRun") })
	t.Logf("%d members of %d unions in %d children, with %d dry runs", members, len(tested), len(s.children), len(tries))
	s.Expect(len(tries)).To(gomega.BeNumerically("<", members))
	s.expectTested(tested)
}

// expectTested expects that a member of each union was replaced, or that it is known why not.
func (s *sweep) expectTested(tested fields) {
	s.t.Helper()
	for name, members := range unions {
		isTested := false
		for definition := range tested {
			isTested = isTested || strings.HasSuffix("."+definition, "."+name)
		}
		if len(members) > 1 && isTested == (unblocked[name] != "") {
			s.t.Errorf("a member of %s was replaced: %t, although it is known: %q", name, isTested, unblocked[name])
		}
	}
}

// expectOurMembers expects that a child has the members that the function returns. What the other client has added
// besides may stay.
func (s *sweep) expectOurMembers(child *specimen) error {
	now, err := cluster.Current(child.ours)()
	if err != nil {
		return err
	}
	ours, before, theirs, after := s.wanted(child), s.leavesOf(child.kind, child.live), s.leavesOf(child.kind, child.edit), s.leavesOf(child.kind, now)
	all := maps.Clone(before)
	maps.Copy(all, after)
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		isAsBefore := reflect.DeepEqual(after[name], before[name])
		if !isAsBefore && (has(ours, name) || !reflect.DeepEqual(after[name], theirs[name])) {
			wrong = append(wrong, fmt.Sprintf("%s is %v, not %v", name, after[name], before[name]))
		}
	}
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "\n\t"))
	}
	return nil
}

// split replaces the children by copies in which another client can change a few unions each.
func (s *sweep) split() map[*specimen][]change {
	edits := map[*specimen][]change{}
	var all []*specimen
	for _, child := range s.children {
		rest := s.exclusive(child)
		for n := 0; len(rest) > 0; n++ {
			part := &specimen{kind: child.kind, ours: child.ours.DeepCopy()}
			if n > 0 {
				part.ours.SetName(fmt.Sprint(child.ours.GetName(), "-", n))
			}
			rest = slices.DeleteFunc(rest, func(ch change) bool {
				fits := len(edits[part]) < atOnce && !slices.ContainsFunc(edits[part], ch.overlaps) && s.accepts(child, false, append(slices.Clip(edits[part]), ch)...)
				if fits {
					edits[part] = append(edits[part], ch)
				}
				return fits
			})
			all = append(all, part)
		}
	}
	s.children = all
	return edits
}
