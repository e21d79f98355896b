package shards

import (
	"fmt"
	"regexp"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/sharding"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// The server selects by its own code, which must agree with Of about every object.
func TestSelectorsSelectTheObjectsOfTheirShards(t *testing.T) {
	for _, d := range []Division{{Number: 1}, {Number: 3}, {Number: 16}, {Number: 100}, {Number: 3, ByNamespace: true}} {
		for range 200 {
			object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: uuid.NewUUID()}}
			of := d.Of("", object.UID)
			for shard := range d.Number {
				if got := selects(t, d, SetOf(shard), object); got != (shard == of) {
					t.Fatalf("%s: the selector of shard %d selects an object of shard %d: %t", d, shard, of, got)
				}
			}
		}
	}
}

func TestShardsHaveSimilarSizes(t *testing.T) {
	const objects = 16_000
	names := map[string]func(i int) (namespace string, uid types.UID){
		"uids":              func(int) (string, types.UID) { return "default", uuid.NewUUID() },
		"namespaces":        func(i int) (string, types.UID) { return fmt.Sprintf("team-%d", i), "" },
		"padded namespaces": func(i int) (string, types.UID) { return fmt.Sprintf("tenant-%06d", i), "" },
	}
	for name, of := range names {
		d := Division{Number: 16, ByNamespace: name != "uids"}
		var counts [16]int
		for i := range objects {
			counts[d.Of(of(i))]++
		}
		for shard, count := range counts {
			if count < 800 || count > 1200 {
				t.Errorf("%s: shard %d has %d of %d", name, shard, count, objects)
			}
		}
	}
}

var form = regexp.MustCompile(`^shardRange\(([a-z.]+), '(0x[0-9a-f]+)', '(0x[0-9a-f]+)'\)$`)

// selects parses the text of a selector as far as its form is known, and reports whether it selects an object.
func selects(t *testing.T, d Division, held Set, object *metav1.PartialObjectMetadata) bool {
	t.Helper()
	text := d.Selector(held, false)
	part := form.FindStringSubmatch(text)
	if part == nil {
		t.Fatal(text)
	}
	one := sharding.ShardRangeRequirement{Key: part[1], Start: part[2], End: part[3]}
	found, err := sharding.NewSelector(one).Matches(object)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return found
}

func TestSelectorsAreShort(t *testing.T) {
	tests := map[string]struct {
		held Set
		want string
	}{
		"one":  {SetOf(1), "shardRange(object.metadata.uid, '0x4000000000000000', '0x8000000000000000')"},
		"all":  {SetOf(0, 1, 2, 3), "shardRange(object.metadata.uid, '0x0000000000000000', '0x10000000000000000')"},
		"gaps": {SetOf(0, 2, 3), "shardRange(object.metadata.uid, '0x0000000000000000', '0x4000000000000000') || shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')"},
	}
	for name, test := range tests {
		if got := (Division{Number: 4}).Selector(test.held, true); got != test.want {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

func TestServersCannotSelectByNamespace(t *testing.T) {
	for _, d := range []Division{{}, {Number: 16, ByNamespace: true}} {
		if got := d.Selector(SetOf(1), true); got != "" {
			t.Errorf("%s: got %s", d, got)
		}
	}
}

func TestObjectsWithoutADivisionAreInShard0(t *testing.T) {
	if got := (Division{}).Of("ns", "uid"); got != 0 {
		t.Errorf("got %d", got)
	}
}

func TestNamespacesStayTogether(t *testing.T) {
	d := Division{Number: 16, ByNamespace: true}
	if d.Of("ns", "a") != d.Of("ns", "b") {
		t.Error("two objects of a namespace are in different shards")
	}
	if d.Of("", "e6d2cb26-9a3c-4d8e-8f4e-0a5f3f1d1c11") == d.Of("", "1b9f6f0e-52c5-4bb8-a8f8-6a0f9e0c7d42") {
		t.Error("objects without a namespace are not divided by their uid")
	}
}

func TestDivisionsHaveNames(t *testing.T) {
	for d, want := range map[Division]string{{}: "no shards", {Number: 16}: "16 shards by uid", {Number: 4, ByNamespace: true}: "4 shards by namespace"} {
		if got := d.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestSets(t *testing.T) {
	s := SetOf(7, 0, 2, 1)
	smaller := s.Without(1)
	if got := fmt.Sprint(s, " and ", smaller); got != "0-2, 7 and 0, 2, 7" {
		t.Errorf("got %s", got)
	}
	if s.Has(3) || !s.Has(7) || s.Has(100) || s.Len() != 4 || (Set{}).Has(0) || (Set{}).String() != "" {
		t.Errorf("got %v", s)
	}
	if both := s.And(SetOf(1, 5, 7)); !both.Equal(SetOf(1, 7)) {
		t.Errorf("got %s", both)
	}
	if !smaller.Equal(SetOf(7, 2, 0)) || smaller.Equal(s) || !(Set{}).Equal(SetOf(5).Without(5)) {
		t.Error("sets are not compared by their shards")
	}
}

func TestDivisionsAreReadAsTheyAreWritten(t *testing.T) {
	for _, d := range []Division{{Number: 1}, {Number: 16}, {Number: 256, ByNamespace: true}} {
		if got, ok := Parse(d.String()); !ok || got != d {
			t.Errorf("%s: got %v, %t", d, got, ok)
		}
	}
	for _, text := range []string{"", "no shards", "0 shards by uid", "-1 shards by uid", "16 shards by name", "16 shards by uid_b1a2", "99999999999999999999 shards by uid", "operator-5f_b1a2"} {
		if got, ok := Parse(text); ok {
			t.Errorf("%q: got %s", text, got)
		}
	}
}
