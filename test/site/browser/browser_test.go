// Package browser looks at the documentation site with headless Chromium, as readers see
// it on a phone and on a desktop, and at the page of an operator.
package browser

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

var (
	dir         = flag.String("site", "../../../bin/site", "the `folder` of the site")
	screenshots = flag.String("screenshots", "", "write pictures of some pages to this `folder`")
	page        = flag.String("page", "", "look at the page of an operator at this `URL`, and not at the site")
)

// widths are those of a phone and of a desktop.
var widths = map[string]int64{"phone": 390, "desktop": 1280}

// versions is the list of versions that the pages get in this test.
const versions = `window.siteVersions = [{"name": "main", "pages": ["docs/handlers.html"]}, {"name": "v0.0.1", "pages": ["index.html"]}];`

func TestSite(t *testing.T) {
	if *page != "" {
		t.Skip("this run is about the page of an operator: see TestOperatorPage")
	}
	if _, err := os.Stat(filepath.Join(*dir, "main/index.html")); err != nil {
		t.Fatalf("there is no site to check: run make docs first (%v)", err)
	}
	browser := start(t)
	address := serve(t)
	for device, width := range widths {
		t.Run(device, func(t *testing.T) {
			t.Run("no page scrolls sideways", func(t *testing.T) { checkWidths(t, open(t, browser, width), address) })
			t.Run("the menu leads to the guides", func(t *testing.T) { checkMenu(t, open(t, browser, width), address, device) })
			t.Run("the search finds sections", func(t *testing.T) { checkSearch(t, open(t, browser, width), address) })
			t.Run("the colors can be switched", func(t *testing.T) { checkColors(t, open(t, browser, width), address) })
			t.Run("the menu of versions leads to other versions", func(t *testing.T) { checkVersions(t, open(t, browser, width), address) })
			if *screenshots != "" {
				t.Run("screenshots", func(t *testing.T) { takeScreenshots(t, open(t, browser, width), address, device) })
			}
		})
	}
}

// start starts a browser, and says what is missing if it cannot.
func start(t *testing.T) context.Context {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU)
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	browser, closeBrowser := chromedp.NewContext(allocator)
	t.Cleanup(closeBrowser)
	if err := chromedp.Do(browser); err != nil {
		t.Fatalf("this check needs Chromium or Chrome in the PATH, for example of Debian's package chromium: %v", err)
	}
	return browser
}

// serve serves the site on the loopback interface.
func serve(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir(*dir)))
	mux.HandleFunc("/versions.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = fmt.Fprint(w, versions)
	})
	mux.HandleFunc("/v0.0.1/index.html", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "<h1 id=old>An old version</h1>") })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// open opens a tab of a width. It fails if a script of a page has an error.
func open(t *testing.T, browser context.Context, width int64) context.Context {
	t.Helper()
	tab, closeTab := chromedp.NewContext(browser)
	t.Cleanup(closeTab)
	tab, cancel := context.WithTimeout(tab, time.Minute)
	t.Cleanup(cancel)
	do(t, tab, chromedp.EmulateViewport(width, 800), scheme("light"))
	return tab
}

// scheme emulates the colors that the system asks for.
func scheme(value string) step {
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: value}}
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
		return err
	})
}

// step is an action without a value.
type step = chromedp.Action[chromedp.Void]

func do(t *testing.T, tab context.Context, steps ...step) {
	t.Helper()
	if err := chromedp.Do(tab, steps...); err != nil {
		t.Fatal(err)
	}
}

// get returns the value of an action.
func get[T any](t *testing.T, tab context.Context, action chromedp.Action[T]) T {
	t.Helper()
	value, err := chromedp.Run(tab, action)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// run returns a step that runs a script on the page.
func run(script string) step { return chromedp.Evaluate[chromedp.Void](script) }

// evaluate returns the value of an expression on the page.
func evaluate[T any](t *testing.T, tab context.Context, expression string) T {
	t.Helper()
	return get(t, tab, chromedp.Evaluate[T](expression))
}

func checkWidths(t *testing.T, tab context.Context, address string) {
	files, err := filepath.Glob(filepath.Join(*dir, "main/docs/*.html"))
	if err != nil || len(files) < 40 {
		t.Fatalf("found only %d pages: %v", len(files), err)
	}
	for _, file := range append(files, filepath.Join(*dir, "main/index.html"), filepath.Join(*dir, "main/contributing.html")) {
		page, err := filepath.Rel(*dir, file)
		if err != nil {
			t.Fatal(err)
		}
		do(t, tab, chromedp.Navigate(address+"/"+filepath.ToSlash(page)), chromedp.WaitReady("footer"))
		if over := evaluate[int](t, tab, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
			t.Errorf("%s is %d pixels too wide", page, over)
		}
	}
}

func checkMenu(t *testing.T, tab context.Context, address, device string) {
	do(t, tab, chromedp.Navigate(address+"/main/index.html"), chromedp.WaitReady("footer"))
	if device == "phone" {
		if evaluate[bool](t, tab, `document.querySelector("#navigation").checkVisibility()`) {
			t.Error("the menu covers the page")
		}
		do(t, tab, chromedp.Click("#menu"))
	}
	do(t, tab,
		chromedp.WaitVisible("#navigation"),
		chromedp.Click(`#navigation a[href$="docs/daemons.html"]`, chromedp.NodeVisible),
		chromedp.WaitVisible(`#daemons`),
	)
	if current := evaluate[string](t, tab, `document.querySelector("[aria-current]").textContent`); current != "Daemons" {
		t.Errorf("the menu shows %q as the current page", current)
	}
}

func checkSearch(t *testing.T, tab context.Context, address string) {
	do(t, tab,
		chromedp.Navigate(address+"/main/docs/handlers.html"),
		chromedp.SendKeys("#search input", "finalizer"),
		chromedp.WaitVisible("#search li a mark"),
	)
	found := evaluate[[]string](t, tab, `[...document.querySelectorAll("#search li a")].map((link) => link.textContent)`)
	if len(found) < 5 || !strings.Contains(strings.ToLower(found[0]), "finalizer") {
		t.Errorf("found %q", found)
	}
	target := evaluate[string](t, tab, `document.querySelector("#search li a").href`)
	do(t, tab, run("document.body.id = 'before'"), chromedp.Click("#search li a"), chromedp.WaitReady("body:not(#before) footer"))
	if at := evaluate[string](t, tab, "location.href"); at != target {
		t.Errorf("the click leads to %s, want %s", at, target)
	}
	if !evaluate[bool](t, tab, "document.querySelector(decodeURIComponent(location.hash)) !== null") {
		t.Errorf("%s leads to no section", target)
	}
	do(t, tab, chromedp.SendKeys("#search input", "xyzzyxyzzy"), chromedp.WaitVisible("#search .none"))
}

// background is the color behind the text.
const background = "getComputedStyle(document.body).backgroundColor"

func checkColors(t *testing.T, tab context.Context, address string) {
	do(t, tab, chromedp.Navigate(address+"/main/docs/handlers.html"), chromedp.WaitReady("footer"), run("localStorage.clear()"), chromedp.Reload())
	light := evaluate[string](t, tab, background)
	do(t, tab, scheme("dark"))
	dark := evaluate[string](t, tab, background)
	if light == dark {
		t.Fatalf("the page has the background %s for both colors of the system", light)
	}
	for i, want := range []string{light, dark, dark} { // light, dark, automatic
		do(t, tab, chromedp.Click("#theme"))
		if got := evaluate[string](t, tab, background); got != want {
			t.Errorf("after %d clicks, the background is %s, want %s", i+1, got, want)
		}
	}
	do(t, tab, chromedp.Click("#theme"), chromedp.Navigate(address+"/main/docs/errors.html"), chromedp.WaitReady("footer"))
	if got := evaluate[string](t, tab, background); got != light {
		t.Errorf("the next page forgets the choice: %s", got)
	}
	do(t, tab, run("localStorage.clear()"))
}

func checkVersions(t *testing.T, tab context.Context, address string) {
	do(t, tab, chromedp.Navigate(address+"/main/docs/handlers.html"), chromedp.WaitReady("footer"))
	names := evaluate[[]string](t, tab, `[...document.querySelectorAll("#versions option")].map((one) => one.value)`)
	if strings.Join(names, " ") != "main v0.0.1" {
		t.Fatalf("the menu has %q", names)
	}
	do(t, tab, run(`menu.value = "v0.0.1"; menu.dispatchEvent(new Event("change"))`), chromedp.WaitVisible("#old"))
}

func takeScreenshots(t *testing.T, tab context.Context, address, device string) {
	for page, name := range map[string]string{"index.html": "home", "docs/handlers.html": "handlers", "docs/architecture.html#one-watch-event": "diagram", "docs/configuration.html#posting": "table"} {
		for _, color := range []string{"light", "dark"} {
			do(t, tab, scheme(color), chromedp.Navigate("about:blank"), chromedp.Navigate(address+"/main/"+page), chromedp.WaitReady("footer"))
			save(t, tab, name+"-"+device+"-"+color)
		}
	}
	do(t, tab, scheme("light"), chromedp.SendKeys("#search input", "finalizer"), chromedp.WaitVisible("#search li a"))
	save(t, tab, "search-"+device)
	if device == "phone" {
		do(t, tab, chromedp.Navigate(address+"/main/docs/errors.html"), chromedp.Click("#menu"), chromedp.WaitVisible("#navigation"))
		save(t, tab, "menu-"+device)
	}
}

func save(t *testing.T, tab context.Context, name string) {
	t.Helper()
	picture := get(t, tab, chromedp.CaptureScreenshot())
	if err := os.WriteFile(filepath.Join(*screenshots, name+".png"), picture, 0o600); err != nil {
		t.Fatal(err)
	}
}
