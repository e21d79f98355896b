package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// The goals of this project for background handlers.
const (
	goalTimer  = 1 << 10 // bytes per timer
	goalDaemon = 8 << 10 // bytes per daemon
	goalLoad   = 4.0     // percent of a core, for 1,000 timer calls per second
)

// printBackground writes the table of timers and daemons.
func (r report) printBackground(out io.Writer) {
	_, _ = fmt.Fprintf(out, "Daemons and timers, with an interval of %s:\n\n", r.Interval)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(name string, of func(backgroundFigures) string) {
		_, _ = fmt.Fprintf(table, "%s\t", name)
		for _, c := range r.Background {
			_, _ = fmt.Fprintf(table, "%s\t", of(c))
		}
		_, _ = fmt.Fprintln(table)
	}
	line("", func(c backgroundFigures) string { return c.Subject })
	line("memory per object", func(c backgroundFigures) string { return fmt.Sprintf("%d B", c.BytesPerObject.Resident) })
	line("of which Go heap", func(c backgroundFigures) string { return fmt.Sprintf("%d B", c.BytesPerObject.Heap) })
	line("memory without objects", func(c backgroundFigures) string { return mega(c.Empty.Resident) })
	line("memory with all objects", func(c backgroundFigures) string { return mega(c.Loaded.Resident) })
	line("memory after their deletion", func(c backgroundFigures) string { return mega(c.Left.Resident) })
	line("goroutines with all objects", func(c backgroundFigures) string { return fmt.Sprint(c.Goroutines) })
	line("after their deletion", func(c backgroundFigures) string { return fmt.Sprint(c.GoroutinesLeft) })
	line("timer calls per second", func(c backgroundFigures) string { return fmt.Sprintf("%.0f", c.CallsPerSecond) })
	line("CPU, of one core", func(c backgroundFigures) string { return fmt.Sprintf("%.2f %%", 100*c.Load) })
	line("writes: creation, deletion", func(c backgroundFigures) string { return fmt.Sprintf("%.2f, %.2f", c.CreateWrites, c.DeleteWrites) })
	line("at rest", func(c backgroundFigures) string {
		return fmt.Sprintf("%d in %.0fs", c.Rest.Requests.Writes, c.Rest.Seconds)
	})
	_ = table.Flush()
	r.compareBackgroundWithGoals(out)
}

// compareBackgroundWithGoals compares the figures with the goals, as far as the
// subjects allow.
func (r report) compareBackgroundWithGoals(out io.Writer) {
	by := map[string]backgroundFigures{}
	for _, c := range r.Background {
		by[c.Subject] = c
	}
	plain, measured := by[without]
	if !measured {
		return
	}
	_, _ = fmt.Fprintln(out)
	for _, goal := range []struct {
		what, subject string
		bytes         int64
	}{{"timer", timers, goalTimer}, {"daemon", daemons, goalDaemon}, {"timer and daemon", timersDaemons, goalTimer + goalDaemon}} {
		if c, measured := by[goal.subject]; measured {
			more := c.BytesPerObject.minus(plain.BytesPerObject)
			_, _ = fmt.Fprintf(out, "  memory per %s: %d B (goal: %d), of which Go heap: %d B\n", goal.what, more.Resident, goal.bytes, more.Heap)
		}
	}
	for _, subject := range []string{timers, timersDaemons} {
		if c, measured := by[subject]; measured && c.CallsPerSecond > 0 {
			_, _ = fmt.Fprintf(out, "  CPU for 1,000 timer calls per second, %s: %.2f %% of a core (goal: %.0f)\n",
				subject, 100*(c.Load-plain.Load)*1000/c.CallsPerSecond, goalLoad)
		}
	}
}
