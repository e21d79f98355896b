// Command house measures how the code of a checkout reads. It prints a Markdown table.
//
//	go run ./hack/house                    # this checkout
//	go run ./hack/house DIR                # another one
//	go run ./hack/house -compare OLD [DIR] # before and after, side by side
//
// The figures are for diagnosis. None of them is a limit or a goal: code that is bent to
// a figure is worse than a bad figure. The checkout must compile, because references are
// resolved by type. Each measure's comment says how it counts.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	old := flag.String("compare", "", "print the figures of this checkout as well, in a column before the others")
	flag.Parse()
	if flag.NArg() > 1 {
		flag.Usage()
		os.Exit(2)
	}
	dir := "."
	if flag.NArg() == 1 {
		dir = flag.Arg(0)
	}
	if err := run(context.Background(), os.Stdout, dir, *old); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, dir, old string) error {
	now, err := measure(ctx, dir)
	if err != nil {
		return err
	}
	if old == "" {
		return write(out, []column{{title: "Now", rows: rows(now)}})
	}
	before, err := measure(ctx, old)
	if err != nil {
		return err
	}
	return write(out, []column{{title: "Before", rows: rows(before)}, {title: "After", rows: rows(now)}})
}
