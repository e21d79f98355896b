package browser

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

var many = flag.Int("many", 0, "the page is about this `number` of objects")

// TestManyObjects looks at a page with many objects that another test serves. It counts, and prints how long things take:
// that depends on what else the machine does.
func TestManyObjects(t *testing.T) {
	if *many == 0 {
		t.Skip("the page has few objects, if any: go test ./test/integration/page serves one with many")
	}
	at, err := url.Parse(*page)
	if err != nil {
		t.Fatal(err)
	}
	root := at.Scheme + "://" + at.Host
	browser := start(t)
	list, object := open(t, browser, widths["desktop"]), open(t, browser, widths["desktop"])
	took := func(what string, since time.Time) { t.Logf("%s: %d ms", what, time.Since(since).Milliseconds()) }

	// The page was not open yet: the objects are listed now.
	begun := time.Now()
	do(t, list, chromedp.Navigate(*page), chromedp.WaitReady("#states"))
	get(t, list, chromedp.Poll[bool](paints+".length > 0"))
	t.Logf("the first paint, of the overview without the objects: %.0f ms", evaluate[float64](t, list, paints+"[0].startTime"))
	const listed = `[...document.querySelectorAll("#states .number")].some((one) => parseInt(one.textContent) >= %d && !one.textContent.includes("…"))`
	get(t, list, chromedp.Poll[bool](fmt.Sprintf(listed, *many)))
	took(fmt.Sprintf("all %d objects are counted", *many), begun)
	for state, want := range map[string]int{"failed": 5, "held": 3, "waiting": 50} {
		if got := evaluate[int](t, list, fmt.Sprintf(`parseInt(document.querySelector('.cards a[href*="state=%s"] strong')?.textContent ?? "0")`, state)); got != want {
			t.Errorf("%d objects are %s, want %d", got, state, want)
		}
	}

	// Filters and pages.
	for name, test := range map[string]struct {
		path string
		rows int
	}{
		"all":         {"/objects", min(100, *many)},
		"the last":    {"/objects?page=100000", (*many-1)%100 + 1},
		"a state":     {"/objects?state=failed", 5},
		"a name":      {"/objects?name=retry-0", 50},
		"many states": {"/objects?state=handled&name=bulk-", 100},
	} {
		begun := time.Now()
		do(t, list, chromedp.Navigate(root+test.path), chromedp.WaitReady("#list"))
		took("the list of "+name, begun)
		get(t, list, chromedp.Poll[bool](paints+".length > 0"))
		t.Logf("its first paint: %.0f ms", evaluate[float64](t, list, paints+"[0].startTime"))
		if rows := evaluate[int](t, list, `document.querySelectorAll("#list tbody tr").length`); rows != test.rows {
			t.Errorf("%s: got %d rows, want %d", name, rows, test.rows)
		}
		if elements := evaluate[int](t, list, `document.querySelectorAll("*").length`); elements > 1500 {
			t.Errorf("%s: the page has %d elements", name, elements)
		}
	}

	// A child that others have changed.
	do(t, object, chromedp.Navigate(root+"/object?resource=kopfexamples.kopf.dev&namespace="+spaceOf(t, list, root)+"&name=parent-007"), chromedp.WaitReady("#explained"))
	if text := evaluate[string](t, object, `document.querySelector(".tree")?.textContent ?? ""`); !strings.Contains(text, "fields that are left to others") || !strings.Contains(text, "data.size") {
		t.Errorf("the children are %q", text)
	}

	// A change arrives.
	do(t, list, chromedp.Navigate(root+"/objects?name=bulk-000001"), chromedp.WaitReady("html[data-live] #list tbody tr"))
	do(t, object,
		chromedp.Navigate(root+evaluate[string](t, list, `document.querySelector("#list tbody a").getAttribute("href")`)), chromedp.WaitReady("#explained"),
		chromedp.Click(`a.button[href*="verb=suspend"]`), chromedp.WaitReady(`form[action="/request"]`),
		chromedp.Click(`form button`))
	begun = time.Now()
	get(t, list, chromedp.Poll[bool](`document.querySelector("#list tbody .state").textContent === "suspended"`))
	took("a change is sent and arrives", begun)
	t.Logf("the memory of the scripts: %d KiB", evaluate[int](t, list, `Math.round((performance.memory?.usedJSHeapSize ?? 0) / 1024)`))
}

// spaceOf returns the namespace of the objects.
func spaceOf(t *testing.T, tab context.Context, root string) string {
	t.Helper()
	do(t, tab, chromedp.Navigate(root+"/objects?name=parent-007"), chromedp.WaitReady("#list tbody tr"))
	return evaluate[string](t, tab, `document.querySelector("#list tbody td").textContent`)
}
