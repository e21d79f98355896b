package handler

import (
	"errors"
	"fmt"
	"slices"
)

// The options of handlers. The compiler tells the families apart: an interval is no option of a
// creation handler. What a family cannot tell apart, such as an interval of a daemon, is a mistake
// of the declaration.
type (
	// Option is an option of handlers of several families.
	Option struct{ setting }

	// ChangeOption is an option of OnCreate, OnUpdate, OnField, OnDelete, OnResume, and
	// sub-handlers: one for changes alone, or an Option.
	ChangeOption interface {
		option
		forChanges()
	}
	// BackgroundOption is an option of Daemon and Timer: one for these alone, or an Option.
	BackgroundOption interface {
		option
		forBackground()
	}
	// AdmissionOption is an option of OnValidate and OnMutate: one for these alone, or an
	// Option.
	AdmissionOption interface {
		option
		forAdmission()
	}
	// ChildOption is an option of Ensure, OnDrift, and OnChild: one for these alone, or an
	// Option.
	ChildOption interface {
		option
		forChildren()
	}
)

// LabelOption is an option of the handlers that know children: of OnChild, and of daemons.
type LabelOption interface {
	ChildOption
	BackgroundOption
}

type option interface{ get() setting }

// setting applies an option.
type setting struct {
	name string // of the function of package kopf
	of   audience
	set  func(*Declaration)
}

func (s setting) get() setting { return s }

func (Option) forChanges()    {}
func (Option) forBackground() {}
func (Option) forAdmission()  {}
func (Option) forChildren()   {}

type (
	changeOption     struct{ setting }
	backgroundOption struct{ setting }
	admissionOption  struct{ setting }
	childOption      struct{ setting }
	labelOption      struct{ setting }
)

func (changeOption) forChanges()        {}
func (backgroundOption) forBackground() {}
func (admissionOption) forAdmission()   {}
func (childOption) forChildren()        {}
func (labelOption) forChildren()        {}
func (labelOption) forBackground()      {}

// audience is the kinds of handlers that have an option.
type audience struct {
	kinds   []Kind
	ensures bool   // kopf.Ensure, which declares a handler for several kinds
	text    string // of messages
}

var (
	changeKinds     = []Kind{OnCreate, OnUpdate, OnField, OnDelete, OnResume, Subhandler}
	backgroundKinds = []Kind{OnDaemon, OnTimer}
	admissionKinds  = []Kind{OnValidate, OnMutate}
	activityKinds   = []Kind{OnStartup, OnCleanup, OnLogin, OnProbe}
	objectKinds     = slices.Concat(changeKinds, backgroundKinds, admissionKinds, []Kind{OnEvent, OnIndex, OnChild, OnDrift})

	all     = audience{slices.Concat(objectKinds, activityKinds), true, "all handlers"}
	objects = audience{objectKinds, true, "handlers of objects"}
	fields  = audience{
		slices.Concat(changeKinds, backgroundKinds, admissionKinds, []Kind{OnEvent, OnIndex}), false,
		"handlers of objects, except those of children, drift, and kopf.Ensure",
	}
	retried = audience{
		slices.Concat(changeKinds, backgroundKinds, activityKinds, []Kind{OnIndex, OnChild}), true,
		"handlers that are retried: all but those of events, admission, and drift",
	}
	limited = audience{
		slices.Concat(changeKinds, backgroundKinds, []Kind{OnChild}), true,
		"handlers of changes, daemons, timers, handlers of children, and kopf.Ensure",
	}
	changes   = audience{changeKinds, false, "handlers of changes and sub-handlers"}
	updates   = audience{[]Kind{OnUpdate, OnField, Subhandler}, false, "OnUpdate, OnField, and sub-handlers"}
	revisions = audience{[]Kind{OnCreate, OnUpdate, OnField}, false, "OnCreate, OnUpdate, and OnField"}
	deletions = audience{[]Kind{OnDelete}, false, "OnDelete"}
	deleted   = audience{[]Kind{OnResume, OnChild, OnDaemon}, false, "OnResume, OnChild, and Daemon"}
	delayed   = audience{backgroundKinds, false, "Daemon and Timer"}
	daemons   = audience{[]Kind{OnDaemon}, false, "Daemon"}
	timers    = audience{[]Kind{OnTimer}, false, "Timer"}
	idling    = audience{[]Kind{OnTimer, OnCreate, OnUpdate, OnField}, true, "Timer, OnCreate, OnUpdate, OnField, and Ensure"}
	reviews   = audience{admissionKinds, false, "OnValidate and OnMutate"}
	children  = audience{[]Kind{OnChild, OnDaemon}, false, "OnChild and Daemon"}
	drifts    = audience{[]Kind{OnDrift}, false, "OnDrift"}
	ensured   = audience{nil, true, "Ensure"}
)

// settingsOf returns what options do, with nil for an option that is nil.
func settingsOf[O option](options []O) []*setting {
	var all []*setting
	for _, o := range options {
		if any(o) == nil {
			all = append(all, nil)
			continue
		}
		all = append(all, new(o.get()))
	}
	return all
}

// apply applies options to a declaration.
func (d *Declaration) apply(settings []*setting) {
	for _, s := range settings {
		switch {
		case s == nil || s.set == nil:
			d.addProblem(errors.New("one of its options is nil"))
		case !s.of.has(d):
			d.addProblem(fmt.Errorf("kopf.%s is an option of %s: leave it out here", s.name, s.of.text))
		default:
			s.set(d)
		}
	}
}

func (a audience) has(d *Declaration) bool {
	if d.Ensures != nil {
		return a.ensures
	}
	return slices.Contains(a.kinds, d.Kind)
}
