package converge

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestDecisions(t *testing.T) {
	const owner, hash = "owner", "hash"
	a := applied{child: &child{}, content: map[string]any{"data": map[string]any{"a": "b"}}, hash: hash}
	live := func(change func(*fact)) *fact {
		f := &fact{uid: "1", version: "7", owner: owner, marks: marks{Wanted: hash}, digest: [hashSize]byte{1}}
		own(f, `{"f:data":{"f:a":{}}}`)
		if change != nil {
			change(f)
		}
		return f
	}
	for name, test := range map[string]struct {
		live, known *fact
		want        action
	}{
		"missing":                                 {nil, nil, create},
		"missing, although it was known":          {nil, live(nil), create},
		"as it was judged":                        {live(nil), live(nil), nothing},
		"not judged yet, and all fields are ours": {live(nil), nil, nothing},
		"not judged yet, and a field is not ours": {live(func(f *fact) { own(f, `{"f:data":{}}`) }), nil, nothing}, // all of data is
		"not judged yet, and no field is ours":    {live(func(f *fact) { own(f, `{"f:data":{"f:x":{}}}`) }), nil, restore},
		"not judged yet, and nothing was applied": {live(func(f *fact) { *f = fact{uid: "1", owner: owner, marks: f.marks} }), nil, restore},
		"not judged yet, and the field has no owner": {live(func(f *fact) {
			f.details.Store(&details{fields: []byte(`{"f:metadata":{}}`), unowned: []string{"data"}})
		}), nil, nothing},
		"something else is wanted":          {live(func(f *fact) { f.marks.Wanted = "other" }), live(nil), apply},
		"other fields are ours than before": {live(func(f *fact) { f.digest[0] = 2 }), live(nil), restore},
		"another object of the name":        {live(func(f *fact) { f.uid = types.UID("2") }), live(nil), restore},
		"being deleted":                     {live(func(f *fact) { f.deleting = true }), live(nil), wait},
		"of another owner":                  {live(func(f *fact) { f.owner = "other" }), nil, examine},
		"of another controller":             {live(func(f *fact) { f.controller = "other" }), live(nil), examine},
		"of no owner":                       {live(func(f *fact) { f.owner = "" }), live(nil), examine},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decide(a, owner, "parent", test.live, test.known); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

// own makes fields of a child the operator's.
func own(f *fact, fields string) { f.details.Store(&details{fields: []byte(fields)}) }
