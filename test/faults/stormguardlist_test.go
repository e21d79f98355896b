package faults

// stormGuards are guards of all parts that decide what is handled, in addition to those with
// experiments and unit tests.
var stormGuards = map[string]guard{
	"a cycle: it is a change although it was taken back": {
		file: "internal/plan/plan.go", code: "case len(p.Diff) > 0 || p.Cycle.Progress.Stored().HasOpen(cause.Update):", instead: "case len(p.Diff) > 0:",
	},
	"a cycle: handlers of a change that was taken back are called again": {
		file: "call/progress.go", code: "selected = append(selected, declared.TakenBack(c, selected, p.IsRetrying)...)", instead: "",
	},
	"a cycle: changes during it are handled after it": {
		file: "decision.go", code: "if edited || outcome.ChangedByOthers || !c.Cycle.Settled {", instead: "if edited && outcome.ChangedByOthers {",
	},
	"a cycle: its records are removed when it does not exist anymore": {
		file: "internal/plan/decision.go", code: "p.Cycle.Progress.Stored().HasStale() {\n\t\td.StaleRecords", instead: "false {\n\t\td.StaleRecords",
	},
	"a cycle: a pass ends when others have changed the object": {
		file: "execute.go", code: "if outcome.Gone || outcome.ChangedByOthers || p.term.isStopping() {", instead: "if outcome.Gone || p.term.isStopping() {",
	},
	"a finalizer: it is removed when no handler needs it": {
		file: "internal/plan/decision.go", code: "RemoveFinalizer: p.HasFinalizer && !p.NeedsFinalizer,", instead: "RemoveFinalizer: false,",
	},
	"a position: handlers end at the states of their calls": {
		file: "internal/record/positions.go", code: "own := addState(open, c.New)", instead: "own := first",
	},
	"a position: a handler is not ahead of its sub-handlers": {
		file: "internal/record/positions.go", code: "min(positions[id], c.oldestOfSubhandlers(positions, id))", instead: "positions[id]",
	},
	"a position: the base does not pass handlers that are due": {
		file: "internal/record/positions.go", code: "begin < len(open.States) && !c.isAnyDue(positions, begin, e.base, open.States[begin])", instead: "begin < len(open.States)",
	},
	"a position: handlers that are ahead are not called again": {
		file: "internal/record/positions.go", code: "\tc.openNext(&e, open.States, begin, positions, token)\n", instead: "",
	},
	"a position: it is stored with the cycle": {
		file: "internal/record/cycle.go", code: "\t\tc.Progress.SetAhead(id, c.Reason)\n", instead: "",
	},
	"a retry: it waits for its delay": {
		file: "call/progress.go", code: "return max(0, s.Delayed.Sub(now), s.postponed.Sub(now))", instead: "return 0 * s.Delayed.Sub(now)",
	},
	"a limit: attempts are counted": {
		file: "call/attempt.go", code: "case d.Retries != nil && retries >= *d.Retries:", instead: "case d.Retries != nil && retries > *d.Retries+1:",
	},
	"another object of the name: the memory is not its own": {
		file: "target.go", code: "\tt.resetFor(cached.GetUID())\n", instead: "",
	},
	"another object of the name: it does not get the edits of earlier event handlers": {
		file: "eventhandler.go", code: "event.Type != apiwatch.Deleted && uid == current.GetUID() {", instead: "event.Type != apiwatch.Deleted {",
	},
	"another object of the name: the daemons of the earlier one stop": {
		file: "objectstate.go", code: "\ts.background.stop(stop.Deleted)\n\ts.writes.Reset(uid)\n", instead: "\ts.writes.Reset(uid)\n",
	},
	"a deletion: daemons are asked to stop": {
		file: "background.go", code: "\t\t\tb.group.Stop(stop.Deleted)\n\t\t}\n\t}\n}", instead: "\t\t\t_ = stop.Deleted\n\t\t}\n\t}\n}",
	},
	"a pass: it is the only one for its object": {
		file: "detached.go", code: "\te.currentQueue().Detach(p.key)\n", instead: "\te.currentQueue().Done(p.key)\n",
	},
	"a checkpoint: edits are written with the records": {
		file: "execute.go", code: "\tp.object.writes.Add(runner.Edits...)\n\trunner.Edits = nil\n", instead: "",
	},
	"a limit: time is counted": {
		file: "call/attempt.go", code: "case d.Timeout > 0 && runtime >= d.Timeout:", instead: "case d.Timeout < 0:",
	},
	"a limit: all calls have one deadline": {
		file: "call/attempt.go", code: "context.WithTimeoutCause(ctx, d.Timeout-runtime,", instead: "context.WithTimeoutCause(ctx, d.Timeout,",
	},
	"a resumption: handlers that were called in the first cycle are not called again": {
		file: "decision.go", code: "p.object.handled = !p.object.startedByPredecessor || c.Reason == cause.Delete", instead: "p.object.handled = c.Reason == cause.Delete",
	},
	"a background handler: its edit is taken by a pass": {
		file: "objectstate.go", code: "\ts.writes.Add(s.background.takeEdits()...)\n", instead: "\t_ = s.background.takeEdits()\n",
	},
	"an unreadable record: it counts as absent": {
		file: "internal/record/keeper.go", code: "if !errors.As(err, &broken) {", instead: "if errors.As(err, &broken) || err != nil {",
	},
	"Kopf: what it leaves of a cycle that it has finished does not count": {
		file: "internal/record/keeper.go", code: "if !isOpen {", instead: "if !isOpen && false {",
	},
	"a request: it is honored once": {
		file: "internal/plan/decision.go", code: "now.Deleting && c.DaemonsRunning, Annotations: p.honored(),", instead: "now.Deleting && c.DaemonsRunning,",
	},
	"a suspension: no handler is called": {
		file: "pass.go", code: "suspension.Active {\n\t\t\tnext", instead: "suspension.Active && false {\n\t\t\tnext",
	},
	"a pause: no handler is called": {
		file: "handover.go", code: "\t\tif p.suspend != nil {\n\t\t\tp.suspend()\n\t\t}\n", instead: "",
	},
	"a shard: it is released when its objects are left": {
		file: "tenures.go", code: "if len(left) > 0 || t.leaving.has((*daemons.Group).IsActive) {", instead: "if len(left) < 0 && t.leaving.has((*daemons.Group).IsActive) {",
	},
	"a shard: the work on its objects is written before it is released": {
		file: "tenures.go", code: "left, err := p.writeLast(ctx, cached)", instead: "left, err := nextPass{}, error(nil)",
	},
	"a shard: its objects begin anew with a new holder": {
		file: "tenures.go", code: "	p.term.tenure.leave(e.objects.remove(p.key, p.term.tenure.reason()))\n	return nextPass{}, nil", instead: "	return nextPass{}, nil",
	},
}
