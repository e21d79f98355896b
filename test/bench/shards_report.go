package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// The goals of this project for replicas: what each needs beyond its part of what one needs for all objects.
const (
	goalFiltered   = 0.05 // by an API server that filters
	goalUnfiltered = 0.10 // the memory, if it does not
)

// printShards writes the figures of replicas that share the objects.
func (r report) printShards(out io.Writer) {
	for _, f := range r.Shards {
		_, _ = fmt.Fprintf(out, "\n%s:\n\n", f.Description)
		table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
		line := func(name string, of func(replicasFigures) string) {
			_, _ = fmt.Fprintf(table, "%s\t", name)
			for _, c := range f.Replicas {
				_, _ = fmt.Fprintf(table, "%s\t", of(c))
			}
			_, _ = fmt.Fprintln(table)
		}
		line("replicas", func(c replicasFigures) string { return fmt.Sprint(len(c.Each)) })
		line("objects/s", func(c replicasFigures) string { return fmt.Sprintf("%.0f", c.Create.ObjectsPerSecond) })
		line("CPU per object, of all replicas", func(c replicasFigures) string { return micro(c.Create.CPUPerObject) })
		line("writes per object, conflicts", func(c replicasFigures) string {
			return fmt.Sprintf("%.2f, %d", c.Create.WritesPerObject, c.Create.Conflicts)
		})
		line("CPU of a creation, of the busiest", func(c replicasFigures) string { return milli(c.busiest()) })
		line("CPU at rest, of the busiest", func(c replicasFigures) string { return milli(c.restless()) })
		line("memory without objects, of the largest", func(c replicasFigures) string { return mega(c.largestEmpty()) })
		line("memory with objects, of the largest", func(c replicasFigures) string { return mega(c.largest()) })
		line("memory of objects, of the largest", func(c replicasFigures) string { return mega(c.objects()) })
		line("of which Go heap", func(c replicasFigures) string { return mega(c.heap()) })
		if one := f.Replicas[0]; len(one.Each) == 1 && len(f.Replicas) > 1 {
			line("CPU relative to one", func(c replicasFigures) string { return percent(float64(c.busiest()) / float64(one.busiest())) })
			line("memory of objects relative to one", func(c replicasFigures) string { return percent(float64(c.objects()) / float64(one.objects())) })
			line("Go heap of objects relative to one", func(c replicasFigures) string { return percent(float64(c.heap()) / float64(one.heap())) })
			line("goals", func(c replicasFigures) string {
				part := 1 / float64(len(c.Each))
				return percent(part+goalFiltered) + ", unfiltered " + percent(part+goalUnfiltered)
			})
		}
		_ = table.Flush()
		for _, move := range []struct {
			what string
			Move
		}{{"joins", f.Joined}, {"is killed", f.Killed}} {
			_, _ = fmt.Fprintf(out, "\n  a replica %s, and %d are left: %d objects are taken over after %.1f s, with %s of CPU\n    a change of one of them: %s\n    a change of another object: %s\n",
				move.what, move.Replicas, move.Objects, move.TakenOver.Seconds(), milli(move.CPU), move.Moving, move.Others)
		}
	}
}

func percent(part float64) string { return fmt.Sprintf("%.1f %%", 100*part) }

// most returns the largest figure of the replicas.
func most[T int64 | time.Duration](f replicasFigures, of func(replicaFigures) T) (largest T) {
	for _, each := range f.Each {
		largest = max(largest, of(each))
	}
	return largest
}

func (f replicasFigures) busiest() time.Duration {
	return most(f, func(r replicaFigures) time.Duration { return r.Create })
}

func (f replicasFigures) restless() time.Duration {
	return most(f, func(r replicaFigures) time.Duration { return r.Rest })
}

func (f replicasFigures) largestEmpty() int64 {
	return most(f, func(r replicaFigures) int64 { return r.Empty.Resident })
}

func (f replicasFigures) largest() int64 {
	return most(f, func(r replicaFigures) int64 { return r.Loaded.Resident })
}

func (f replicasFigures) objects() int64 {
	return most(f, func(r replicaFigures) int64 { return r.Loaded.minus(r.Empty).Resident })
}

func (f replicasFigures) heap() int64 {
	return most(f, func(r replicaFigures) int64 { return r.Loaded.minus(r.Empty).Heap })
}
