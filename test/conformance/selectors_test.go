package conformance

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/kopf-go/kopf/pkg/model/selector"
)

// selectorsFile contains the resources of a cluster in addition to the vectors.
type selectorsFile struct {
	Resources []struct {
		Group      string   `json:"group"`
		Version    string   `json:"version"`
		Plural     string   `json:"plural"`
		Kind       string   `json:"kind"`
		Singular   string   `json:"singular"`
		Shortcuts  []string `json:"shortcuts"`
		Categories []string `json:"categories"`
		Namespaced bool     `json:"namespaced"`
		Preferred  *bool    `json:"preferred"` // true if absent
	} `json:"resources"`
	Vectors []vector[selectorInput, selectorExpect] `json:"vectors"`
}

type selectorInput struct {
	Args   []string          `json:"args"`
	Kwargs map[string]string `json:"kwargs"`
}

type selectorExpect struct {
	Error    bool     `json:"error"`
	Selected []string `json:"selected"`
	Specific bool     `json:"specific"`
}

func TestSelectors(t *testing.T) {
	var file selectorsFile
	loadFile(t, "selectors", &file)
	if len(file.Vectors) == 0 || len(file.Resources) == 0 {
		t.Fatal("there are no vectors of selectors")
	}
	resources := file.cluster()
	for _, v := range file.Vectors {
		name := v.Input.name()
		t.Run(name, func(t *testing.T) {
			if excepted(t, "selectors", name) {
				return
			}
			s, err := v.Input.selector()
			if (err != nil) != v.Expect.Error {
				t.Fatalf("got the error %v, want one: %v", err, v.Expect.Error)
			}
			if err == nil {
				compareSelected(t, s, resources, v.Expect)
			}
		})
	}
}

func compareSelected(t *testing.T, s selector.Selector, resources []selector.Resource, want selectorExpect) {
	t.Helper()
	var selected []string
	for _, r := range s.Select(resources) {
		selected = append(selected, r.String())
	}
	slices.Sort(selected)
	if !slices.Equal(selected, want.Selected) {
		t.Errorf("selected %v, want %v", selected, want.Selected)
	}
	if s.Specific() != want.Specific {
		t.Errorf("specific is %v, want %v", s.Specific(), want.Specific)
	}
}

func (f selectorsFile) cluster() []selector.Resource {
	var resources []selector.Resource
	for _, r := range f.Resources {
		resources = append(resources, selector.Resource{
			Group: r.Group, Version: r.Version, Plural: r.Plural, Kind: r.Kind, Singular: r.Singular,
			ShortNames: r.Shortcuts, Categories: r.Categories,
			Namespaced: r.Namespaced, Preferred: r.Preferred == nil || *r.Preferred,
		})
	}
	return resources
}

// name returns a name for a vector, because these vectors have none.
func (i selectorInput) name() string {
	text, _ := json.Marshal(i)
	return string(text)
}

// selector builds the selector of the vector. Mixing positional and named parts does not even
// compile here, unlike in Kopf.
func (i selectorInput) selector() (selector.Selector, error) {
	var s selector.Selector
	switch {
	case len(i.Args) > 0 && len(i.Kwargs) > 0:
		return s, errors.New("New takes no fields, and Of no parts")
	case len(i.Args) > 0:
		s = selector.New(i.parts()...)
	default:
		s = selector.By(selector.Fields{
			Group: i.group(), Version: i.Kwargs["version"],
			Kind: i.Kwargs["kind"], Plural: i.Kwargs["plural"], Singular: i.Kwargs["singular"],
			ShortName: i.Kwargs["shortcut"], Category: i.Kwargs["category"],
		})
	}
	return s, s.Err()
}

// group distinguishes the core group from an absent group.
func (i selectorInput) group() string {
	if group, given := i.Kwargs["group"]; given && group == "" {
		return selector.Core
	}
	return i.Kwargs["group"]
}

// parts replaces the vectors' word for the marker.
func (i selectorInput) parts() []string {
	parts := slices.Clone(i.Args)
	for n, part := range parts {
		if part == "*EVERYTHING*" {
			parts[n] = selector.Everything
		}
	}
	return parts
}
