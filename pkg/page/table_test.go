package page

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/inspect"
)

func TestRowsFollowTheObjects(t *testing.T) {
	g := gomega.NewWithT(t)
	path, object := example("", "{}")
	api := newAPI(t, map[string]string{path: object})
	p := newPage(t, api, nil)
	g.Consistently(api.openWatches, 50*time.Millisecond).Should(gomega.Equal(0), "nobody looks")
	show := func() string { return ask(p, "GET", "/objects?resource=kopfexamples.kopf.dev", nil).Body.String() }
	g.Expect(show()).To(gomega.ContainSubstring(`<span class="state busy">due</span>`))
	g.Eventually(api.openWatches).Should(gomega.Equal(2))

	_, handled := example(`"kopf.zalando.org/last-handled-configuration":"{\"spec\":{}}"`, "{}")
	api.events <- fmt.Sprintf(`{"type":"MODIFIED","object":%s}`+"\n", strings.Replace(handled, `"5"`, `"10"`, 1))
	g.Eventually(show).Should(gomega.ContainSubstring(`<span class="state good">handled</span>`))
	api.events <- fmt.Sprintf(`{"type":"DELETED","object":%s}`+"\n", strings.Replace(handled, `"5"`, `"11"`, 1))
	g.Eventually(show).Should(gomega.ContainSubstring("0 objects"))
	p.Close()
	g.Eventually(api.openWatches).Should(gomega.Equal(0))
	_, tables := p.resources.current()
	g.Expect(tables).To(gomega.HaveLen(2))
	for _, one := range tables {
		g.Expect(one.count()).To(gomega.BeEmpty(), "the rows are forgotten")
	}
}

func TestMissingPermissionsAreShown(t *testing.T) {
	api := newAPI(t, map[string]string{
		"/apis/kopf.dev/v1/kopfexamples": `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no"}`,
	})
	p := newPage(t, api, nil)
	gomega.NewWithT(t).Eventually(func() string { return ask(p, "GET", "/", nil).Body.String() }).Should(gomega.ContainSubstring(
		"You may not list and watch kopfexamples.kopf.dev in all namespaces. Start the page with --namespace for one in which you may."))
}

// filledTable returns a table with rows, without a cluster.
func filledTable(rows int) *table {
	t := newTable(nil, inspect.WatchedResource{Name: "things"}, "", func(string, types.NamespacedName, bool) {})
	states := inspect.States()
	var all []any
	for i := range rows {
		s := &seen{row: row{uid: types.UID(fmt.Sprintf("%036d", i)), state: states[i%len(states)], since: int64(i)}}
		s.Namespace = fmt.Sprintf("team-%d", i%10)
		s.Name = fmt.Sprintf("one-%05d", i)
		all = append(all, s)
	}
	_ = t.Replace(all, "1") // never fails for rows
	return t
}

// showing returns a page that shows the rows of tables, and watches nothing.
func showing(t testing.TB, tables ...*table) *Page {
	t.Helper()
	p := newPage(t, newAPI(t, nil), nil)
	p.audience = newAudience(func(ctx context.Context) { <-ctx.Done() })
	p.resources.tables = tables
	return p
}

func TestAPageOfManyObjectsIsSmall(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	many := filledTable(10_000)
	runtime.GC()
	runtime.ReadMemStats(&after)
	p := showing(t, many)
	start := time.Now()
	answer := ask(p, "GET", "/objects?page=2", nil)
	t.Logf("a page takes %s; a row takes %d bytes", time.Since(start), (after.HeapAlloc-before.HeapAlloc)/10_000)
	text := answer.Body.String()
	if rows := strings.Count(text, `<tr id="row-`); answer.Code != http.StatusOK || rows != pageRows {
		t.Errorf("got %d rows: %s", rows, text)
	}
	if !strings.Contains(text, "10000 objects, page 2 of 100") || len(text) > 100_000 {
		t.Errorf("got %d bytes: %s", len(text), text)
	}
	if text := ask(p, "GET", "/objects?state=failed&namespace=team-1&name=one-000", nil).Body.String(); !strings.Contains(text, "2 objects<") {
		t.Errorf("got %s", text)
	}
}

func TestStatesThatEndWithoutAChangeAreFound(t *testing.T) {
	many := filledTable(3)
	key := types.NamespacedName{Namespace: "team-1", Name: "one-00001"}
	now := time.Now()
	many.put(key, row{uid: "u", state: inspect.Waiting, until: now.Add(-time.Second).Unix()})
	many.put(types.NamespacedName{Namespace: "team-2", Name: "one-00002"}, row{uid: "v", state: inspect.Waiting, until: now.Add(time.Hour).Unix()})
	if got := many.ended(now); len(got) != 1 || got[0] != key {
		t.Errorf("got %v", got)
	}
	many.putAgain(key, &seen{row: row{uid: "other", state: inspect.Due}})
	many.putAgain(types.NamespacedName{Name: "gone"}, &seen{row: row{uid: "u", state: inspect.Due}})
	if got := many.count(); got[inspect.Due] != 0 {
		t.Errorf("rows of other objects are there: %v", got)
	}
	many.putAgain(key, &seen{row: row{uid: "u", state: inspect.Due}})
	if got := many.count(); got[inspect.Due] != 1 || len(many.ended(now)) != 0 {
		t.Errorf("got %v", got)
	}
}

// The order of a list is kept with each change, so that requests need not sort.
func TestRowsStayInOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	states := inspect.States()
	tables := []*table{filledTable(20), filledTable(0)}
	tables[1].of.Name = "others"
	slices.SortFunc(tables, func(a, b *table) int { return strings.Compare(a.of.Name, b.of.Name) })
	for range 2000 {
		of := tables[random.IntN(2)]
		key := types.NamespacedName{Namespace: fmt.Sprintf("team-%d", random.IntN(3)), Name: fmt.Sprintf("one-%02d", random.IntN(20))}
		if random.IntN(4) == 0 {
			gone := &seen{}
			gone.Namespace, gone.Name = key.Namespace, key.Name
			if err := of.Delete(gone); err != nil {
				t.Fatal(err)
			}
		} else {
			of.put(key, row{uid: "u", state: states[random.IntN(len(states))], since: int64(random.IntN(9))})
		}
	}
	known := 0
	for _, of := range tables {
		known += len(of.rows)
		if len(of.order) != len(of.rows) || !slices.IsSortedFunc(of.order, compareEntries) {
			t.Fatalf("%s has %d rows, and %d in order", of.of.Name, len(of.rows), len(of.order))
		}
		counts := map[inspect.State]int{}
		for key, e := range of.rows {
			counts[e.state]++
			if i, found := slices.BinarySearchFunc(of.order, e, compareEntries); !found || of.order[i] != e || e.NamespacedName != key {
				t.Errorf("%s is not at its place", key)
			}
		}
		for _, state := range states {
			if of.counts[state] != counts[state] {
				t.Errorf("%d rows are %s, and %d were counted", counts[state], state, of.counts[state])
			}
		}
	}

	// All pages together have each row once, in the order of all resources.
	for _, f := range []filter{{}, {State: "failed"}, {Resource: "others"}, {Namespace: "team-1"}, {Name: "1"}, {Name: "no such one"}} {
		var got []listedRow
		_, all, _ := list(tables, f, 1)
		for page := 1; page <= max(1, (all+pageRows-1)/pageRows); page++ {
			rows, again, actual := list(tables, f, page)
			if again != all || actual != page {
				t.Errorf("%+v: the page %d is %d, of %d rows, and not of %d", f, page, actual, again, all)
			}
			got = append(got, rows...)
		}
		want := 0
		for _, of := range tables {
			for _, e := range of.order {
				if (f.State == "" || f.State == string(e.state)) && (f.Resource == "" || f.Resource == of.of.Name) && (f.Namespace == "" || f.Namespace == e.Namespace) && strings.Contains(e.Name, f.Name) {
					want++
				}
			}
		}
		if len(got) != all || all != want {
			t.Errorf("%+v: got %d rows of %d, want %d", f, len(got), all, want)
		}
		if !slices.IsSortedFunc(got, func(a, b listedRow) int {
			return cmp.Or(cmp.Compare(a.rank, b.rank), strings.Compare(a.resource, b.resource), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
		}) {
			t.Errorf("%+v: the rows are not in order", f)
		}
	}
	if known == 0 {
		t.Error("there are no rows")
	}
}

// One operation is what a second costs if 20 people look at lists of 10,000 objects, of which ten change.
func BenchmarkASecondOfManyViewers(b *testing.B) {
	for name, address := range map[string]string{"all": "/objects", "filter": "/objects?name=one-0&namespace=team-3", "overview": "/"} {
		b.Run(name, func(b *testing.B) {
			many := filledTable(10_000)
			p := showing(b, many)
			p.facts.last.Start = &inspect.Plan{}
			states := inspect.States()
			for n := 0; b.Loop(); n++ {
				p.facts.read = time.Now()
				for i := range 10 {
					e := many.order[(n*997+i*13)%len(many.order)]
					many.put(e.NamespacedName, row{uid: e.uid, state: states[(n+i)%len(states)], since: int64(n)})
				}
				for range 20 {
					if answer := ask(p, "GET", address, nil); answer.Code != http.StatusOK {
						b.Fatal(answer.Body.String())
					}
				}
			}
		})
	}
}

// Many people look at the same rows: each of them is rendered once, until it changes or its time is old.
func TestRowsAreRenderedOnce(t *testing.T) {
	many := filledTable(1)
	only := many.order[0]
	now := time.Unix(1_000_000, 0)
	first, err := only.render("things", now)
	if err != nil || !strings.Contains(string(first), ">one-00000</a>") {
		t.Fatalf("got %s, %v", first, err)
	}
	kept := only.rendered.Load()
	if again, err := only.render("things", now.Add(rowAge-time.Second)); err != nil || again != first || only.rendered.Load() != kept {
		t.Errorf("got %s, %v", again, err)
	}
	if _, err := only.render("things", now.Add(rowAge)); err != nil || only.rendered.Load() == kept {
		t.Errorf("it is old, and not rendered again: %v", err)
	}
	many.put(only.NamespacedName, row{uid: only.uid, state: inspect.Waiting})
	if changed, err := many.order[0].render("things", now); err != nil || !strings.Contains(string(changed), ">waiting</span>") {
		t.Errorf("got %s, %v", changed, err)
	}
}

// A resource whose definition is created while the page is open gets a table, and the tables of others stay.
func TestResourcesThatAppearLaterAreShown(t *testing.T) {
	g := gomega.NewWithT(t)
	path, object := example("", "{}")
	api := newAPI(t, map[string]string{path: object})
	api.discover("/apis", `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
	p := newPage(t, api, nil)
	_, before := p.resources.current()
	g.Expect(before).To(gomega.HaveLen(1))
	changed := make(chan string, 100)
	p.resources.changed = func(resource string, _ types.NamespacedName, _ bool) { changed <- resource }

	p.resources.discover(t.Context())
	g.Expect(changed).NotTo(gomega.Receive(), "nothing has changed")
	api.discover("/apis", discovered["/apis"])
	p.resources.discover(t.Context())
	g.Expect(changed).To(gomega.Receive(gomega.BeEmpty()))
	_, now := p.resources.current()
	g.Expect(now).To(gomega.HaveLen(2))
	g.Expect(now[0].of.Name).To(gomega.Equal("kopfexamples.kopf.dev"))
	g.Expect(now[1]).To(gomega.BeIdenticalTo(before[0]), "its rows stay")
	g.Eventually(func() string { return ask(p, "GET", "/objects", nil).Body.String() }).Should(gomega.ContainSubstring(">one</a>"))

	api.discover("/apis", "")
	p.resources.discover(t.Context())
	_, kept := p.resources.current()
	g.Expect(kept).To(gomega.HaveLen(2), "what was known stays")
	g.Expect(ask(p, "GET", "/", nil).Body.String()).To(gomega.ContainSubstring("What the cluster serves is not current: "))
}
