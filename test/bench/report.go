package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// report holds the figures of a run.
type report struct {
	Machine  string    `json:"machine"`
	Objects  int       `json:"objects"`
	Size     int       `json:"size"` // of a new object, in bytes
	Workers  int       `json:"workers"`
	Subjects []figures `json:"subjects,omitempty"`

	Interval   time.Duration       `json:"intervalNanoseconds"` // of timers
	Background []backgroundFigures `json:"background,omitempty"`
	Waiting    []waitingFigures    `json:"waiting,omitempty"`
	Children   []childrenFigures   `json:"children,omitempty"`
	Shards     []shardFigures      `json:"shards,omitempty"`
	Neighbors  []neighborFigures   `json:"neighbors,omitempty"`

	Admission *admission `json:"admission,omitempty"`
}

// add measures a subject.
func (r *report) add(ctx context.Context, subject string, o options, log io.Writer) error {
	m, err := measure(ctx, subject, o, log)
	switch {
	case err != nil:
		return err
	case slices.Contains(waitingSubjects, subject):
		r.Waiting = append(r.Waiting, m.waitingFigures)
	case slices.Contains(childrenSubjects, subject), slices.Contains(externalSubjects, subject):
		r.Children = append(r.Children, m.childrenFigures)
	case slices.Contains(shardSubjects, subject):
		r.Shards = append(r.Shards, m.shardFigures)
	case slices.Contains(neighborSubjects, subject):
		r.Neighbors = append(r.Neighbors, m.neighborFigures)
	case slices.Contains(backgroundSubjects, subject):
		r.Background = append(r.Background, m.backgroundFigures)
	default:
		r.Subjects = append(r.Subjects, m.figures)
	}
	return nil
}

// The goals of this project.
const (
	goalCPU    = 0.8  // relative to the hand-written operator
	goalMemory = 4096 // bytes per object of 1 KB at rest
)

// print writes the figures as tables.
func (r report) print(out io.Writer) error {
	_, _ = fmt.Fprintf(out, "\n%d objects of %d bytes, %d workers, on %s\n\n", r.Objects, r.Size, r.Workers, r.Machine)
	if r.Admission != nil {
		defer r.Admission.print(out)
	}
	r.printWaiting(out)
	r.printNeighbors(out)
	r.printShards(out)
	if err := r.printChildren(out); err != nil {
		return err
	}
	if len(r.Background) > 0 {
		defer r.printBackground(out)
	}
	if len(r.Subjects) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	r.line(table, "", func(f figures) string { return f.Subject })
	for _, phase := range []struct {
		name string
		of   func(figures) Phase
	}{
		{"create", func(f figures) Phase { return f.Create }},
		{"update", func(f figures) Phase { return f.Update }},
		{"delete", func(f figures) Phase { return f.Delete }},
	} {
		r.phase(table, phase.name, phase.of)
	}
	r.atRest(table)
	r.restarted(table)
	if err := table.Flush(); err != nil {
		return err
	}
	return r.compareWithGoals(out)
}

func (r report) line(out io.Writer, name string, of func(figures) string) {
	_, _ = fmt.Fprintf(out, "%s\t", name)
	for _, f := range r.Subjects {
		_, _ = fmt.Fprintf(out, "%s\t", of(f))
	}
	_, _ = fmt.Fprintln(out)
}

func (r report) phase(out io.Writer, name string, of func(figures) Phase) {
	r.line(out, name+": objects/s", func(f figures) string { return fmt.Sprintf("%.0f", of(f).ObjectsPerSecond) })
	r.line(out, "CPU per object", func(f figures) string { return micro(of(f).CPUPerObject) })
	r.line(out, "writes per object", func(f figures) string { return fmt.Sprintf("%.2f", of(f).WritesPerObject) })
	r.line(out, "events per object", func(f figures) string { return fmt.Sprintf("%.2f", of(f).EventsPerObject) })
	r.line(out, "conflicts, reads", func(f figures) string {
		return fmt.Sprintf("%d, %.2f", of(f).Conflicts, of(f).ReadsPerObject)
	})
}

func (r report) atRest(out io.Writer) {
	r.line(out, "at rest: memory per object", func(f figures) string { return fmt.Sprintf("%d B", f.BytesPerObject.Resident) })
	r.line(out, "of which Go heap", func(f figures) string { return fmt.Sprintf("%d B", f.BytesPerObject.Heap) })
	r.line(out, "memory without objects", func(f figures) string { return mega(f.Empty.Resident) })
	r.line(out, "memory with all objects", func(f figures) string { return mega(f.Loaded.Resident) })
	r.line(out, "writes", func(f figures) string { return fmt.Sprintf("%d in %.0fs", f.Rest.Requests.Writes, f.Rest.Seconds) })
	r.line(out, "CPU", func(f figures) string { return milli(f.Rest.CPU) })
}

func (r report) restarted(out io.Writer) {
	r.line(out, "restart: ready after", func(f figures) string { return milli(f.Restart.Ready) })
	r.line(out, "CPU until at rest", func(f figures) string { return milli(f.Restart.CPU) })
	r.line(out, "writes", func(f figures) string { return fmt.Sprint(f.Restart.Requests.Writes) })
	r.line(out, "memory with all objects", func(f figures) string { return mega(f.Restart.Memory.Resident) })
	r.line(out, "the most memory until then", func(f figures) string { return mega(f.Restart.Peak) })
	if slices.ContainsFunc(r.Subjects, func(f figures) bool { return f.Restart.FirstChange > 0 }) {
		r.line(out, "the first change after", func(f figures) string { return milli(f.Restart.FirstChange) })
	}
}

// compareWithGoals compares the figures with the goals, as far as the subjects allow.
func (r report) compareWithGoals(out io.Writer) error {
	bySubject := map[string]figures{}
	for _, f := range r.Subjects {
		bySubject[f.Subject] = f
	}
	for _, pair := range [][2]string{{ours, theirs}, {oursEvents, theirsEvents}} {
		mine, measured := bySubject[pair[0]]
		other, paired := bySubject[pair[1]]
		if !measured {
			continue
		}
		_, _ = fmt.Fprintf(out, "\n%s:\n", pair[0])
		if paired {
			_, _ = fmt.Fprintf(out, "  CPU per object relative to %s: create %.2f, update %.2f, delete %.2f (goal: %.1f)\n", pair[1],
				ratio(mine.Create, other.Create), ratio(mine.Update, other.Update), ratio(mine.Delete, other.Delete), goalCPU)
		}
		_, _ = fmt.Fprintf(out, "  memory per object at rest: %d B (goal: %d)\n", mine.BytesPerObject.Resident, goalMemory)
		_, _ = fmt.Fprintf(out, "  writes at rest: %d, after a restart: %d (goal: none)\n", mine.Rest.Requests.Writes, mine.Restart.Requests.Writes)
	}
	return nil
}

func ratio(mine, other Phase) float64 {
	return float64(mine.CPUPerObject) / float64(other.CPUPerObject)
}

func micro(d time.Duration) string { return fmt.Sprintf("%d µs", d.Microseconds()) }

func milli(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }

func mega(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/1e6) }
