package main

import (
	"context"
	"maps"
	"slices"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
)

// environment configures an operator under measurement.
type environment struct {
	role
	config *rest.Config
	logger logr.Logger
	// tally counts the calls of background handlers.
	tally *tally
	// ready must be called when all objects are known and are handled from now on.
	ready func()
	// measure makes another process the one whose CPU time and memory count. Subjects that are
	// not this process call it before they are ready.
	measure func(meter)
}

// subject is an operator under measurement.
type subject struct {
	// description explains the subject in the report.
	description string
	// handled is the annotation of handled objects, which contains the handled spec, or
	// handledInStatus.
	handled string
	// run runs the operator until the context is done.
	run func(ctx context.Context, env environment) error
	// steps returns the steps of the measurement.
	steps func(m *measurement) []step
	// background says which background handlers the objects have.
	background backgroundOperator
}

// The subjects by name.
const (
	ours          = "kopf"
	oursEvents    = "kopf+events"
	theirs        = "handwritten"
	theirsEvents  = "handwritten+events"
	oursTyped     = "kopf-typed"
	oursWorker    = "kopf-worker"
	oursRun       = "kopf-run"
	without       = "without"
	timers        = "timers"
	daemons       = "daemons"
	timersDaemons = "timers+daemons"

	waitingHandlers   = "waiting"
	waitingReconciles = "waiting+handwritten"

	childrenEnsured     = "children"
	childrenHandwritten = "children+handwritten"
	childrenExternal    = "children+metacontroller"
	childrenAlone       = "children-alone"  // for the memory of the objects without children
	childrenCached      = "children-cached" // for that of the children in the compact cache

	neighborOurs        = "neighbor"
	neighborNarrow      = "neighbor+narrow"
	neighborUnlimited   = "neighbor+unlimited"
	neighborHandwritten = "neighbor+handwritten"
	neighborWorkers     = "neighbor+handwritten-workers"

	residents = "residents"

	sharing         = "sharing"
	sharingFiltered = "sharing+filtered"

	handledByUs   = "kopf.zalando.org/last-handled-configuration"
	handledByThem = "bench.kopf.dev/last-handled"
	// handledInStatus says that the status of handled objects has the handled revision.
	handledInStatus = "status.revision"
)

var (
	defaultSubjects    = []string{ours, theirs, oursEvents, theirsEvents}
	backgroundSubjects = []string{without, timers, daemons, timersDaemons}
	waitingSubjects    = []string{waitingHandlers, waitingReconciles}
	childrenSubjects   = []string{childrenEnsured, childrenHandwritten}
	neighborSubjects   = []string{neighborOurs, neighborNarrow, neighborHandwritten, neighborUnlimited, neighborWorkers}
	residentSubjects   = []string{residents}
	shardSubjects      = []string{sharingFiltered, sharing}
	externalSubjects   = []string{childrenExternal} // they need the path of a program
)

var subjects = map[string]subject{
	ours:         {"this project, without Kubernetes events", handledByUs, kopfOperator{}.run, changeSteps, backgroundOperator{}},
	oursEvents:   {"this project, with default settings", handledByUs, kopfOperator{events: true}.run, changeSteps, backgroundOperator{}},
	oursTyped:    {"this project with typed handlers, without Kubernetes events", handledByUs, kopfOperator{typed: true}.run, changeSteps, backgroundOperator{}},
	oursWorker:   {"kopf serve, with a worker that answers at once", handledByUs, servedOperator{"worker"}.run, changeSteps, backgroundOperator{}},
	oursRun:      {"kopf serve, with a program for each call, whose CPU time counts", handledByUs, servedOperator{"run"}.run, changeSteps, backgroundOperator{}},
	theirs:       {"hand-written on controller-runtime, without Kubernetes events", handledByThem, handwritten{}.run, changeSteps, backgroundOperator{}},
	theirsEvents: {"hand-written on controller-runtime, with one event per handled change", handledByThem, handwritten{events: true}.run, changeSteps, backgroundOperator{}},

	waitingHandlers:   {"this project, with handlers that wait", handledByUs, waitingOperator{}.run, waitingSteps, backgroundOperator{}},
	waitingReconciles: {"hand-written on controller-runtime, with a reconciler that waits", handledByThem, waitingHandwritten{}.run, waitingWaveSteps, backgroundOperator{}},

	childrenEnsured:     {"this project, with five children of every object", handledByUs, childrenOperator{}.run, childrenSteps, backgroundOperator{}},
	childrenHandwritten: {"hand-written on controller-runtime, with Owns and server-side apply", handledByThem, childrenReconcilers{}.run, childrenSteps, backgroundOperator{}},
	childrenExternal:    {"Metacontroller, with a hook that returns the children", handledInStatus, metacontroller{}.run, metacontrollerSteps, backgroundOperator{}},
	childrenAlone:       {"this project, with a cache of the objects", handledByUs, childrenCache{}.run, childrenSteps, backgroundOperator{}},
	childrenCached:      {"this project, with a cache of the children", handledByUs, childrenCache{children: true}.run, childrenSteps, backgroundOperator{}},

	neighborOurs:        {"this project, with its default limits", handledByUs, kopfOperator{}.run, neighborSteps, backgroundOperator{}},
	neighborNarrow:      {"this project, with two requests in flight", handledByUs, kopfOperator{maxInFlight: 2}.run, neighborSteps, backgroundOperator{}},
	neighborUnlimited:   {"this project, without any limit", handledByUs, kopfOperator{maxInFlight: -1}.run, neighborSteps, backgroundOperator{}},
	neighborHandwritten: {"hand-written on controller-runtime, with its defaults: one worker", handledByThem, handwritten{workers: 1}.run, neighborSteps, backgroundOperator{}},
	neighborWorkers:     {"hand-written on controller-runtime, with as many workers", handledByThem, handwritten{}.run, neighborSteps, backgroundOperator{}},

	residents: {"this project, with many other objects that do not change", handledByUs, kopfOperator{}.run, residentSteps, backgroundOperator{}},

	sharing:         {"replicas of this project that share the objects", handledByUs, sharingOperator{}.run, shardSteps, backgroundOperator{}},
	sharingFiltered: {"the same, with the feature gate ShardedListAndWatch of the API server", handledByUs, sharingOperator{}.run, shardSteps, backgroundOperator{}},

	without:       {"this project, without timers and daemons", "", backgroundOperator{}.run, backgroundSteps, backgroundOperator{}},
	timers:        {"the same, with a timer for every object", "", backgroundOperator{timer: true}.run, backgroundSteps, backgroundOperator{timer: true}},
	daemons:       {"the same, with a daemon for every object", "", backgroundOperator{daemon: true}.run, backgroundSteps, backgroundOperator{daemon: true}},
	timersDaemons: {"the same, with a timer and a daemon for every object", "", backgroundOperator{timer: true, daemon: true}.run, backgroundSteps, backgroundOperator{timer: true, daemon: true}},
}

func subjectNames() []string { return slices.Sorted(maps.Keys(subjects)) }
