// Command site builds the documentation site (`make docs`) from the Markdown files of
// the repository, which stay plain Markdown for the forge. Hugo renders them with the
// theme in hack/site/theme.
//
// A version is a folder of the site. The version main has the files of the work tree;
// another version has those of the tag with its name. Every build renews the list of
// versions, so that the menu of old versions shows new ones.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/kopf-go/kopf/hack/envtest/assets"
)

func main() {
	versions := flag.String("versions", development, "the `versions` to build, separated by commas: main, tags, or all")
	out := flag.String("out", "bin/site", "the `folder` of the site")
	address := flag.String("serve", "", "after the build, serve the site at this `address`")
	redraw := flag.Bool("diagrams", false, "draw the diagrams of the pages, instead of building the site")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root, err := assets.Root()
	switch {
	case err != nil:
	case *redraw:
		err = drawDiagrams(ctx, root)
	default:
		err = run(ctx, root, *versions, *out, *address)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1) //nolint:gocritic // stop has nothing left to do
	}
}

func run(ctx context.Context, root, names, out, address string) error {
	if !filepath.IsAbs(out) {
		out = filepath.Join(root, out)
	}
	selected, err := selectVersions(ctx, root, names)
	if err != nil {
		return err
	}
	for _, version := range selected {
		if err := build(ctx, root, version, filepath.Join(out, version)); err != nil {
			return fmt.Errorf("version %s: %w", version, err)
		}
	}
	if err := writeVersions(out); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "The site is in %s; begin with index.html.\n", out)
	if address == "" {
		return nil
	}
	return serve(ctx, address, out)
}

// serve serves the folder until the context ends.
func serve(ctx context.Context, address, dir string) error {
	server := &http.Server{Addr: address, Handler: http.FileServer(http.Dir(dir)), ReadHeaderTimeout: time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	fmt.Fprintf(os.Stderr, "Open http://%s in your browser. Press Ctrl-C to stop.\n", address)
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
