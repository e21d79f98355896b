package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/kopf-go/kopf/hack/source"
)

// campaign tries mutants against stages of tests.
type campaign struct {
	tree    *source.Tree
	dir     string // for build results
	overlay string
	store   *store
	prints  *fingerprints
	options options
	log     io.Writer
	reach   map[stage]*binary
	keys    map[*mutant]string // of the results of the current stage

	mu    sync.Mutex
	found map[*mutant]*finding
}

// finding contains the results about a mutant.
type finding struct {
	result

	by stage // whose tests kill it
}

func newCampaign(tree *source.Tree, files []*sourceFile, s *store, o options, log io.Writer) (*campaign, error) {
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return nil, err
	}
	c := &campaign{
		tree: tree, dir: dir, store: s, options: o, log: log, reach: map[stage]*binary{}, found: map[*mutant]*finding{}, keys: map[*mutant]string{},
		prints: &fingerprints{root: tree.Dir, folders: map[string]string{}},
	}
	c.overlay, err = writeOverlay(tree.Dir, dir, files)
	return c, err
}

// close removes the build results.
func (c *campaign) close() error { return os.RemoveAll(c.dir) }

// run tries the mutants in one stage, except those that earlier stages have killed.
func (c *campaign) run(ctx context.Context, s stage, mutants []*mutant) error {
	var untried []*mutant
	for _, m := range mutants {
		if c.found[m] == nil {
			c.found[m] = &finding{}
		}
		if c.found[m].Killer != "" {
			continue
		}
		key, err := c.prints.key(m, s)
		if err != nil {
			return err
		}
		if known, ok := c.known(key); ok && !c.options.again() {
			c.add(m, s, known)
		} else {
			c.keys[m], untried = key, append(untried, m)
		}
	}
	if len(untried) == 0 {
		return nil
	}
	b, err := c.binaryOf(ctx, s)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(c.log, "%s: the %s tests of %s try %d mutants\n", filepath.Dir(untried[0].file), s.kind, s.pkg, len(untried))
	return errors.Join(c.tryAll(ctx, b, untried), c.store.save())
}

// record stores the result of a stage.
func (c *campaign) record(m *mutant, s stage, r result, output string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(m, s, r)
	key := c.keys[m]
	if r.Killer == "" && c.options.quick {
		key += quickly
	}
	c.store.put(key, r)
	if c.options.at != "" {
		_, _ = fmt.Fprintf(c.log, "\n%s\n%s", m, output)
	}
}

// quickly marks the keys of mutants that only quick tests have tried.
const quickly = " quickly"

// known returns the stored result of a mutant.
func (c *campaign) known(key string) (result, bool) {
	r, ok := c.store.get(key)
	if !ok && c.options.quick {
		r, ok = c.store.get(key + quickly)
	}
	return r, ok
}

// add adds the result of a stage to what is known.
func (c *campaign) add(m *mutant, s stage, r result) {
	r.Reached = r.Reached || c.found[m].Reached
	*c.found[m] = finding{result: r, by: s}
}

// binaryOf builds the test program of a stage once.
func (c *campaign) binaryOf(ctx context.Context, s stage) (*binary, error) {
	if b := c.reach[s]; b != nil {
		return b, nil
	}
	b, err := build(ctx, c.tree.Dir, c.dir, c.overlay, s)
	if err != nil {
		return nil, err
	}
	if s.pkg != faultsPackage {
		err = b.measureReach(ctx, 2*time.Minute)
	}
	c.reach[s] = b
	return b, err
}

// tryAll tries mutants at the same time, and stores each result.
func (c *campaign) tryAll(ctx context.Context, b *binary, mutants []*mutant) error {
	var workers sync.WaitGroup
	next := make(chan *mutant)
	for range c.options.parallel {
		workers.Go(func() {
			for m := range next {
				r, output := b.try(ctx, m, c.options)
				if ctx.Err() == nil { // otherwise, the result is not true
					c.record(m, b.stage, r, output)
				}
			}
		})
	}
	for _, m := range mutants {
		next <- m
	}
	close(next)
	workers.Wait()
	return ctx.Err()
}

// runAll tries all mutants in the stages of their packages.
func (c *campaign) runAll(ctx context.Context, mutants []*mutant, reasons map[identity]string) error {
	if c.options.storm {
		return c.run(ctx, stormStage, sampleOf(mutants, reasons, c.options))
	}
	for _, pkg := range c.tree.Packages {
		var own []*mutant
		for _, m := range mutants {
			if filepath.ToSlash(filepath.Dir(m.file)) == pkg.Path {
				own = append(own, m)
			}
		}
		stages := stagesOf(c.tree, pkg)
		switch {
		case c.options.unit:
			stages = stages[:1]
		case c.options.thorough:
			stages = append(stages, sweepStage, stormStage)
		}
		for _, s := range stages {
			tried := own
			if s.runsOperators() && !c.options.thorough { // a minute for each, to be told what the list says
				tried = differing(own, reasons)
			}
			if err := c.run(ctx, s, tried); err != nil {
				return err
			}
		}
	}
	return nil
}

// differing returns the mutants that are not equivalent.
func differing(mutants []*mutant, reasons map[identity]string) []*mutant {
	return slices.DeleteFunc(slices.Clone(mutants), func(m *mutant) bool { return reasons[m.id] != "" })
}

// sampleOf returns some of the mutants that are not equivalent.
func sampleOf(mutants []*mutant, reasons map[identity]string, o options) []*mutant {
	candidates := differing(mutants, reasons)
	random := rand.New(rand.NewPCG(o.seed, 0))
	random.Shuffle(len(candidates), func(i, j int) { candidates[i], candidates[j] = candidates[j], candidates[i] })
	return candidates[:min(o.sample, len(candidates))]
}
