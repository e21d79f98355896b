package main

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
)

// environment is what an operator under measurement gets.
type environment struct {
	config  *rest.Config
	logger  logr.Logger
	workers int
	// interval is that of timers; tally is where background handlers count.
	interval time.Duration
	tally    *tally
	// ready is to be called when all objects are known and handled from now on.
	ready func()
}

// subject is an operator under measurement.
type subject struct {
	// description is for the report.
	description string
	// handled is the annotation by which a handled object is known; it has the
	// text of the spec that was handled.
	handled string
	// run runs the operator until the context is done.
	run func(ctx context.Context, env environment) error
	// story is what happens to it.
	story func(m *measurement) []step
	// company is what objects have in the background.
	company attended
}

// The subjects by name.
const (
	ours          = "kopf"
	oursEvents    = "kopf+events"
	theirs        = "handwritten"
	theirsEvents  = "handwritten+events"
	oursTyped     = "kopf-typed"
	without       = "without"
	timers        = "timers"
	daemons       = "daemons"
	timersDaemons = "timers+daemons"
	handledByUs   = "kopf.zalando.org/last-handled-configuration"
	handledByThem = "bench.kopf.dev/last-handled"
)

var (
	defaultSubjects    = []string{ours, theirs, oursEvents, theirsEvents}
	backgroundSubjects = []string{without, timers, daemons, timersDaemons}
)

var subjects = map[string]subject{
	ours:         {"this project, without Kubernetes events", handledByUs, kopfOperator{}.run, handling, attended{}},
	oursEvents:   {"this project, as it is by default", handledByUs, kopfOperator{events: true}.run, handling, attended{}},
	oursTyped:    {"this project with typed handlers, without Kubernetes events", handledByUs, kopfOperator{typed: true}.run, handling, attended{}},
	theirs:       {"hand-written on controller-runtime, without Kubernetes events", handledByThem, handwritten{}.run, handling, attended{}},
	theirsEvents: {"hand-written on controller-runtime, with one event a handled change", handledByThem, handwritten{events: true}.run, handling, attended{}},

	without:       {"this project, with nothing in the background", "", attended{}.run, attending, attended{}},
	timers:        {"the same, with a timer for every object", "", attended{timer: true}.run, attending, attended{timer: true}},
	daemons:       {"the same, with a daemon for every object", "", attended{daemon: true}.run, attending, attended{daemon: true}},
	timersDaemons: {"the same, with both", "", attended{timer: true, daemon: true}.run, attending, attended{timer: true, daemon: true}},
}

func subjectNames() []string { return slices.Sorted(maps.Keys(subjects)) }
