package main

import (
	"context"
	"maps"
	"slices"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
)

// environment is what an operator under measurement gets.
type environment struct {
	config  *rest.Config
	logger  logr.Logger
	workers int
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
}

// The subjects by name.
const (
	ours          = "kopf"
	oursEvents    = "kopf+events"
	theirs        = "handwritten"
	theirsEvents  = "handwritten+events"
	oursTyped     = "kopf-typed"
	handledByUs   = "kopf.zalando.org/last-handled-configuration"
	handledByThem = "bench.kopf.dev/last-handled"
)

var defaultSubjects = []string{ours, theirs, oursEvents, theirsEvents}

var subjects = map[string]subject{
	ours:         {"this project, without Kubernetes events", handledByUs, kopfOperator{}.run},
	oursEvents:   {"this project, as it is by default", handledByUs, kopfOperator{events: true}.run},
	oursTyped:    {"this project with typed handlers, without Kubernetes events", handledByUs, kopfOperator{typed: true}.run},
	theirs:       {"hand-written on controller-runtime, without Kubernetes events", handledByThem, handwritten{}.run},
	theirsEvents: {"hand-written on controller-runtime, with one event a handled change", handledByThem, handwritten{events: true}.run},
}

func subjectNames() []string { return slices.Sorted(maps.Keys(subjects)) }
