package release

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/pkg/model/selector"
	"github.com/kopf-go/kopf/pkg/storage"
)

func TestTheResourcesAreChosen(t *testing.T) {
	for name, test := range map[string]struct {
		all   bool
		kinds []string
		want  []string
		err   string
	}{
		"all":                          {true, nil, []string{"bares.example.com", "things.example.com"}, ""},
		"one":                          {false, []string{"thing"}, []string{"things.example.com"}, ""},
		"one with its group":           {false, []string{"bares.example.com"}, []string{"bares.example.com"}, ""},
		"one twice":                    {false, []string{"thing", "things"}, []string{"things.example.com"}, ""},
		"one without handlers":         {false, []string{"pods"}, nil, "declares no handlers for pods"},
		"one that is not served":       {false, []string{"thing", "nothings"}, nil, "nothings"},
		"one with only event handlers": {false, []string{"kopfpeerings"}, nil, "declares no handlers for kopfpeerings.kopf.dev"},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := newReleaser(t)
			r.Handlers = append(r.Handlers, &handler.Declaration{ID: "event", Kind: handler.OnEvent, Selector: selector.New("kopf.dev", "v1", "kopfpeerings")})
			r.resources, r.All, r.Kinds = nil, test.all, test.kinds
			if err := r.choose(); (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Fatalf("got %v, want %q", err, test.err)
			}
			var got []string
			for _, found := range r.resources {
				got = append(got, resourceName(found))
			}
			slices.Sort(got)
			if test.err == "" && !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// A release that leaves out the resources of a group that is down would say that nothing is left.
func TestNothingIsReleasedWhileItIsUnknownWhatThereIs(t *testing.T) {
	r, _ := newReleaser(t)
	r.served.Resources = slices.DeleteFunc(r.served.Resources, func(one selector.Resource) bool { return one.Group == things.Group })
	r.served.Failed = map[schema.GroupVersion]error{{Group: things.Group, Version: "v1"}: errors.New("no endpoints")}
	r.resources, r.All = nil, true
	if err := r.choose(); err == nil || !strings.Contains(err.Error(), "no endpoints") {
		t.Errorf("got %v", err)
	}
	r.served.Failed = map[schema.GroupVersion]error{{Group: "other.example.com", Version: "v1"}: errors.New("no endpoints")}
	if err := r.choose(); err != nil {
		t.Errorf("another group: %v", err)
	}
}

func TestPrefixesReplaceTheStorages(t *testing.T) {
	r, _ := newReleaser(t)
	r.Prefixes = []string{"a.example.com", "b.example.com"}
	if err := r.usePrefixes(); err != nil {
		t.Fatal(err)
	}
	bases, ok := r.Settings.Persistence.DiffBase.(storage.MultiDiffBase)
	if !ok || len(bases) != 2 {
		t.Errorf("got %#v", r.Settings.Persistence.DiffBase)
	}
	got, err := r.finder(r.resources[0]).find(t.Context(), parse(t, things, "one", `{"metadata":{"annotations":{`+base+`,"b.example.com/last-handled-configuration":"{}"}}}`))
	if want := `{"metadata":{"annotations":{"b.example.com/last-handled-configuration":null}}}`; err != nil || text(t, got.patch) != want {
		t.Errorf("got %+v, %v", got, err)
	}
	r.Prefixes = []string{"A B"}
	if err := r.usePrefixes(); err == nil || !strings.Contains(err.Error(), `"A B"`) {
		t.Errorf("got %v", err)
	}
}

// What a release leaves depends on the handlers.
func TestWhatIsLeft(t *testing.T) {
	r, client := newReleaser(t)
	objects, none := &Report{Resources: []ResourceReport{{Objects: 1}}}, &Report{Resources: []ResourceReport{{}}}
	if got := r.left(objects); len(got) != 2 || !strings.HasPrefix(got[0], "The results of handlers") || !strings.HasPrefix(got[1], "Objects that handlers have created.") {
		t.Errorf("got %q", got)
	}
	if got := r.left(none); len(got) != 0 {
		t.Errorf("got %q, although there are no objects", got)
	}
	r.Settings.Peering.Name = "mine"
	for _, obj := range []*unstructured.Unstructured{parse(t, leases, "kopf-operator", "{}"), parse(t, clusterPeerings, "mine", "{}")} {
		if err := client.Tracker().Add(obj); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.checkStopped(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{"The lease default/kopf-operator, which has the default name, so others can use it, too.", "The ClusterKopfPeering mine."}
	if got := r.left(none); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, kind := range []handler.Kind{handler.Conditions, handler.OnValidate} {
		r.Handlers = append(r.Handlers, &handler.Declaration{ID: string(kind), Kind: kind})
	}
	r.Settings.Persistence.Progress = ownProgress{}
	got := strings.Join(r.left(objects), "\n")
	for _, want := range []string{"Webhook configurations", "The conditions in the status", "What the storage release.ownProgress has stored"} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want %q", got, want)
		}
	}
}

// ownProgress is a storage of a user that can remove nothing.
type ownProgress struct{ storage.Progress }
