package page

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-go/kopf/pkg/cli/inspect"
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
	for _, one := range p.tables {
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

// newTable returns a table with rows, without a cluster.
func newTable(rows int) *table {
	t := &table{of: inspect.WatchedResource{Name: "things"}, changed: func(string, types.NamespacedName, bool) {}}
	t.reset()
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

func TestAPageOfManyObjectsIsSmall(t *testing.T) {
	p := newPage(t, newAPI(t, nil), nil)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	many := newTable(10_000)
	runtime.GC()
	runtime.ReadMemStats(&after)
	p.audience = newAudience(func(ctx context.Context) { <-ctx.Done() })
	p.tables = []*table{many}
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
	many := newTable(3)
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
