package browser

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// object is the address of an object that waits, below that of the page. A test in test/integration/page has created it.
const object = "/object?resource=kopfexamples.kopf.dev&namespace=shop&name=order-17"

// guide has the pictures of docs/page.md.
var guide = []string{"page-overview-desktop-light", "page-objects-desktop-light", "page-object-desktop-light", "page-object-phone-dark"}

// TestOperatorPage looks at a page that another test serves, with requests and with the objects of its gallery.
func TestOperatorPage(t *testing.T) {
	if *page == "" || *many > 0 {
		t.Skip("there is no page to look at: go test ./test/integration/page serves one")
	}
	at, err := url.Parse(*page)
	if err != nil {
		t.Fatal(err)
	}
	browser := start(t)
	root := at.Scheme + "://" + at.Host
	paths := map[string]string{
		"overview": "/", "objects": "/objects", "object": object, "markup": strings.Replace(object, "order-17", "order-07", 1), // in an error
		"operator": "/operator", "request": "/request?verb=suspend&" + strings.TrimPrefix(object, "/object?"),
	}
	checker, err := axe(t.Context())
	if err != nil {
		t.Logf("NOT CHECKED: the accessibility, without %s of npm: %v", axePackage, err)
	}
	for device, width := range widths {
		t.Run(device, func(t *testing.T) {
			tab := open(t, browser, width)
			mistakes := console(tab)
			do(t, tab, chromedp.Navigate(*page), chromedp.WaitReady("#states"))
			if address := evaluate[string](t, tab, "location.href"); address != root+"/" {
				t.Errorf("the address is %s: it still has the token", address)
			}
			for name, path := range paths {
				do(t, tab, scheme("light"), chromedp.Navigate(root+path), chromedp.WaitReady("h1"))
				checkStructure(t, tab, name)
				light := evaluate[string](t, tab, background)
				do(t, tab, scheme("dark"))
				if dark := evaluate[string](t, tab, background); dark == light {
					t.Errorf("%s has the background %s for both colors of the system", name, light)
				}
				for _, color := range []string{"light", "dark"} {
					if checker != "" {
						do(t, tab, scheme(color))
						checkAccessibility(t, tab, checker, name+" in "+color+" colors")
					}
					picture := "page-" + name + "-" + device + "-" + color
					if *screenshots != "" && slices.Contains(guide, picture) {
						do(t, tab, scheme(color))
						save(t, tab, picture)
					}
				}
			}
			checkPaint(t, tab, root)
			if found := mistakes(); len(found) > 0 {
				t.Errorf("the console has %q", found)
			}
		})
	}
	t.Run("the keyboard reaches all parts in order", func(t *testing.T) { checkKeyboard(t, open(t, browser, widths["desktop"]), root) })
	t.Run("a request arrives, and the list shows it", func(t *testing.T) { checkLive(t, browser, root) })
}

// console collects the errors and warnings of a tab. The function returns them.
func console(tab context.Context) func() []string {
	messages := chromedp.Console(tab)
	found := make(chan string, 100)
	go func() {
		for message, err := range messages {
			if err != nil {
				return
			}
			switch message.Type {
			case chromedp.ConsoleError, chromedp.ConsoleWarning, chromedp.ConsoleException:
				found <- message.Text
			}
		}
	}()
	return func() (all []string) {
		for len(found) > 0 {
			all = append(all, <-found)
		}
		return all
	}
}

// checkStructure checks what screen readers and phones need.
func checkStructure(t *testing.T, tab context.Context, name string) {
	t.Helper()
	if over := evaluate[int](t, tab, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
		t.Errorf("%s is %d pixels too wide", name, over)
	}
	for what, expression := range map[string]string{
		"one heading":                   `document.querySelectorAll("h1").length === 1`,
		"a main part":                   `document.querySelectorAll("main").length === 1`,
		"a language":                    `document.documentElement.lang === "en"`,
		"named navigations":             `[...document.querySelectorAll("nav")].every((one) => one.getAttribute("aria-label"))`,
		"named fields":                  `[...document.querySelectorAll("select, input:not([type=hidden])")].every((one) => one.labels.length > 0)`,
		"different ids":                 `new Set([...document.querySelectorAll("[id]")].map((one) => one.id)).size === document.querySelectorAll("[id]").length`,
		"headings of sections":          `[...document.querySelectorAll("section")].every((one) => document.getElementById(one.getAttribute("aria-labelledby")))`,
		"no markup in values":           `document.querySelectorAll("main img, main script, main style").length === 0`,
		"no scripts or styles in place": `document.querySelectorAll("script:not([src]), style, [style], [onclick], [onerror]").length === 0`,
		"a place for what happens":      `document.querySelector("[role=status]") !== null`,
	} {
		if !evaluate[bool](t, tab, expression) {
			t.Errorf("%s does not have %s", name, what)
		}
	}
}

// slowPaint is long for a machine that runs other tests, too.
const slowPaint = 3000

// paints are the first paints of a page, if there was one.
const paints = `performance.getEntriesByName("first-contentful-paint")`

func checkPaint(t *testing.T, tab context.Context, root string) {
	t.Helper()
	do(t, tab, chromedp.Navigate(root+"/objects"), chromedp.WaitReady("#list"))
	get(t, tab, chromedp.Poll[bool](paints+".length > 0"))
	first := evaluate[float64](t, tab, paints+"[0].startTime")
	t.Logf("the first paint is after %.0f ms", first)
	if first > slowPaint {
		t.Errorf("the first paint is after %.0f ms", first)
	}
}

// focused names what has the focus.
const focused = `(document.activeElement.labels?.[0] ?? document.activeElement).textContent.trim().split("\n")[0]`

func checkKeyboard(t *testing.T, tab context.Context, root string) {
	do(t, tab, chromedp.Navigate(*page), chromedp.WaitReady("#states"), chromedp.Navigate(root+"/objects"), chromedp.WaitReady("#list tbody tr"))
	var order []string
	for range 10 {
		do(t, tab, chromedp.KeyEvent(kb.Tab))
		text := evaluate[string](t, tab, focused)
		for _, name := range []string{"Resource", "State", "Namespace", "Name contains"} {
			if strings.HasPrefix(text, name) {
				text = name // without the options
			}
		}
		order = append(order, text)
	}
	first := evaluate[string](t, tab, `document.querySelector("#list tbody a").textContent`)
	want := []string{"Skip to the content", "Overview", "Objects", "Operator", "Resource", "State", "Namespace", "Name contains", "Filter", first}
	if !slices.Equal(order, want) {
		t.Errorf("got  %q\nwant %q", order, want)
	}
	do(t, tab, chromedp.KeyEvent(kb.Enter), chromedp.WaitReady("#explained"))
	get(t, tab, chromedp.Poll[bool](`document.querySelector("[data-copy]") !== null`)) // the script adds buttons to the commands
}

// checkLive suspends an object on its page, while a list is open in another tab.
func checkLive(t *testing.T, browser context.Context, root string) {
	list, tab := open(t, browser, widths["desktop"]), open(t, browser, widths["desktop"])
	row := `document.querySelector('#list a[href*="order-17"]').closest("tr").querySelector(".state").textContent`
	do(t, list, chromedp.Navigate(*page), chromedp.WaitReady("#states"), chromedp.Navigate(root+"/objects?name=order-"), chromedp.WaitReady("html[data-live] #list tbody tr"))
	do(t, list, run(`document.querySelector('#list a[href*="order-17"]').focus()`))
	if state := evaluate[string](t, list, row); state != "waiting" {
		t.Fatalf("it is %s", state)
	}
	do(t, tab,
		chromedp.Navigate(root+object), chromedp.WaitReady("#explained"),
		chromedp.Click(`a.button[href*="verb=suspend"]`), chromedp.WaitReady(`form[action="/request"]`),
		chromedp.Click(`form button`), chromedp.WaitReady(".alert.good"),
	)
	if text := evaluate[string](t, tab, `document.querySelector(".alert").textContent`); !strings.Contains(text, "is suspended until") {
		t.Errorf("got %q", text)
	}
	get(t, list, chromedp.Poll[bool](row+` === "suspended"`))
	if text := evaluate[string](t, list, focused); text != "order-17" {
		t.Errorf("the focus is on %q", text)
	}
}
