// Command house measures how the code of a checkout is built: sizes, receivers, names,
// and imports. It prints a Markdown table.
//
//	go run ./hack/house                    # this checkout
//	go run ./hack/house DIR                # another one
//	go run ./hack/house -compare OLD [DIR] # before and after, side by side
//	go run ./hack/house -v                 # with the names and arrows that are counted
//
// The checkout must compile, because names and references are resolved by type. Each
// measure's comment says how it counts. limits_test.go holds the limits that this
// repository must keep.
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
	verbose := flag.Bool("v", false, "list what the table only counts, of the last column")
	flag.Parse()
	if flag.NArg() > 1 {
		flag.Usage()
		os.Exit(2)
	}
	dir := "."
	if flag.NArg() == 1 {
		dir = flag.Arg(0)
	}
	if err := run(context.Background(), os.Stdout, dir, *old, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, dir, old string, verbose bool) error {
	var columns []column
	if old != "" {
		before, err := measure(ctx, old)
		if err != nil {
			return err
		}
		columns = append(columns, column{title: "Before", rows: rows(before)})
	}
	now, err := measure(ctx, dir)
	if err != nil {
		return err
	}
	title := "Now"
	if old != "" {
		title = "After"
	}
	if err := write(out, append(columns, column{title: title, rows: rows(now)})); err != nil || !verbose {
		return err
	}
	_, err = io.WriteString(out, details(now))
	return err
}
